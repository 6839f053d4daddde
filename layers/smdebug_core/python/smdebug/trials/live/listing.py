"""The new files of a run, by listing its index folder: only new files are read.

Keys sort by step, then worker, so "new" is whatever sorts after the last settled step. Other sources of the
same facts (a table of arrivals, say) pass the same `Arrival`s to the same `RunIndex`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from smdebug.exceptions import IndexReaderException, ObjectMissing, SMDebugError, UnfitFile
from smdebug.files.alike import AlikeIndexFiles
from smdebug.files.names import INDEX_FOLDER, StepFile, index_folder, step_file
from smdebug.storage import Storage
from smdebug.trials.arguments import StepRange
from smdebug.trials.stored.worker_steps import ArrivedIndex

_AT_A_TIME = 4096


class Damaged(NamedTuple):
    """An index file that could not be understood."""

    key: str
    error: SMDebugError


class IndexListing:
    """The index files of one run, by listing them."""

    def __init__(self, storage: Storage, step_range: StepRange | None = None):
        self._storage = storage
        self._first, self._end = step_range or (None, None)
        self._parse = AlikeIndexFiles().parse
        self.has_more = False
        """Whether the last `news` left files unread."""

    def news(
        self, after: str | None, already_read: Container[str] = (), most: int | None = None
    ) -> Iterator[ArrivedIndex | Damaged]:
        """Return the content of the index files that sort after `after` and were not read before, in order.

        With `most`, only about the first `most` of them.
        """
        keys = (key for key in self._keys(after) if key not in already_read)
        for batch in self._batches(keys, most):
            yield from filter(None, self._read_all(batch))

    def read(self, keys: Sequence[str]) -> Iterator[ArrivedIndex]:
        """Return the present content of these index files, without damaged and missing ones."""
        return (item for item in self._read_all(keys) if isinstance(item, ArrivedIndex))

    def _batches(self, keys: Iterator[str], most: int | None) -> Iterator[list[str]]:
        at_a_time = _AT_A_TIME if most is None else min(most, _AT_A_TIME)
        left = most
        while batch := list(islice(keys, at_a_time)):
            yield batch
            if left is not None:
                left -= len(batch)
                if left <= 0:
                    self.has_more = next(keys, None) is not None
                    return
        self.has_more = False

    def _keys(self, after: str | None) -> Iterator[str]:
        if self._first:
            after = max(after or "", _beginning_of(self._first))
        stop = None if self._end is None else _beginning_of(self._end)
        for key in self._storage.list(INDEX_FOLDER, after):
            if stop is not None and key >= stop:
                return
            if key.endswith((".json", ".csv")):
                yield key

    def _read_all(self, keys: Sequence[str]) -> Iterable[ArrivedIndex | Damaged | None]:
        at_a_time = min(self._storage.concurrency, len(keys))
        if at_a_time <= 1:
            return map(self._read, keys)
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(at_a_time, "smdebug-index") as readers:
            return list(readers.map(self._read, keys))

    def _read(self, key: str) -> ArrivedIndex | Damaged | None:
        try:
            name = step_file(key)
            if name is None:
                raise IndexReaderException(f"Invalid File Found: {key}")
            if not self._wants(name):
                return None
            return ArrivedIndex(key, *name, self._parse(self._storage.read(key), file=key))
        except IndexReaderException as error:
            return Damaged(key, error)
        except UnfitFile as error:
            return Damaged(key, IndexReaderException(f"{key} is not an index file: {error.problem}"))
        except ObjectMissing:  # removed since it was listed
            return None

    def _wants(self, name: StepFile) -> bool:
        return (self._first or 0) <= name.step and (self._end is None or name.step < self._end)


def _beginning_of(step: int) -> str:
    """Return the beginning of the index keys of `step`, which sorts before them and after earlier ones."""
    return f"{index_folder(step)}{step:012}"
