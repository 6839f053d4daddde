"""The edits of a module: each changes one place so that its meaning changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}
_TWINS = {"any": "all", "all": "any", "min": "max", "max": "min", "startswith": "endswith"}
# What only people read: an edit there changes no answer.
_WORDS_ONLY = {"get_logger", "debug", "info", "warning", "error", "_log", "log", "print", "cast", "TypeVar"}


class Edit(NamedTuple):
    """One change of a module's text."""

    line: int
    where: str
    """The function or class that it is in."""
    what: str
    begin: int
    end: int
    text: str
    is_imported: bool
    """Whether it is executed when the module is imported, by no test in particular."""

    def apply(self, source: bytes) -> bytes:
        """Return the module with the edit."""
        return source[: self.begin] + self.text.encode() + source[self.end :]


def edits_of(source: bytes) -> list[Edit]:
    """Return all edits of a module."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.found), key=lambda edit: (edit.begin, edit.end, edit.text))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes):
        self.found: list[Edit] = []
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._path: list[str] = []
        self._functions = 0

    # Places

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return begin, end

    def _text(self, node: ast.AST) -> str:
        begin, end = self._span(node)
        return self._source[begin:end].decode()

    def _add(self, line: int, what: str, span: tuple[int, int], text: str) -> None:
        where = ".".join(self._path) or "module"
        self.found.append(Edit(line, where, what, *span, text, not self._functions))

    def _replace(self, node: ast.AST, text: str, what: str | None = None) -> None:
        said = what or f"{_short(self._text(node))} -> {_short(text)}"
        self._add(node.lineno, said, self._span(node), text)  # type: ignore[attr-defined]

    def _swap(self, left: ast.expr, right: ast.expr, signs: tuple[str, str]) -> None:
        """Replace the operator between two expressions."""
        begin, end = self._span(left)[1], self._span(right)[0]
        between = self._source[begin:end].decode()
        if between.count(signs[0]) != 1:
            return
        text = between.replace(*signs)
        what = f"{_short(self._text(left))}{between}{_short(self._text(right))}: {signs[0]} -> {signs[1]}"
        self._add(left.lineno, _short(what), (begin, end), text)

    # Nodes

    def _inside(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        is_function = not isinstance(node, ast.ClassDef)
        self._path.append(node.name)
        self._functions += is_function
        for statement in node.body:
            self.visit(statement)
        self._functions -= is_function
        if not isinstance(node, ast.ClassDef):
            for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
                self.visit(default)
        self._path.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name not in ("__repr__", "__str__"):
            self._inside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._replace(condition, "True", f"if {_short(self._text(condition))} -> if True")
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        for value in ("True", "False"):
            self._replace(test, f"({value})", f"if {_short(self._text(test))} -> if {value}")

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
            self._swap(left, right, _COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        signs = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap(left, right, signs)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = isinstance(node.left, ast.Constant | ast.JoinedStr) and not _is_number(node.left)
        if (signs := _ARITHMETIC.get(type(node.op))) and not is_text:
            self._swap(node.left, node.right, signs)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(
                node, f"bool({self._text(node.operand)})", f"not dropped: {_short(self._text(node))}"
            )
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if node.value is True or node.value is False:
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))
        elif isinstance(node.value, float) and node.value not in (float("inf"), 0.0):
            self._replace(node, repr(node.value * 2))

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _WORDS_ONLY:
            return
        if called in _TWINS:
            twin = self._text(node.func)[: -len(called)] + _TWINS[called]
            self._add(node.lineno, f"{called} -> {_TWINS[called]}", self._span(node.func), twin)
        if called == "reshape":  # any negative number is the dimension that is left
            node.args = [part for part in node.args if not isinstance(part, ast.UnaryOp)]
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            func = node.value.func
            called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if called in _WORDS_ONLY:
                return
            self._replace(node, "pass", f"left out: {_short(self._text(node))}")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        is_change = all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        if is_change and self._path and self._path[-1] != "__init__":
            self._replace(node, "pass", f"left out: {_short(self._text(node))}")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass", f"left out: {_short(self._text(node))}")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass", f"left out: {_short(self._text(node))}")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "pass", "left out: continue")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "pass", "left out: break")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self._replace(node, "return None", f"return None for {_short(self._text(node.value))}")
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion is for the reader and for mypy."""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of `zip`: an assertion, too
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words, as a rule."""

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self.generic_visit(node)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else f"{line[:67]}..."


def distinct(edits: list[Edit], source: bytes) -> Iterator[Edit]:
    """Yield the edits that leave the module one that Python takes."""
    for edit in edits:
        try:
            compile(edit.apply(source), "<edited>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        yield edit
