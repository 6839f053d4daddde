"""No test holds because it looked at nothing: a loop that asserts says how many it looks at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.looking import each

TESTS = Path(__file__).parent
# Of functions that return as many values as they are given.
_SAME_LENGTH = {
    "enumerate",
    "sorted",
    "reversed",
    "list",
    "tuple",
    "set",
    "zip",
    "product",
    "items",
    "values",
    "keys",
}
# Loops that may be empty, and why that is right.
MAY_BE_EMPTY = {
    "test_a_block_by_itself_is_scanned_as_a_script": "a block may have nothing to say, as others have",
    "test_what_is_listed_as_changing_no_answer_is_an_edit_of_today": "nothing need be listed",
}


def names_of_constants(statements: list[ast.stmt], known: frozenset[str]) -> frozenset[str]:
    """The names of what is written down in these statements, and is not empty."""
    for statement in statements:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if has_some(statement.value, known):
                known |= {target.id for target in targets if isinstance(target, ast.Name)}
    return known


def has_some(node: ast.expr, known: frozenset[str]) -> bool:
    """Whether a loop over this expression looks at something, whatever the code under test does."""
    match node:
        case ast.Tuple(elts=some) | ast.List(elts=some) | ast.Set(elts=some) | ast.Dict(keys=some):
            return bool(some)
        case ast.Constant(value=value):
            return bool(value)
        case ast.Name(id=name):
            return name in known
        case ast.Call(func=ast.Name(id="each")):
            return True
        case ast.Call(func=ast.Name(id="range"), args=args):
            return any(isinstance(arg, ast.Constant) or getattr(arg, "id", "a").isupper() for arg in args)
        case ast.Call(func=ast.Name(id=name), args=args) if name in _SAME_LENGTH:
            is_strict = any(keyword.arg == "strict" for keyword in node.keywords)
            return (any if is_strict else all)(has_some(arg, known) for arg in args) and bool(args)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=[]) if name in _SAME_LENGTH:
            return has_some(value, known)
    return False


def assertions(
    node: ast.AST, known: frozenset[str], *, may_be_left_out: bool = False, is_counted: bool = False
) -> Iterator[bool]:
    """Yield for each assertion whether it is in a loop that may be over nothing, and in none that counts."""
    for child in ast.iter_child_nodes(node):
        in_loop, counts = may_be_left_out, is_counted
        match child:
            case ast.FunctionDef() | ast.Lambda():
                continue
            case ast.For(iter=ast.Call(func=ast.Name(id="each"))):
                counts = True
            case ast.For():
                in_loop |= not has_some(child.iter, known)
            case ast.Assert():
                yield in_loop and not counts
            case ast.With() if any("raises" in ast.unparse(item.context_expr) for item in child.items):
                yield in_loop and not counts
        yield from assertions(child, known, may_be_left_out=in_loop, is_counted=counts)


def may_look_at_nothing(path: Path) -> Iterator[str]:
    """Yield the tests of a file of which every assertion is in such a loop."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    constants = names_of_constants(module.body, frozenset())
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            is_drawn = any("given" in ast.unparse(decorator) for decorator in node.decorator_list)
            found = list(assertions(node, names_of_constants(node.body, constants)))
            if found and all(found) and not is_drawn and node.name not in MAY_BE_EMPTY:
                yield f"{path.relative_to(TESTS)}: {node.name}"


def test_no_test_asserts_only_in_loops_that_may_be_empty():
    """Write `for rule in each(rules, at_least=30)` (tests/support/looking.py)."""
    assert not [
        name for path in each(TESTS.rglob("test_*.py"), at_least=300) for name in may_look_at_nothing(path)
    ]


@pytest.mark.parametrize(
    ("body", "is_named"),
    [
        ("for v in found():\n  assert v", True),
        ("for v in zip((1, 2), found()):\n  assert v", True),
        ("for v in found():\n  with pytest.raises(ValueError):\n    f(v)", True),
        ("for v in found():\n  assert v\nassert found()", False),
        ("for v in (1, 2):\n  assert v", False),
        ("for v in sorted(KNOWN):\n  assert v", False),
        ("for v in zip((1, 2), found(), strict=True):\n  assert v", False),
        ("for v in each(found()):\n  assert v", False),
        ("for n in range(3):\n  for v in found(n):\n    assert v", True),
    ],
)
def test_a_loop_that_may_be_empty_is_told_from_one_that_is_not(body, is_named, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_loops.TESTS", tmp_path, raising=True)
    path = tmp_path / "test_it.py"
    path.write_text("KNOWN = [1]\ndef test_it():\n" + "".join(f"  {line}\n" for line in body.split("\n")))
    assert bool(list(may_look_at_nothing(path))) == is_named
