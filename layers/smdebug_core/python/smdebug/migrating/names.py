"""The meaning of a name in the code: the import that it comes from, or the value assigned to it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from smdebug.migrating.sources import Code

# Names of SageMaker's SDK that snippets use without an import.
_SDK = {
    "CollectionConfig",
    "DebuggerHookConfig",
    "FrameworkProfile",
    "ProfilerConfig",
    "ProfilerRule",
    "Rule",
    "Rules",
    "TensorBoardOutputConfig",
    "rule_configs",
}
_CHANGING = {"append", "extend", "insert", "update", "pop", "remove", "clear", "setdefault"}
_CONDITIONAL = (ast.If, ast.For, ast.While, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef)

Position = tuple[int, int]


class _Assignment(NamedTuple):
    """A value given to a name; None if only running the code shows it."""

    position: Position
    value: ast.expr | None
    conditional: bool


class Names:
    """The imports and assignments of one file. The cells of a notebook share them."""

    def __init__(self, codes: Iterable[Code]):
        self._imported: dict[str, str] = {}
        self._assigned: dict[str, list[_Assignment]] = {}
        self._defined: set[str] = set()
        self._cells: dict[int, int] = {}
        for code in codes:
            for node, conditional in _walk(code.statements, conditional=False):
                self._cells[id(node)] = code.cell or 0
                self._note_import(node)
                self._note_value(node, conditional)

    def _note_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._imported[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            self._defined.add(node.name)

    def _note_value(self, node: ast.AST, conditional: bool) -> None:
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, ast.AugAssign | ast.For | ast.NamedExpr):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            targets = [node.func.value] if node.func.attr in _CHANGING else []
        for target in targets:
            if isinstance(target, ast.Subscript):
                target, value = target.value, None
            if isinstance(target, ast.Name):
                assignment = _Assignment(self._position(node), value, conditional)
                self._assigned.setdefault(target.id, []).append(assignment)

    def _position(self, node: ast.AST) -> Position:
        return self._cells.get(id(node), 0), getattr(node, "lineno", 0)

    def address(self, node: ast.expr) -> str | None:
        """Return the dotted address of an imported object, such as `smdebug.pytorch.Hook`."""
        if isinstance(node, ast.Attribute):
            owner = self.address(node.value)
            return f"{owner}.{node.attr}" if owner else None
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._imported:
            return self._imported[node.id]
        unknown = node.id not in self._assigned and node.id not in self._defined
        return f"sagemaker.debugger.{node.id}" if unknown and node.id in _SDK else None

    def assigned(self, node: ast.Name) -> ast.expr | None:
        """Return the expression last assigned to a name, or None if that cannot be known."""
        position = self._position(node)
        values = [a for a in self._assigned.get(node.id, []) if a.position < position]
        last = values[-1] if values else None
        if last is None or (last.conditional and len(values) > 1):
            return None
        return last.value


def _walk(statements: Iterable[ast.AST], conditional: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node in the order of the text, and whether it may be passed over at run time."""
    waiting = [(statement, conditional) for statement in statements][::-1]
    while waiting:  # not recursive: generated code may be nested deeply
        node, conditional = waiting.pop()
        yield node, conditional
        below = conditional or isinstance(node, _CONDITIONAL)
        waiting += [(child, below) for child in ast.iter_child_nodes(node)][::-1]
