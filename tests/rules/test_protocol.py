"""Built-in rules are written as users write theirs: with the public names of `Rule`."""

import ast
from pathlib import Path

import pytest

import smdebug.rules.rule
import smdebug_default_rules
import smdebug_rules


def names_in(source: Path) -> tuple[set[str], set[str]]:
    """The attributes that a module uses, and the names that it defines or assigns to."""
    used, own = set(), set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
                own.add(name)
            case ast.Attribute(attr=name):
                used.add(name)
    return used, own


def private_names_of_the_base() -> set[str]:
    used, own = names_in(Path(smdebug.rules.rule.__file__))
    return {name for name in used | own if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize("package", [smdebug_rules, smdebug_default_rules])
def test_built_in_rules_use_no_private_names_of_their_base(package):
    private = private_names_of_the_base()
    assert "_actions" in private
    wrong = {}
    for path in Path(package.__file__).parent.rglob("*.py"):
        used, own = names_in(path)
        if found := used & private - own:
            wrong[path.name] = found
    assert not wrong
