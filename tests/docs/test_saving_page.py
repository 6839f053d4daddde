"""docs/saving.md describes the options of hooks."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from smdebug.saving.hooks.options import HookOptions
from tests.docs.pages import ROOT, text_of

LIBRARY = ROOT / "layers" / "smdebug_core" / "python" / "smdebug"
SAVING, FRAMEWORKS = (text_of(ROOT / "docs" / f"{page}.md") for page in ("saving", "frameworks"))


def is_described(option: str, page: str) -> bool:
    """Whether the page names the option in code: `option`, `option=…`."""
    return re.search(rf"`{option}\b|\b{option}=", page) is not None


@pytest.mark.parametrize("option", [field.name for field in fields(HookOptions)])
def test_every_option_of_all_hooks_is_described(option):
    assert is_described(option, SAVING)


def options_of_frameworks() -> dict[str, Path]:
    """The fields that packages of frameworks add to `HookOptions`; importing them needs the framework."""
    every_hook = {field.name for field in fields(HookOptions)}
    return {
        statement.target.id: path
        for path in sorted(LIBRARY.rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Options")
        if node.name != "HookOptions" and any("Options" in ast.unparse(base) for base in node.bases)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        if statement.target.id not in every_hook | {"_"}
    }


def test_every_option_of_one_framework_is_described():
    found = options_of_frameworks()
    assert {"compiled_layers", "train_data"} <= found.keys()
    assert not {
        option: path.relative_to(LIBRARY)
        for option, path in found.items()
        if not is_described(option, SAVING + FRAMEWORKS)
    }
