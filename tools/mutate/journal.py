"""What was found out already, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def fingerprint(root: Path, files: Iterable[Path]) -> str:
    """Return a digest of the files' names and contents."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


class Journal:
    """Lines of JSON by a key; the file is begun anew if it is of other sources."""

    def __init__(self, path: Path, sources: str):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._known: dict[str, Any] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if lines[:1] == [sources]:
            for line in lines[1:]:
                with suppress(ValueError):  # one that was cut off
                    key, value = json.loads(line)
                    self._known[key] = value
        else:
            path.write_text(sources, encoding="utf-8")

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> Any:
        return self._known[key]

    def keep(self, key: str, value: Mapping[str, Any] | bool | None) -> None:
        """Keep a value, also if the process is killed afterwards."""
        self._known[key] = value
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps([key, value]))
