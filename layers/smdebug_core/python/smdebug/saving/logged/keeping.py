"""Keeps what a worker has logged to be looked at, beside its run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smdebug.exceptions import DamagedFile, ObjectMissing, UnfitFile
from smdebug.files.logged.catalog import (
    LONGEST_NAME,
    MOST_BYTES,
    MOST_VALUES,
    Catalog,
    Entry,
    catalog_key,
    most_bytes_of,
    value_key,
)
from smdebug.saving.logged.values import Kept, LeftOut, Value, value_in
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.written_soon import WrittenSoon
from smdebug.secrets.texts import redacted
from smdebug.storage.base import Storage

MOST_WAITING_BYTES = 128 << 20
"""How much memory values take until they are written."""
_WHY = {
    "too large": "an image or sound has at most 4 MB and all others 256 kB",
    "too many": f"a worker keeps {MOST_VALUES:,} values of {MOST_BYTES >> 20} MB in all",
    "too slow": "the storage takes longer than the training needs to log",
}


class RunLogged:
    """Writes what one worker has logged: each value in a file, then the catalog that lists it."""

    def __init__(self, warn_once: Callable[[str, str], None], not_secret: tuple[str, ...] = ()):
        self._warn_once, self._not_secret = warn_once, not_secret
        self._lock = threading.Lock()
        self._waiting: list[tuple[Entry, Kept]] = []
        self._waiting_bytes = 0
        self._taken = 0  # how many values were not left out
        self._listed: list[Entry] = []
        self._left_out: dict[str, int] = {}
        self._next: int | None = None  # None: what earlier attempts have kept is not known yet
        self._storage: Storage | None = None
        self._attempt: StartedAttempt | None = None
        self._worker = ""
        self._file: WrittenSoon | None = None

    def add(self, name: str, value: Value, step: int, mode: str) -> None:
        """Keep a value; if that cannot be, say why, once."""
        clean = redacted(name, self._not_secret)[:LONGEST_NAME]
        try:
            kept = value.keep(self._not_secret)
            self._refuse_too_much(kept)
        except LeftOut as reason:
            self._leave_out(clean, str(reason))
            return
        entry = Entry(
            0,
            clean,
            kept.kind,
            step,
            mode,
            time.time(),
            caption=redacted(kept.caption, self._not_secret),
            note=kept.note,
            shape=kept.shape,
        )
        with self._lock:
            self._taken += 1
            self._waiting.append((entry, kept))
            self._waiting_bytes += kept.waiting_bytes
        self._change()

    def begin(self, storage: Storage, attempt: StartedAttempt, worker: str) -> None:
        """Begin to write, as the first step begins."""
        self._storage, self._attempt, self._worker = storage, attempt, worker
        self._file = WrittenSoon(catalog_key(worker), self._content, "The catalog of logged values")
        self._file.begin(storage)
        if self._waiting:
            self._change()

    def finish(self, seconds: float) -> None:
        """Wait for the files. In a forked child, do nothing."""
        if self._file is not None:
            self._file.finish(seconds)

    def _change(self) -> None:
        if self._file is not None:
            self._file.change()

    def _refuse_too_much(self, kept: Kept) -> None:
        if self._taken >= MOST_VALUES:
            raise LeftOut("too many")
        if isinstance(kept.content, bytes) and len(kept.content) > most_bytes_of(kept.kind):
            raise LeftOut("too large")
        if self._waiting_bytes + kept.waiting_bytes > MOST_WAITING_BYTES:
            raise LeftOut("too slow")

    def _leave_out(self, name: str, why: str) -> None:
        with self._lock:
            self._left_out[why] = self._left_out.get(why, 0) + 1
        reason = f"{why}: {_WHY[why]}" if why in _WHY else why
        self._warn_once(
            f"smdebug.log: {name} is not kept ({reason}). Others like it are left out without a message, and "
            "the training continues",
            f"logged {why}",
        )

    def _content(self) -> bytes:
        """Write the files that wait, and return the catalog with them."""
        storage, attempt = self._storage, self._attempt
        assert storage is not None
        assert attempt is not None
        if self._next is None:
            self._listed, self._next = self._of_earlier_attempts(storage, attempt)
        while self._waiting:
            entry, kept = self._waiting[0]
            self._write(storage, entry, kept)
            with self._lock:  # a value that could not be written waits for the next time
                self._waiting.pop(0)
                self._waiting_bytes -= kept.waiting_bytes
        with self._lock:
            return Catalog(attempt.run_id, tuple(self._listed), dict(self._left_out)).encode()

    def _write(self, storage: Storage, entry: Entry, kept: Kept) -> None:
        assert self._next is not None
        data = kept.encode()
        if len(data) > most_bytes_of(kept.kind):
            self._leave_out(entry.name, "too large")
            return
        if (
            len(self._listed) >= MOST_VALUES
            or sum(each.bytes for each in self._listed) + len(data) > MOST_BYTES
        ):
            self._leave_out(entry.name, "too many")
            return
        storage.write(value_key(self._worker, self._next, kept.kind), data)
        self._listed.append(replace(entry, number=self._next, bytes=len(data)))
        self._next += 1

    def _of_earlier_attempts(self, storage: Storage, attempt: StartedAttempt) -> tuple[list[Entry], int]:
        """Return what was logged below the step at which this attempt has resumed, and the next number."""
        if not attempt.training_run:
            return [], 0
        key = catalog_key(self._worker)
        try:
            known = Catalog.parse(bytes(storage.read(key)), key).values
        except (ObjectMissing, UnfitFile, DamagedFile):
            return [], 0  # a catalog that cannot be read is written anew
        resumed = attempt.resumed_at
        kept = [entry for entry in known if resumed is None or entry.step < resumed]
        return kept, max((entry.number for entry in known), default=-1) + 1


def split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Value]]:
    """Return the numbers of what was given to `log`, and the values to be looked at."""
    found = {name: value_in(value) for name, value in given.items()}
    values = {name: value for name, value in found.items() if value is not None}
    return {name: value for name, value in given.items() if name not in values}, values
