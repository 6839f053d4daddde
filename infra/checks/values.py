"""The kinds of values that settings have, and how they are read from text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any


class SettingsError(ValueError):
    """An invalid setting: the message says which, what is wrong, and what to write instead."""


class WorkflowType(StrEnum):
    EXPRESS = "express"
    STANDARD = "standard"


class Removal(StrEnum):
    """Whether the runs and the step index survive the deletion of the stack."""

    RETAIN = "retain"
    DESTROY = "destroy"


class Architecture(StrEnum):
    ARM64 = "arm64"
    X86_64 = "x86_64"


def _text(_: str, value: Any) -> str:
    return str(value)


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
        raise SettingsError(f"{name}={value!r} is not a whole number.")
    return int(value)


def _truth(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise SettingsError(f"{name}={value!r} is neither true nor false.")
    return str(value).lower() == "true"


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """Read a list from cdk.json, or comma-separated text from the command line."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, Sequence) or not all(isinstance(part, str) for part in value):
        raise SettingsError(f"{name}={value!r} is neither a list of texts nor comma-separated text.")
    return tuple(value)


def _one_of(choices: type[StrEnum]) -> Any:
    def read(name: str, value: Any) -> StrEnum:
        try:
            return choices(str(value).lower())
        except ValueError:
            raise SettingsError(f"{name}={value!r} is not one of {', '.join(choices)}.") from None

    return read


def _folder(_: str, value: Any) -> Path:
    return Path(str(value)).resolve()


READERS: dict[str, Any] = {
    "str": _text,
    "str | None": _text,
    "int": _number,
    "int | None": _number,
    "bool": _truth,
    "tuple[str, ...]": _texts,
    "WorkflowType": _one_of(WorkflowType),
    "Removal": _one_of(Removal),
    "Architecture": _one_of(Architecture),
    "Path": _folder,
}
