"""The series of many runs in one file, an SQLite database. It is made from the runs, and may be deleted.

A run is written when it was read, so that an interruption loses nothing. Whoever asks gets the columns of one
run, so that memory does not depend on how many there are.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import numpy as np

from smdebug.backtesting.expressions.columns import Values
from smdebug.exceptions import SMDebugCustomerError

_MAGIC = b"SQLite format 3\0"
_WAIT = 60.0
"""Seconds for another backtest that writes; it does so for a moment."""
# A killed process loses nothing; after a loss of power the file may have to be made again.
# In a page are the series of a few hundred steps.
_BEGIN = """
pragma page_size = 32768;
pragma synchronous = off;
create table if not exists runs (id integer primary key, location text unique, identity text);
create table if not exists keys (id integer primary key, name text unique);
create table if not exists series (id integer primary key, checksum integer, steps blob, numbers blob);
"""
_NO_KEY = 0
"""Ids begin at 1."""
_MOST_KEYS = 1 << 20
"""The id of a series is that of its run, times this, plus that of its key."""


class KeptIndex:
    """The columns of a file, by run and key. Several threads may use it."""

    def __init__(self, file: Path):
        self._file = file
        self._using = threading.Lock()
        self._keys: dict[str, int] = {}
        self._last_steps = (b"", crc32(b""), np.empty(0, np.int64))
        file.parent.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(file)
        try:
            self._database = _opened(file)
        except sqlite3.OperationalError as error:
            raise SMDebugCustomerError(f"The series cannot be kept in {file}: {error}") from None
        except sqlite3.DatabaseError:  # damaged: it only saves work
            file.unlink()
            self._database = _opened(file)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def identity_of(self, location: str, keys: Sequence[str]) -> str:
        """Return what the run was when its columns were read; empty unless it has all of these."""
        with self._used() as database:
            ids = ",".join(f"runs.id * {_MOST_KEYS} + {self._key(key)}" for key in keys)
            count = f"(select count(*) from series where id in ({ids}))"  # noqa: S608 - of numbers
            query = f"select identity, {count} from runs where location = ?"  # noqa: S608 - likewise
            identity, found = database.execute(query, (location,)).fetchone() or ("", 0)
        return identity if found == len(keys) else ""

    def columns_of(self, location: str, keys: Sequence[str]) -> dict[str, Values]:
        """Return the columns of a run that has them."""
        with self._used() as database:
            key_of = {self._key(key): key for key in keys}
            ids = ",".join(f"runs.id * {_MOST_KEYS} + {number}" for number in key_of)
            columns = f"series.id % {_MOST_KEYS}, checksum, steps, numbers"
            query = f"select {columns} from runs join series on series.id in ({ids}) where location = ?"  # noqa: S608
            found = database.execute(query, (location,)).fetchall()
            if len(found) < len(keys):
                raise sqlite3.DatabaseError("a series is missing")
            return {key_of[number]: self._values(*parts) for number, *parts in found}

    def keep(self, location: str, identity: str, columns: Mapping[str, Values]) -> None:
        """Write the columns of a run; those that it had when it was another one are deleted."""
        with self._used("begin immediate") as database:
            run, known = self._run(location)
            if identity != known:
                all_keys = (run * _MOST_KEYS, (run + 1) * _MOST_KEYS)
                database.execute("delete from series where id >= ? and id < ?", all_keys)
                database.execute("insert or ignore into runs (location) values (?)", (location,))
                database.execute("update runs set identity = ? where location = ?", (identity, location))
                run, _ = self._run(location)
            database.executemany("insert or ignore into keys (name) values (?)", ((key,) for key in columns))
            database.executemany(
                "insert or replace into series values (?, ?, ?, ?)",
                [(run * _MOST_KEYS + self._key(key), *_parts(values)) for key, values in columns.items()],
            )

    def _run(self, location: str) -> tuple[int, str]:
        """Return the id of a run, and what it was; 0 of an unknown one."""
        query = "select id, identity from runs where location = ?"
        return self._database.execute(query, (location,)).fetchone() or (0, "")

    def _key(self, name: str) -> int:
        """Return the id of a key; that of none if it is unknown."""
        if name not in self._keys:
            found = self._database.execute("select id from keys where name = ?", (name,)).fetchone()
            if found is None:
                return _NO_KEY
            self._keys[name] = found[0]
        return self._keys[name]

    def _values(self, checksum: int, steps: bytes, numbers: bytes) -> Values:
        """Return a series; most have the steps of the one before, which are then the same object."""
        if steps != self._last_steps[0]:
            self._last_steps = (steps, crc32(steps), np.frombuffer(steps, np.int64))
        if crc32(numbers, self._last_steps[1]) != checksum:
            raise sqlite3.DatabaseError("a series is damaged")
        return Values(self._last_steps[2], np.frombuffer(numbers, np.float64))

    @contextmanager
    def _used(self, begin: str = "") -> Iterator[sqlite3.Connection]:
        """Do everything in one transaction, which several statements need to `begin`."""
        with self._using:
            try:
                with self._database:  # commits, or rolls back
                    if begin:
                        self._database.execute(begin)
                    yield self._database
            except sqlite3.Error as error:
                self._keys.clear()  # the id of one may have been taken back
                raise SMDebugCustomerError(
                    f"The series in {self._file} cannot be used ({error}). "
                    "Delete the file: it is made again from the runs"
                ) from None


def _opened(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=_WAIT, check_same_thread=False)
    try:
        database.executescript(_BEGIN)
        for table in ("runs", "keys", "series"):
            database.execute(f"select * from {table} limit 1").fetchone()  # noqa: S608 - a name from here
    except sqlite3.Error:
        database.close()
        raise
    return database


def _refuse_foreign(file: Path) -> None:
    """Raise `SMDebugCustomerError` for a file of something else: it must not be written to."""
    if not file.exists():
        return
    with file.open("rb") as content:
        begin = content.read(len(_MAGIC))
    if begin and begin != _MAGIC:
        raise SMDebugCustomerError(
            f"{file} is no file of series: name another with --journal, or delete it if nobody needs it"
        )


def _parts(values: Values) -> tuple[int, bytes, bytes]:
    steps, numbers = (part.tobytes() for part in values)
    return crc32(numbers, crc32(steps)), steps, numbers
