"""Limits of sizes, import circles, names and lines, for every Python file of the repository."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
    "corpus",
    "examples",
    "book",
    "tests",
    "tools",
)
FOLDER_MODULES = 20
MODULE_LINES = 400
CLASS_LINES = 300
#: A longer module or class says why in its docstring, in a sentence that begins so.
REASON = re.compile("(It|The class) is long because")
FORBIDDEN_NAMES = {"told", "one"}
#: A value in brackets of its own, as its comment did not fit beside it.
BRACKETED = re.compile(r"^( *)[^\n]* \(\n *[^\n#(\[{]+  # [^\n]*\n\1\)$", re.MULTILINE)


@cache
def sources() -> tuple[Path, ...]:
    found = [path for place in PLACES for path in sorted((ROOT / place).rglob("*.py"))]
    return tuple(path for path in found if not path.name.endswith("_pb2.py"))


class Contents(NamedTuple):
    """What a file holds, as far as it is checked here: the trees of all files would fill the memory."""

    lines: int
    is_excused: bool
    """Whether it gives a reason for its length, or its one long class does."""
    long_classes: dict[str, int]
    """The lines of each long class that gives no reason."""
    vague_names: list[str]
    starred_literals: list[int]
    """The lines of `*(a, b)`, whose elements belong into what is around them."""
    bracketed: list[str]
    imports: set[tuple[str, str]]
    """What it imports anywhere: for types alone, in a function, by name."""


@cache
def contents_of(path: Path) -> Contents:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    return Contents(
        lines=source.count("\n"),
        is_excused=gives_a_reason(tree)
        or any(gives_a_reason(node) for node in tree.body if isinstance(node, ast.ClassDef)),
        long_classes={
            node.name: lines
            for node in nodes
            if isinstance(node, ast.ClassDef)
            and (lines := (node.end_lineno or 0) - node.lineno + 1) > CLASS_LINES
            and not gives_a_reason(node)
        },
        vague_names=[f"{line} {name}" for name, line in bindings(nodes) if name in FORBIDDEN_NAMES],
        starred_literals=[
            node.lineno
            for node in nodes
            if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List | ast.Set)
        ],
        bracketed=[match[0] for match in BRACKETED.finditer(source)],
        imports={name for node in nodes for name in names_imported_by(node)},
    )


def place_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def gives_a_reason(node: ast.Module | ast.ClassDef) -> bool:
    return bool(REASON.search(" ".join((ast.get_docstring(node) or "").split())))


def bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Each name that is bound, with its line: variables, parameters, attributes, functions."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno


def names_imported_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Each module that is imported, with the name that is taken from it, which may be a module itself."""
    match node:
        case ast.Import(names=aliases):
            yield from ((alias.name, "") for alias in aliases)
        case ast.ImportFrom(module=str(module), names=aliases):
            yield from ((module, alias.name) for alias in aliases)
        case ast.Call(func=function, args=arguments) if "import_module" in ast.unparse(function):
            yield from ((str(each.value), "") for each in arguments if isinstance(each, ast.Constant))


def test_there_are_sources_to_check():
    assert len(sources()) > 400


def test_a_folder_holds_few_modules():
    folders = Counter(path.parent for path in sources() if path.name != "__init__.py")
    assert not {place_of(folder): n for folder, n in folders.items() if n > FOLDER_MODULES}


def test_a_long_module_says_why():
    contents = {place_of(path): contents_of(path) for path in sources()}
    assert not {
        place: of.lines for place, of in contents.items() if of.lines > MODULE_LINES and not of.is_excused
    }


def scripts_of_the_page() -> tuple[Path, ...]:
    """The page's own scripts, without the vendored library beside them."""
    return tuple(sorted((LAYER / "smdebug" / "ui" / "page").glob("*.js")))


def test_no_script_of_the_page_is_long():
    assert len(scripts_of_the_page()) > 10
    long = {
        place_of(path): lines
        for path in scripts_of_the_page()
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MODULE_LINES
    }
    assert not long


def test_no_line_of_a_script_is_long():
    assert not [
        f"{place_of(path)}:{number}"
        for path in scripts_of_the_page()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120
    ]


def test_scripts_of_the_page_import_each_other_without_a_circle():
    imports = {
        path.name: set(re.findall(r'from "\./(\w+\.js)"', path.read_text(encoding="utf-8")))
        for path in scripts_of_the_page()
    }
    while leaves := {name for name, used in imports.items() if not used & imports.keys()}:
        imports = {name: used for name, used in imports.items() if name not in leaves}
    assert not imports


def test_the_page_loads_its_scripts_at_once():
    page = LAYER / "smdebug" / "ui" / "page"
    named = set(re.findall(r'href="page/(\w+\.js)"', (page / "index.html").read_text("utf-8")))
    own = {path.name for path in scripts_of_the_page()}
    assert named == own - {"app.js"}


def test_a_long_class_says_why():
    assert not {
        f"{place_of(path)}: {name}": lines
        for path in sources()
        for name, lines in contents_of(path).long_classes.items()
    }


def test_a_name_says_what_it_names():
    assert not [f"{place_of(path)}:{name}" for path in sources() for name in contents_of(path).vague_names]


def test_no_literal_is_starred():
    starred = [(place_of(path), contents_of(path).starred_literals) for path in sources()]
    assert [f"{place}:{line}" for place, lines in starred for line in lines] == []


def test_a_long_comment_is_above_its_value_and_puts_no_brackets_around_it():
    bracketed = [(place_of(path), contents_of(path).bracketed) for path in sources()]
    assert [(place, each) for place, found in bracketed for each in found] == []


def module_name(path: Path) -> str:
    root = next(root for root in SOURCE_ROOTS if path.is_relative_to(root))
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {module_name(path): path for path in sources()}


def imported_modules(path: Path) -> set[str]:
    """The modules of ours that a file imports."""
    named = (
        inside if (inside := f"{module}.{name}") in modules() else module
        for module, name in contents_of(path).imports
    )
    return {name for name in named if name in modules()}


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


def siblings() -> dict[str, dict[str, set[str]]]:
    """For each package that has sub-rooms: which of them import which others."""
    inside = {
        name: name.split(".")
        for name, path in modules().items()
        if path.name != "__init__.py" and not name.startswith("tests.")
    }
    arrows: dict[str, dict[str, set[str]]] = {}
    for name, parts in inside.items():
        imported = [other.split(".") for other in imported_modules(modules()[name])]
        for depth in range(1, len(parts) - 1):
            room = arrows.setdefault(".".join(parts[:depth]), {}).setdefault(parts[depth], set())
            room |= {
                other[depth]
                for other in imported
                if other[:depth] == parts[:depth] and len(other) > depth + 1
            }
    return arrows


#: What arrives moves the life of a run on, and the end of a life lists what has not arrived.
CIRCLES_OF_ROOMS = {"functions": [["arrivals", "lifecycle"]]}


def test_sub_rooms_import_each_other_in_no_circle():
    rooms = siblings()
    del rooms["smdebug"]  # `test_architecture.py` draws the arrows of its rooms
    assert {"planning", "writing"} <= rooms["smdebug.saving"]["recording"]
    found = {
        package: circles({room: to & arrows.keys() - {room} for room, to in arrows.items()})
        for package, arrows in rooms.items()
    }
    assert {package: each for package, each in found.items() if each} == CIRCLES_OF_ROOMS


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


def test_no_saved_run_is_part_of_the_repository():
    tracked = subprocess.run(
        ["git", "ls-files", "*/collections/000000000/*", "collections/*", "*/END_OF_JOB.ts"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert [path for path in tracked if not path.startswith("tests/")] == []
