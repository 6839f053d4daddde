from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug.rules.generic
import smdebug_rules
from smdebug.diagnosis import CAUSES
from smdebug.rules import Rule
from smdebug_default_rules.catalog import CATALOG as DEFAULT_RULES
from smdebug_rules.catalog import CATALOG
from tests.support.looking import each

FOLDER = Path(smdebug_rules.__file__).parent
SHARED = {
    "loss.losses",
    "layers.activity",
    "labels.classes",
    "trees.xgboost_page",
    "reference",
}  # by several rules, or too long for one file


ALL_RULES = {**CATALOG, **DEFAULT_RULES}


def defaults_in_catalog(entry):
    """The default of each parameter by its name. An alias has none: it is another name for a parameter."""
    of_names = {parameter.name: parameter.default for parameter in entry.parameters}
    aliases = [alias for parameter in entry.parameters for alias in parameter.aliases]
    return of_names | dict.fromkeys(aliases)


def defaults_in_constructor(rule):
    parameters = inspect.signature(rule).parameters
    of_every_rule = ("base_trial", "action_str")
    return {name: parameter.default for name, parameter in parameters.items() if name not in of_every_rule}


@pytest.mark.parametrize("name", ALL_RULES)
def test_the_catalog_names_the_class_of_a_rule(name):
    rule = ALL_RULES[name].load()
    assert issubclass(rule, Rule)
    assert rule.__name__ == name


@pytest.mark.parametrize("name", ALL_RULES)
def test_the_catalog_lists_the_parameters_of_the_constructor_with_their_defaults(name):
    entry = ALL_RULES[name]
    assert defaults_in_catalog(entry) == defaults_in_constructor(entry.load())


@pytest.mark.parametrize("name", CATALOG)
def test_the_catalogs_sentence_is_the_modules_first(name):
    entry = CATALOG[name]
    module = importlib.import_module(entry.module)
    assert module.__doc__.strip() == entry.sentence


@pytest.mark.parametrize("name", [name for name in CATALOG if name != "CreateXgboostReport"])
def test_every_rule_that_fires_says_what_to_try(name):
    """Its advice is one to three sentences; a cause is one that the diagnosis knows."""
    rule = CATALOG[name].load()
    assert rule.cause in ("", *CAUSES)
    assert all(cause in ("", *CAUSES) for cause in rule.advice)
    assert 1 <= len(rule.advice[""]) <= 3
    assert all(text.endswith(".") for text in rule.advice[""])


def test_every_rule_is_a_file_of_its_own_and_every_file_is_in_the_catalog():
    files = {
        ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        for path in FOLDER.rglob("*.py")
        if path.stem not in {"__init__", "catalog"}
    }
    assert {entry.module for entry in CATALOG.values()} == {
        f"smdebug_rules.{file}" for file in files - SHARED
    }


def test_every_rule_has_a_file_of_tests():
    for entry in each(CATALOG.values(), at_least=20):
        _, room, name = entry.module.split(".")
        assert (Path(__file__).parent / room / f"test_{name}.py").is_file()


def test_the_rules_are_where_they_were_documented():
    for name, entry in CATALOG.items():
        assert getattr(smdebug.rules.generic, name) is entry.load()
        assert getattr(importlib.import_module("tornasole.rules.generic"), name) is entry.load()
        assert getattr(smdebug_rules, name) is entry.load()
    assert set(CATALOG) <= set(dir(smdebug.rules.generic))


def test_asking_the_catalog_loads_no_rule():
    code = (
        "import sys, smdebug.rules.generic as g; g.catalog(); "
        "assert not [m for m in sys.modules if m.startswith('smdebug_rules.') "
        "and m != 'smdebug_rules.catalog']; assert 'boto3' not in sys.modules"
    )
    env = {"PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_a_built_in_rule_is_written_as_a_user_would_write_it(path):
    allowed = ("smdebug.", "smdebug_rules.", "smdebug_default_rules.", "numpy", "__future__")
    standard = {"collections", "collections.abc", "dataclasses", "html", "importlib", "inspect"}
    standard |= {"json", "math", "smdebug", "time", "typing"}  # smdebug: in the code of a page
    for line in each(path.read_text().splitlines()):
        words = line.split()
        if words[:1] in (["from"], ["import"]):
            module = words[1]
            assert module in standard or module.startswith(allowed), line
            assert not any(part.startswith("_") for part in module.split(".") if module in standard)
            assert "smdebug.core" not in module
