"""What keeps the rooms habitable: sizes, circles and names, held for every Python file of the repository."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYER = ROOT / "layers" / "smdebug_core" / "python"
#: Where a module's dotted name begins.
SOURCE_ROOTS = (LAYER, ROOT / "rules", ROOT)
PLACES = (
    "layers",
    "rules",
    "functions",
    "infra",
    "local_aws",
    "bench",
    "examples",
    "book",
    "tests",
    "tools",
)
MODULE_LINES = 400
CLASS_LINES = 300
#: A longer module or class says why in its docstring, in a sentence that begins so.
REASON = re.compile("(It|The class) is long because")
FORBIDDEN_NAMES = {"told", "one"}


@cache
def sources() -> tuple[Path, ...]:
    found = [path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]
    return tuple(path for path in found if not path.name.endswith("_pb2.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def place_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def gives_a_reason(node: ast.Module | ast.ClassDef) -> bool:
    return bool(REASON.search(" ".join((ast.get_docstring(node) or "").split())))


def is_excused(tree: ast.Module) -> bool:
    """Whether a long module gives a reason, or its one long class does."""
    return gives_a_reason(tree) or any(
        gives_a_reason(node) for node in tree.body if isinstance(node, ast.ClassDef)
    )


def test_there_are_sources_to_check():
    assert len(sources()) > 400


def test_a_long_module_says_why():
    long = {
        place_of(path): lines
        for path in sources()
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MODULE_LINES
        and not is_excused(tree_of(path))
    }
    assert not long


def test_a_long_class_says_why():
    long = {
        f"{place_of(path)}: {node.name}": lines
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > CLASS_LINES
        and not gives_a_reason(node)
    }
    assert not long


def bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each name that the module binds, with its line: variables, parameters, attributes, functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno


def test_a_name_says_what_it_names():
    vague = [
        f"{place_of(path)}:{line} {name}"
        for path in sources()
        for name, line in bindings(tree_of(path))
        if name in FORBIDDEN_NAMES
    ]
    assert not vague


def module_name(path: Path) -> str:
    root = next(root for root in SOURCE_ROOTS if path.is_relative_to(root))
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in sources() if "tests" not in path.parts}


def imported_modules(path: Path) -> set[str]:
    """The modules of ours that a file imports anywhere: for types alone, in a function, by name."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else node.module for name in inside]
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            names = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
        found.update(name for name in names if name in modules())
    return found


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that reach each other, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in sorted(arrows[name]):
            if target not in order:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            group = []
            while True:
                group.append(stack.pop())
                if group[-1] == name:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(arrows):
        if name not in order:
            visit(name)
    return found


#: Arrows back that are looked up by name when they are used. ARCHITECTURE.md says why.
DOCUMENTED_ARROWS = (
    ("smdebug.rules.generic", "smdebug_rules.catalog"),
    ("smdebug.rules.rule_sets", "smdebug_default_rules.catalog"),
    ("smdebug.trials.shown", "smdebug.notebook"),
    ("smdebug.diagnosis.issues", "smdebug.diagnosis.html"),
)


def test_modules_import_each_other_in_no_circle():
    arrows = {name: imported_modules(path) - {name} for name, path in modules().items()}
    for start, end in DOCUMENTED_ARROWS:
        assert end in arrows[start], f"{start} no longer needs {end}: drop the arrow here and there"
        arrows[start].discard(end)
    assert circles(arrows) == []


def test_modules_of_the_page_import_each_other_in_no_circle():
    folder = LAYER / "smdebug" / "ui" / "page"
    arrows = {
        path.name: set(re.findall(r'from "\./([^"/]+)"', path.read_text(encoding="utf-8")))
        for path in folder.glob("*.js")
    }
    assert "dom.js" in arrows["app.js"]
    assert circles(arrows) == []


@pytest.mark.parametrize(
    ("arrows", "expected"),
    [
        ({"a": {"b"}, "b": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, [["a", "b", "c"]]),
    ],
)
def test_circles_are_found(arrows, expected):
    assert circles(arrows) == expected
