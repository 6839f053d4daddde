"""Values that the code shows: literals, and names bound to literals."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from smdebug.migrating.names import Names

_DEEPEST = 50


class Unknown(NamedTuple):
    """A value that cannot be read off the code, and why."""

    code: str
    line: int
    reason: str = "is known only when the code runs"


Build = Callable[[ast.Call], Any]


class Values:
    """Reads values; `build` makes the objects that a call constructs, or returns None."""

    def __init__(self, names: Names, build: Build):
        self._names = names
        self._build = build

    def read(self, node: ast.expr, depth: int = 0) -> Any:
        """Return the value of an expression, with `Unknown` for the parts that cannot be read."""
        if depth > _DEEPEST:
            return unknown(node)
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.read(item, depth + 1) for item in node.elts]
            case ast.Dict():
                return self._dictionary(node, depth)
            case ast.Name():
                assigned = self._names.assigned(node)
                return unknown(node) if assigned is None else self.read(assigned, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.read(operand, depth + 1)
                return -number if isinstance(number, int | float) else unknown(node)
            case ast.BinOp(op=ast.Add()):
                left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
                if isinstance(left, str) and isinstance(right, str):
                    return left + right
                if isinstance(left, list) and isinstance(right, list):
                    return left + right
            case ast.JoinedStr():
                return self._formatted(node, depth)
            case ast.Call(func=ast.Name(id="str" | "dict" | "list"), args=[only], keywords=[]):
                value = self.read(only, depth + 1)
                known = not isinstance(value, Unknown | dict | list) and node.func.id == "str"  # type: ignore[attr-defined]
                return str(value) if known else value
            case ast.Call(func=ast.Name(id="dict"), args=[]):
                return {k.arg: self.read(k.value, depth + 1) for k in node.keywords if k.arg}
            case ast.Call():
                built = self._build(node)
                return unknown(node) if built is None else built
        return unknown(node)

    def _dictionary(self, node: ast.Dict, depth: int) -> Any:
        result: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            read = self.read(value, depth + 1)
            if key is None:
                if not isinstance(read, dict):
                    return unknown(node)
                result.update(read)
                continue
            name = self.read(key, depth + 1)
            if isinstance(name, Unknown | list | dict):
                return unknown(node)
            result[name] = read
        return result

    def _formatted(self, node: ast.JoinedStr, depth: int) -> Any:
        parts = []
        for part in node.values:
            plain = isinstance(part, ast.FormattedValue) and part.format_spec is None
            value = self.read(part.value if plain else part, depth + 1)  # type: ignore[attr-defined]
            if isinstance(value, Unknown | list | dict):
                return unknown(node)
            parts.append(str(value))
        return "".join(parts)


def unknown(node: ast.expr) -> Unknown:
    """Return the value of an expression that cannot be read."""
    try:
        code = ast.unparse(node)
    except RecursionError:
        code = "a deeply nested expression"
    return Unknown(code[:100], node.lineno)
