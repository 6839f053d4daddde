"""The entries of folders that were read, reused while the folder does not change."""
# Paths are plain text here: making a `Path` costs more than opening the file.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

_TICKS = 0.05  # seconds: several ticks of any system's clock
_READ_AFTER = 1.0  # seconds after which a folder is read again, whatever its time of change
_WORTH_REMEMBERING = 1000  # entries; what is read again and again are the few new ones
_FOLDERS_REMEMBERED = 8


class _Reading(NamedTuple):
    """One reading of a folder."""

    stamp: Stamp
    first_seen: float
    """When the folder was first seen with this stamp."""
    read: float
    """When the folder was read."""
    is_final: bool
    """Whether the stamp was so old that a later addition must give the folder another one."""
    start_after: str
    entries: Sequence[str]


class FolderMemory:
    """The entries of the folders read last. A folder with the same time of change has the same entries.

    That is relied on only where it was seen to hold, and for a second: some file systems do not keep that
    time, or keep it in whole seconds. Two changes within a tick of the clock can have the same time.
    """

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}
        self._stamps_are_reliable: bool | None = None

    def unchanged(self, path: str, stamp: Stamp, start_after: str) -> Sequence[str] | None:
        """Return the entries after `start_after`, if they are known without reading the folder."""
        last = self._readings.get(path)
        if not self._stamps_are_reliable or last is None or last.stamp != stamp or not last.is_final:
            return None
        if start_after < last.start_after or time.monotonic() - last.read > _READ_AFTER:
            return None
        return last.entries

    def note(self, path: str, stamp: Stamp, start_after: str, entries: Sequence[str]) -> None:
        """Remember the entries of a folder that had this stamp before it was read."""
        known = self._readings.copy()
        last, now = known.pop(path, None), time.monotonic()
        first_seen, is_final = now, False
        if last is not None:
            if last.stamp == stamp:
                first_seen = last.first_seen
                is_final = now - first_seen > _TICKS and stamp.changed % 1_000_000_000 != 0
            if start_after == last.start_after and len(entries) != len(last.entries):
                if last.stamp != stamp:
                    self._stamps_are_reliable = self._stamps_are_reliable is not False
                elif last.is_final:
                    self._stamps_are_reliable = False  # the entries changed, but the stamp did not
        if len(entries) <= _WORTH_REMEMBERING:
            if len(known) == _FOLDERS_REMEMBERED:
                del known[next(iter(known))]
            reading = _Reading(stamp, first_seen, now, is_final, start_after, entries)
            self._readings = {**known, path: reading}  # one assignment: threads share a storage


class Stamp(NamedTuple):
    """The identity of a folder and its times of change."""

    device: int
    number: int
    changed: int
    touched: int
    """No program can set this time, not even one that copies a folder with its times."""


def stamp_of(path: str) -> Stamp:
    """Return the stamp of a folder."""
    status = os.stat(path)
    return Stamp(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
