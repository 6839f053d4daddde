"""What people have written about a run: `annotations.json`, of which each change writes all anew.

    {"version": 1, "tags": ["baseline", "for the paper"], "note": "…", "pinned": true,
     "group": "sweep of learning rates"}

`tags` and `note` take the place of those in the run's `origin.json`, and `group` that of the `group` in its
configuration; if they are missing or null, those hold.
Text has no secrets, as in `origin.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.files.names import ANNOTATIONS
from smdebug.files.notes.json_object import object_in
from smdebug.files.notes.origin import Origin
from smdebug.secrets.arguments import redacted_command
from smdebug.secrets.texts import redacted

VERSION = 1
MAX_BYTES = 1 << 18
MOST_TAGS = 50
LONGEST_TAG = 100
LONGEST_NOTE = 2000
LONGEST_GROUP = 100
GROUP = "group"
"""The name of the group of a run in its configuration."""


@dataclass(frozen=True)
class Annotations:
    """Tags, a note, a group, and whether the run is pinned as a baseline. None: as the training gave it."""

    tags: tuple[str, ...] | None = None
    note: str | None = None
    pinned: bool = False
    group: str | None = None

    def over(self, origin: Origin | None) -> Origin:
        """Return the origin with these tags, this note, this group and this pin."""
        origin = origin or Origin()
        config = origin.config if self.group is None else {**origin.config, GROUP: self.group}
        return replace(
            origin,
            tags=origin.tags if self.tags is None else self.tags,
            note=origin.note if self.note is None else self.note,
            pinned=self.pinned,
            config=config,
        )

    def with_changes(self, changes: dict[str, Any]) -> Annotations:
        """Return them with what a person has changed; raise `SMDebugValueError` for what cannot be kept."""
        known = {"tags", "note", "pinned", "group"}
        if not changes or not changes.keys() <= known:
            raise SMDebugValueError(f"give at least one of {', '.join(sorted(known))}, and nothing else")
        found = dict(changes)
        if "tags" in found:
            found["tags"] = _checked_tags(found["tags"])
        note = found.get("note", "")
        if not isinstance(note, str) or len(note) > LONGEST_NOTE:
            raise SMDebugValueError(f"note must be a text of at most {LONGEST_NOTE:,} characters")
        group = found.get("group")
        if group is not None:
            if not isinstance(group, str) or len(group) > LONGEST_GROUP:
                raise SMDebugValueError(f"group must be a text of at most {LONGEST_GROUP} characters")
            found["group"] = " ".join(group.split()) or None
        if not isinstance(found.get("pinned", False), bool):
            raise SMDebugValueError("pinned must be true or false")
        return replace(self, **found).without_secrets()

    def without_secrets(self) -> Annotations:
        """Return them with `***` in the place of secrets."""
        return replace(
            self,
            tags=None if self.tags is None else tuple(redacted_command(self.tags)),
            note=None if self.note is None else redacted(self.note),
            group=None if self.group is None else redacted(self.group),
        )

    def encode(self) -> bytes:
        """Return the content of the file, without secrets."""
        clean = self.without_secrets()
        content = {
            "version": VERSION,
            "tags": None if clean.tags is None else list(clean.tags),
            "note": clean.note,
            "pinned": clean.pinned,
            "group": clean.group,
        }
        return (json.dumps(content, ensure_ascii=True, indent=1) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, place: str = ANNOTATIONS) -> Annotations:
        """Return the content, without values of wrong types; `DamagedFile` if it is not a JSON object."""
        content = object_in(data, place, MAX_BYTES)
        tags, note, group = content.get("tags"), content.get("note"), content.get("group")
        if isinstance(tags, list):
            tags = tuple(tag[:LONGEST_TAG] for tag in tags[:MOST_TAGS] if isinstance(tag, str))
        return cls(
            tags if isinstance(tags, tuple) else None,
            note[:LONGEST_NOTE] if isinstance(note, str) else None,
            content.get("pinned") is True,
            group[:LONGEST_GROUP] if isinstance(group, str) and group else None,
        ).without_secrets()


def _checked_tags(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(tag, str) for tag in given):
        raise SMDebugValueError("tags must be a list of texts")
    tags = tuple(dict.fromkeys(" ".join(tag.split()) for tag in given if tag.strip()))
    if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in tags):
        raise SMDebugValueError(f"a run has at most {MOST_TAGS} tags of at most {LONGEST_TAG} characters")
    if any("," in tag for tag in tags):
        raise SMDebugValueError("a tag has no comma, which separates tags")
    return tags
