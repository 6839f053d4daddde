"""The programs and faults as they are written, without importing a framework."""

from __future__ import annotations

import ast
from pathlib import Path

KINDS = {"healthy": ("healthy",), "fault": ("faulty", "twin")}


def written() -> list[tuple[str, str]]:
    """The name and kind of each training in `corpus/programs` and its folders."""
    return [
        (node.name.replace("_", " "), kind)
        for module in sorted(Path(__file__).parents[1].joinpath("programs").rglob("*.py"))
        for node in ast.parse(module.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        for kind in KINDS.get(getattr(getattr(decorator, "func", None), "id", ""), ())
    ]
