"""Hyperparameters of any form as a flat mapping of plain values: `{"optimizer": {"lr": 0.1}}` is
`{"optimizer.lr": 0.1}`."""

from __future__ import annotations

import dataclasses
import math
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any

from smdebug.exceptions import SMDebugTypeError
from smdebug.secrets.data import without_secret
from smdebug.secrets.texts import redacted

MOST_VALUES = 1000
LONGEST_TEXT = 500
MOST_IN_A_LIST = 50
_LONGEST_CHECKED = 20 * LONGEST_TEXT
"""Text beyond it is dropped before secrets are looked for in it."""
_DEEPEST = 8

Plain = bool | int | float | str | None | list[Any]


def flat_config(config: Any, what: str = "config", *, not_secret: Collection[str] = ()) -> dict[str, Plain]:
    """Return the values of a mapping, a namespace, a dataclass or an object with `to_dict()`, by dotted name.

    Secrets are left out, except by the names in `not_secret`. Values that JSON cannot represent become text.
    Values beyond 1,000 are dropped.
    """
    if config is None:
        return {}
    members = _members(config)
    if members is None:
        raise SMDebugTypeError(
            f"{what} must be a dictionary of hyperparameters, a namespace or a dataclass, "
            f"not {type(config).__name__}"
        )
    flat: dict[str, Plain] = {}
    for name, value in _flattened(members, "", 0, not_secret):
        if len(flat) >= MOST_VALUES:
            break
        flat[name] = value
    return flat


def _members(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, Namespace | SimpleNamespace):
        return vars(value)
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: getattr(value, field.name, None) for field in fields}
    for method in ("model_dump", "to_dict"):
        convert = getattr(value, method, None)
        if callable(convert):
            try:
                converted = convert()
            except Exception:  # noqa: BLE001 - of a class that is not ours
                return None
            return converted if isinstance(converted, Mapping) else None
    return None


def _flattened(
    members: Mapping[Any, Any], prefix: str, depth: int, not_secret: Collection[str]
) -> Iterator[tuple[str, Plain]]:
    for key, value in members.items():
        name = redacted(f"{prefix}{key}"[:LONGEST_TEXT], not_secret)
        inner = None if isinstance(value, str) or depth >= _DEEPEST else _inner(value)
        if inner:
            yield from _flattened(inner, f"{name}.", depth + 1, not_secret)
        else:
            yield name, plain_value(name, value, not_secret)


def _inner(value: Any) -> Mapping[Any, Any] | None:
    """Return the members of a nested configuration. An object with methods of its own is shown as text."""
    is_nested = isinstance(value, Mapping | Namespace | SimpleNamespace)
    return _members(value) if is_nested or dataclasses.is_dataclass(value) else None


def plain_value(name: str, value: Any, not_secret: Collection[str] = ()) -> Plain:
    """Return the value as JSON can hold it, shortened, without secrets."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(without_secret(name, value[:_LONGEST_CHECKED], not_secret))[:LONGEST_TEXT]
    if isinstance(value, int):
        kept = without_secret(name, int(value), not_secret)
        return kept if isinstance(kept, str) or value.bit_length() <= 64 else str(float(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, list | tuple | set | frozenset):
        items = list(value)[:MOST_IN_A_LIST]
        if all(isinstance(item, str | bool | int | float | None) for item in items):
            return _plain_list(name, items, not_secret)
    number = getattr(value, "item", None)
    if callable(number) and getattr(value, "size", None) == 1:  # a scalar of NumPy
        return plain_value(name, number(), not_secret)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"[:LONGEST_TEXT]
    try:
        return str(without_secret(name, str(value)[:_LONGEST_CHECKED], not_secret))[:LONGEST_TEXT]
    except Exception:  # noqa: BLE001 - of a class that is not ours
        return f"<{type(value).__name__}>"


def _plain_list(name: str, items: list[Any], not_secret: Collection[str]) -> list[Any]:
    """Return the items; texts are read as a command line, where one may name what the next is."""
    if all(isinstance(item, str) for item in items):
        shown = without_secret(name, [item[:_LONGEST_CHECKED] for item in items], not_secret)
        return [item[:LONGEST_TEXT] for item in shown]
    return [plain_value(name, item, not_secret) for item in items]
