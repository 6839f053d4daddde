"""Where a run comes from: `origin.json`, which the first worker writes once per attempt.

    {"version": 1, "run_id": "…", "training_run": 0, "started": "2026-11-22T11:40:00+00:00",
     "command": ["python", "train.py", "--lr", "0.1"], "python": "3.11.9", "platform": "Linux-6.1-x86_64",
     "host": "gpu-7", "packages": {"torch": "2.13.0"},
     "git": {"commit": "4f2c…", "branch": "main", "dirty": true},
     "config": {"lr": 0.1, "optimizer.name": "adam"}, "tags": ["baseline"], "note": "…",
     "not_secret": ["auth_key"],
     "imported": {"format": "tensorboard", "source": "/logs/a", "steps": "step",
                  "series": {"train/loss": "loss (train)"}, "left_out": {"images": 3}}}

Every key is optional to a reader. The configuration is flat; values are numbers, texts, booleans, null and
lists of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from smdebug.files.names import ORIGIN
from smdebug.files.notes.json_object import object_in
from smdebug.secrets.arguments import redacted_command
from smdebug.secrets.data import without_secret
from smdebug.secrets.texts import redacted

VERSION = 1
MAX_BYTES = 1 << 20
_MOST_ENTRIES = 2000
_LONGEST = 2000


@dataclass(frozen=True)
class ImportedFrom:
    """Which log of another tool a run was imported from."""

    format: str
    source: str
    """The file or folder."""
    steps: str = "step"
    """What the numbers of its steps count: `step`, `epoch` or `row`."""
    series: Mapping[str, str] = field(default_factory=dict)
    """Which series, and of which mode, each series of the log became."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How much of what was not imported."""

    @classmethod
    def parse(cls, content: Any) -> ImportedFrom | None:
        """Return what a file says of it; None if it says nothing that can be read."""
        if not isinstance(content, dict) or not _text(content.get("format")):
            return None
        return cls(
            _text(content.get("format")),
            _text(content.get("source")),
            _text(content.get("steps")) or "step",
            {name: _text(series) for name, series in _entries(content.get("series"))},
            {what: count for what, count in _entries(content.get("left_out")) if type(count) is int},
        )

    def without_secrets(self, not_secret: Collection[str]) -> ImportedFrom:
        """Return it with `***` in the place of secrets."""
        series = {redacted(name, not_secret): redacted(to, not_secret) for name, to in self.series.items()}
        left_out = {redacted(what, not_secret): count for what, count in self.left_out.items()}
        return replace(self, source=redacted(self.source, not_secret), series=series, left_out=left_out)


@dataclass(frozen=True)
class Origin:
    """The command, versions, host, commit and hyperparameters of a run."""

    run_id: str = ""
    training_run: int = 0
    started: str = ""
    command: tuple[str, ...] = ()
    python: str = ""
    platform: str = ""
    host: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    branch: str = ""
    dirty: bool | None = None
    """Whether tracked files had changes that were not committed; None if that is unknown."""
    config: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    note: str = ""
    not_secret: tuple[str, ...] = ()
    """The names whose values are kept although they look like those of secrets."""
    pinned: bool = False
    """Whether people have pinned the run as a baseline, which `annotations.json` says."""
    imported: ImportedFrom | None = None
    """The log of another tool that the run was imported from; None for a run that a hook has saved."""

    def without_secrets(self) -> Origin:
        """Return the origin with `***` in the place of secrets."""
        listed = self.not_secret
        return replace(
            self,
            command=tuple(redacted_command(self.command, listed)),
            platform=redacted(self.platform, listed),
            host=redacted(self.host, listed),
            branch=redacted(self.branch, listed),
            config={
                redacted(name, listed): without_secret(name, value, listed)
                for name, value in self.config.items()
            },
            tags=tuple(redacted_command(self.tags, listed)),
            note=redacted(self.note, listed),
            imported=None if self.imported is None else self.imported.without_secrets(listed),
        )

    def encode(self) -> bytes:
        """Return the content of the file, without secrets."""
        return self.without_secrets()._encoded()

    def _encoded(self) -> bytes:
        content: dict[str, Any] = {"version": VERSION}
        for name in ("run_id", "started", "python", "platform", "host", "note"):
            if getattr(self, name):
                content[name] = getattr(self, name)
        content["training_run"] = self.training_run
        content["command"] = list(self.command)
        content["packages"] = dict(self.packages)
        if self.commit:
            content["git"] = {"commit": self.commit, "branch": self.branch, "dirty": self.dirty}
        content["config"] = dict(self.config)
        content["tags"] = list(self.tags)
        if self.not_secret:
            content["not_secret"] = list(self.not_secret)
        if self.imported is not None:
            content["imported"] = _plain_imported(self.imported)
        text = json.dumps(content, ensure_ascii=True, indent=1, allow_nan=False)
        return (text + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, place: str = ORIGIN) -> Origin:
        """Return the content, without values of wrong types; `DamagedFile` if it is not a JSON object.

        Secrets that an older version has written are left out, too.
        """
        content = object_in(data, place, MAX_BYTES)
        git = content.get("git")
        git = git if isinstance(git, dict) else {}
        dirty = git.get("dirty")
        attempt = content.get("training_run")
        config = content.get("config")
        packages = content.get("packages")
        return cls(
            run_id=_text(content.get("run_id")),
            training_run=attempt if type(attempt) is int else 0,
            started=_text(content.get("started")),
            command=_texts(content.get("command")),
            python=_text(content.get("python")),
            platform=_text(content.get("platform")),
            host=_text(content.get("host")),
            packages={
                name: _text(version) for name, version in _entries(packages) if isinstance(version, str)
            },
            commit=_text(git.get("commit")),
            branch=_text(git.get("branch")),
            dirty=dirty if isinstance(dirty, bool) else None,
            config={name: value for name, value in _entries(config) if _is_plain(value)},
            tags=_texts(content.get("tags")),
            note=_text(content.get("note")),
            not_secret=_texts(content.get("not_secret")),
            imported=ImportedFrom.parse(content.get("imported")),
        ).without_secrets()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            **vars(self),
            "command": list(self.command),
            "tags": list(self.tags),
            "not_secret": list(self.not_secret),
            "packages": dict(self.packages),
            "config": dict(self.config),
            "imported": None if self.imported is None else _plain_imported(self.imported),
        }


def _plain_imported(imported: ImportedFrom) -> dict[str, Any]:
    return {**vars(imported), "series": dict(imported.series), "left_out": dict(imported.left_out)}


def _entries(value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return []
    return [(str(name)[:_LONGEST], entry) for name, entry in list(value.items())[:_MOST_ENTRIES]]


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= _MOST_ENTRIES and all(
            not isinstance(item, list) and _is_plain(item) for item in value
        )
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item[:_LONGEST] for item in value[:_MOST_ENTRIES] if isinstance(item, str))
