"""Secrets in values with names, and in plain data of any depth."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from smdebug.secrets.addresses import only_host
from smdebug.secrets.arguments import redacted_command
from smdebug.secrets.names import Secrecy, names_address, secrecy_of
from smdebug.secrets.texts import redacted
from smdebug.secrets.values import LEFT_OUT, is_kept

_DEEPEST = 40


def without_secret(name: str, value: Any, not_secret: Collection[str] = ()) -> Any:
    """Return the value, or what is left of it without secrets, by its name and its form.

    Numbers are kept unless the name is that of a password: `push_token=True` says whether there is one.
    Names in `not_secret` say nothing of their values, whose form still does.
    """
    secrecy = secrecy_of(name, not_secret)
    if isinstance(value, str):
        if not is_kept(secrecy, value):
            return LEFT_OUT
        return redacted(only_host(value) if names_address(name) and "://" in value else value, not_secret)
    if isinstance(value, list | tuple):
        if all(isinstance(item, str) for item in value) and secrecy is Secrecy.NONE:
            return redacted_command(value, not_secret)
        return [without_secret(name, item, not_secret) for item in value]
    if secrecy is Secrecy.ALWAYS and isinstance(value, int) and not isinstance(value, bool):
        return LEFT_OUT
    return value


def redacted_data(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return JSON data with `***` in the place of secrets, in names as in values."""
    if depth > _DEEPEST:
        return LEFT_OUT
    if isinstance(value, Mapping):
        return {
            redacted(key) if isinstance(key, str) else key: redacted_data(
                item, f"{name}.{key}" if name else str(key), depth + 1
            )
            for key, item in value.items()
        }
    if isinstance(value, list | tuple) and not all(isinstance(item, str) for item in value):
        return [redacted_data(item, name, depth + 1) for item in value]
    return without_secret(name, value)
