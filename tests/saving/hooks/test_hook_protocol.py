"""The hooks of frameworks use the public protocol of the base of all hooks, and no underscore names of it."""

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "layers" / "smdebug_core" / "python" / "smdebug"
FRAMEWORKS = sorted(
    path.parent.name
    for module in ("hook", "callback")
    for path in PACKAGE.glob(f"*/{module}.py")
    if path.parent.name not in {"saving", "core"}
)
BASES = [
    *(f"hooks/{each}" for each in ("base_hook", "configurable_hook", "hook", "options")),
    "recording/recorder",
    "recording/run_writer",
    "arrays/adapter",
]
OLD_NAMES = {"_prepare_collections_for_tf2"}  # scripts for the old library call it


def trees(package):
    for path in sorted((PACKAGE / package).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name != "_"


def defined_in(tree):
    """Every underscore name that the module binds: methods, attributes, variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        else:
            continue
        if is_private(name):
            yield name


@functools.cache
def private_names_of_the_base():
    return {
        name
        for base in BASES
        for name in defined_in(ast.parse((PACKAGE / "saving" / f"{base}.py").read_text()))
    }


def used_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, node.lineno


def test_there_are_frameworks_to_check():
    assert {"pytorch", "lightning"} <= set(FRAMEWORKS)


def test_every_framework_has_a_folder_of_tests():
    tests = Path(__file__).parents[2] / "frameworks"
    assert set(FRAMEWORKS) <= {path.name for path in tests.iterdir()}


def test_the_base_has_private_names():
    assert {"_prepare", "_plan", "_clock"} <= private_names_of_the_base()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_uses_no_underscore_names_of_the_base(framework):
    own = {name for _, tree in trees(framework) for name in defined_in(tree)}
    wrong = [
        f"{path.name}:{line} {name}"
        for path, tree in trees(framework)
        for name, line in used_in(tree)
        if name in private_names_of_the_base() - own
    ]
    assert not wrong


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_hook_of_a_framework_redefines_no_underscore_name_of_the_base(framework):
    wrong = [
        f"{path.name}: {kind.name}.{name}"
        for path, tree in trees(framework)
        for kind in tree.body
        if isinstance(kind, ast.ClassDef) and any("Hook" in ast.unparse(base) for base in kind.bases)
        for name in defined_in(kind)
        if name in private_names_of_the_base() and name not in OLD_NAMES
    ]
    assert not wrong
