"""What a training has logged to be looked at, read from its run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.files.logged.catalog import (
    AUDIO,
    IMAGE,
    MAX_BYTES,
    Catalog,
    Entry,
    catalog_key,
    catalog_worker,
    most_bytes_of,
    value_key,
)
from smdebug.files.logged.contents import checked_value, decoded
from smdebug.files.names import LOGGED_CATALOGS
from smdebug.storage.base import Storage
from smdebug.trials.note_content import note_content, place_of_note


@dataclass(frozen=True)
class LoggedValue(Entry):
    """A value that was logged to be looked at. `read` returns it."""

    worker: str = ""
    storage: Storage | None = field(default=None, repr=False, compare=False)

    def data(self) -> bytes:
        """Return the content of its file; `DamagedFile` if there is none, or it is too large."""
        assert self.storage is not None
        key, most = value_key(self.worker, self.number, self.kind), most_bytes_of(self.kind)
        data = note_content(self.storage, key, most)
        if data is None or len(data) > most:
            problem = "it is missing" if data is None else f"it has more than {most:,} bytes"
            raise DamagedFile(self.place, problem)
        return data

    @property
    def media_type(self) -> str:
        """The media type of its file."""
        return {IMAGE: "image/png", AUDIO: "audio/wav"}.get(self.kind, "application/json")

    def content(self) -> dict[str, Any]:
        """Return the JSON of a value that is no image and no sound; `DamagedFile` if it has another form."""
        return checked_value(self.kind, self.data(), self.place)

    @property
    def place(self) -> str:
        """The address of its file, for messages."""
        assert self.storage is not None
        return place_of_note(self.storage, value_key(self.worker, self.number, self.kind))

    def read(self) -> Any:
        """Return pixels (an array), a text, a list of rows, a dictionary of counts, or samples and rate."""
        return decoded(self.kind, self.data(), self.place)


def read_catalogs(storage: Storage) -> dict[str, Catalog]:
    """Return the catalogs of all workers that have logged; `DamagedFile` if one cannot be read."""
    found = {}
    for key in storage.list(LOGGED_CATALOGS):
        worker = catalog_worker(key)
        data = None if worker is None else note_content(storage, catalog_key(worker), MAX_BYTES)
        if worker is not None and data is not None:
            found[worker] = Catalog.parse(data, place_of_note(storage, key))
    return found


def left_out_of(storage: Storage) -> dict[str, int]:
    """Return how many values were not kept, by the reason."""
    counts: Counter[str] = Counter()
    for catalog in read_catalogs(storage).values():
        counts.update(catalog.left_out)
    return dict(counts)


def read_logged(storage: Storage) -> list[LoggedValue]:
    """Return what was logged, by step, then worker, then in the order of the calls."""
    found = [
        LoggedValue(**vars(entry), worker=worker, storage=storage)
        for worker, catalog in read_catalogs(storage).items()
        for entry in catalog.values
    ]
    return sorted(found, key=lambda value: (value.step, value.worker, value.number))
