"""One entry of a rules file: where it is, and the checks that every form needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import RulesFileError
from smdebug.service.rules_file.wording import kind_of, shortened, suggestion

MAX_NAME = 256
MAX_VALUE = 2048


class Entry:
    """The place of one entry, for error messages, and the notes that reading it leaves."""

    def __init__(self, file: str, place: str, notes: list[str]):
        self._file = file
        self._place = place
        self._notes = notes

    def named(self, content: Any) -> Entry:
        """The same place, followed by the name that the entry has."""
        if isinstance(content, Mapping):
            for key in ("name", "RuleConfigurationName", "RuleName", "rule"):
                if isinstance(content.get(key), str):
                    place = f"{self._place} ({shortened(content[key])})"
                    return Entry(self._file, place, self._notes)
        return self

    def error(self, problem: str) -> RulesFileError:
        return RulesFileError(self._file, self._place, problem)

    def note(self, text: str) -> None:
        self._notes.append(f"{self._place}: {text}")

    def object(self, value: Any, what: str) -> dict[str, Any]:
        """A copy of `value`, which must be an object with strings as keys."""
        if not isinstance(value, Mapping):
            raise self.error(f"{what} must be an object, not {kind_of(value)}")
        if not all(isinstance(key, str) for key in value):
            raise self.error(f"the keys of {what} must be strings")
        return dict(value)

    def text(self, what: str, text: str) -> str:
        """`text`, if it can be encoded and stored."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.error(f"{what} contains half a character (a lone surrogate)") from None
        if "\0" in text:
            raise self.error(f"{what} contains a NUL character")
        return text

    def limit(self, count: int, what: str, most: int) -> None:
        """Refuse more than `most` of something."""
        if count > most:
            raise self.error(f"{count} {what}, at most {most} are allowed")

    def ignore_unused(self, content: Mapping[str, Any], known: Mapping[str, str]) -> None:
        """Note the keys without effect: those that `known` gives a reason for, and unknown ones.

        An unknown key that resembles a known one is probably a typing error, and refused.
        """
        for key in content:
            if key not in known:
                if meant := suggestion([key], known):
                    raise self.error(f"unknown key {shortened(str(key))!r}.{meant}")
                self.note(f"unknown key {shortened(str(key))} is ignored")
            elif known[key] and content[key] not in (None, ""):
                self.note(f"{key} is ignored: {known[key]}")


def as_list(value: Any) -> list[Any]:
    """A list as it is, or the items of a string that `;` or `,` separates."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in re.split("[;,]", value) if part.strip()]
    return list(value) if isinstance(value, list | tuple) else [value]
