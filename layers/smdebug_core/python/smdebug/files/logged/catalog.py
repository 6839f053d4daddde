"""The catalog of what a worker has logged to be looked at, and the names of the files that hold it.

    logged/catalogs/<worker>.value            the catalog, as JSON
    logged/values/<worker>/<number:06>.png    an image: 8 bits, gray or colours, with or without alpha
    logged/values/<worker>/<number:06>.wav    sound: PCM of 16 bits
    logged/values/<worker>/<number:06>.value  the others, as JSON: see `files.logged.contents`

    {"version": 1, "run_id": "…", "left_out": {"too large": 2},
     "values": [{"number": 0, "name": "digits", "kind": "image", "step": 100, "mode": "TRAIN",
                 "time": 1764000000.0, "bytes": 812, "caption": "…", "note": "…", "shape": [28, 28, 1]}]}

The names of files are numbers: what a person calls a value is in the catalog alone. A value's file is written
before the catalog that lists it. No name ends in `.json`, which an S3 bucket would notify of.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from smdebug.files.names import LOGGED_CATALOGS, LOGGED_VALUES, file_name_of, worker_in
from smdebug.files.notes.json_object import object_in
from smdebug.secrets.texts import redacted

VERSION = 1
MAX_BYTES = 2 << 20
"""Of a catalog."""
MOST_VALUES = 1000
"""How many values a worker keeps."""
MOST_BYTES = 64 << 20
"""How many bytes the files of a worker's values have together."""
MOST_BYTES_OF_IMAGE = MOST_BYTES_OF_SOUND = 4 << 20
MOST_BYTES_OF_TEXT = 256 << 10
"""Of a text, a table, a matrix or a histogram."""
LONGEST_NAME = 200
LONGEST_CAPTION = 1000

IMAGE, TEXT, TABLE, CONFUSION, HISTOGRAM, AUDIO = KINDS = (
    "image",
    "text",
    "table",
    "confusion_matrix",
    "histogram",
    "audio",
)
_SUFFIX = ".value"
_SUFFIXES = {IMAGE: ".png", AUDIO: ".wav"}
_WORKER = re.compile(r"[\w.\-]{1,200}")


@dataclass(frozen=True)
class Entry:
    """One value in a catalog."""

    number: int
    """Which file of its worker holds it."""
    name: str
    kind: str
    step: int
    mode: str = ""
    time: float = 0.0
    """When it was logged, in seconds of the epoch."""
    bytes: int = 0
    caption: str = ""
    note: str = ""
    """What was changed to keep it, such as values that were clipped."""
    shape: tuple[int, ...] = ()
    """Of an image: height, width, channels; of a table: rows and columns; of sound: samples and channels."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "shape": list(self.shape)}

    @classmethod
    def from_dict(cls, payload: Any) -> Entry | None:
        """Return the entry in JSON; None if there is none that this version can read."""
        if not isinstance(payload, dict):
            return None
        number, step, size = (payload.get(name) for name in ("number", "step", "bytes"))
        name, kind, time = (payload.get(name) for name in ("name", "kind", "time"))
        if not all(type(each) is int and 0 <= each < 10**12 for each in (number, step, size)):
            return None
        if number >= 10**6 or not isinstance(name, str) or not name or kind not in KINDS:  # type: ignore[operator]
            return None
        is_time = isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time)
        shape = payload.get("shape")
        is_shape = isinstance(shape, list) and len(shape) < 5 and all(type(each) is int for each in shape)
        return cls(
            number,  # type: ignore[arg-type]
            name[:LONGEST_NAME],
            kind,
            step,  # type: ignore[arg-type]
            _text(payload.get("mode"))[:40],
            float(time) if is_time else 0.0,  # type: ignore[arg-type]
            size,  # type: ignore[arg-type]
            _text(payload.get("caption"))[:LONGEST_CAPTION],
            _text(payload.get("note"))[:LONGEST_CAPTION],
            tuple(shape) if is_shape else (),  # type: ignore[arg-type]
        )

    def without_secrets(self) -> Entry:
        """Return the entry with `***` in the place of secrets."""
        return replace(self, name=redacted(self.name), caption=redacted(self.caption))


@dataclass(frozen=True)
class Catalog:
    """All that a worker has logged to be looked at, in the order of its numbers."""

    run_id: str = ""
    values: tuple[Entry, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many values were not kept, by the reason."""

    def encode(self) -> bytes:
        """Return the content of the file."""
        content = {
            "version": VERSION,
            "run_id": self.run_id,
            "values": [entry.to_dict() for entry in self.values],
            "left_out": dict(self.left_out),
        }
        return (json.dumps(content, ensure_ascii=True, allow_nan=False) + "\n").encode()

    @classmethod
    def parse(cls, data: bytes, place: str) -> Catalog:
        """Return the catalog without what this version cannot read; `DamagedFile` if the file is none."""
        content = object_in(data, place, MAX_BYTES)
        listed, left_out = content.get("values"), content.get("left_out")
        entries = [Entry.from_dict(each) for each in listed] if isinstance(listed, list) else []
        found = {entry.number: entry.without_secrets() for entry in entries[:MOST_VALUES] if entry}
        counts = left_out.items() if isinstance(left_out, dict) else ()
        return cls(
            _text(content.get("run_id")),
            tuple(found[number] for number in sorted(found)),
            {redacted(why)[:LONGEST_NAME]: count for why, count in counts if type(count) is int},
        )


def catalog_key(worker: str) -> str:
    """Return the key of a worker's catalog."""
    return f"{LOGGED_CATALOGS}{file_name_of(worker)}{_SUFFIX}"


def catalog_worker(key: str) -> str | None:
    """Return the worker whose catalog has that key; None if it is no key of a catalog."""
    name = key.removeprefix(LOGGED_CATALOGS).removesuffix(_SUFFIX)
    if key != f"{LOGGED_CATALOGS}{name}{_SUFFIX}" or not _WORKER.fullmatch(name) or not name.strip("."):
        return None
    return worker_in(name)


def value_key(worker: str, number: int, kind: str) -> str:
    """Return the key of a value's file."""
    return f"{LOGGED_VALUES}{file_name_of(worker)}/{number:06}{_SUFFIXES.get(kind, _SUFFIX)}"


def most_bytes_of(kind: str) -> int:
    """Return how many bytes the file of a value of that kind has at most."""
    return MOST_BYTES_OF_IMAGE if kind in (IMAGE, AUDIO) else MOST_BYTES_OF_TEXT


def names_of(entries: Iterable[Entry]) -> list[str]:
    """Return the names in the order in which they were first logged."""
    return list(dict.fromkeys(entry.name for entry in entries))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
