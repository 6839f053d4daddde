"""Answers of commands, held against their JSON schemas."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from smdebug.cli.json_answers.schemas import DOCUMENTS, LINES, schema_of


def check_answer(words: list[str], out: str) -> None:
    """Fail unless what a command printed with `--json` is as its schema says, and has no other names."""
    command = words[0] if words else ""
    if "--json" not in words or not out.strip() or command not in {*DOCUMENTS, *LINES}:
        return
    prints_lines = command in LINES or "--watch" in words
    for document in out.splitlines() if prints_lines else [out]:
        problems = problems_of(command, json.loads(document))
        if problems:
            raise AssertionError(f"{words} answers in another form than its schema says: {sorted(problems)}")


def problems_of(command: str, answer: Any) -> set[tuple[str, str]]:
    """Return where the answer differs from what the schema says, and how."""
    return {found for error in _validator(command).iter_errors(answer) for found in _leaves(error)}


def _leaves(error: Any) -> set[tuple[str, str]]:
    if error.context:
        return {found for cause in error.context for found in _leaves(cause)}
    return {(".".join(map(str, error.absolute_path)), error.message)}


@cache
def _validator(command: str) -> Any:
    return jsonschema.Draft202012Validator(schema_of(command, is_closed=True))
