"""Finding the runs below a prefix of a bucket with few requests, however many objects they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.runs.watched_places import DEEPEST
from smdebug.storage import Storage
from smdebug.storage.folders import folders_in

MOST_FOLDERS = 20_000
"""Folders that are listed at a time."""
BARREN_EVERY = 6
"""At how many listings of the place a folder without runs is listed, if there are many such folders."""
FEW_BARREN = 20
_COLLECTIONS = COLLECTIONS_FOLDER.partition("/")[0]


class BucketRuns:
    """The runs below a place. A folder that is known to be a run is not listed again."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._runs: frozenset[str] = frozenset()
        self._barren: dict[str, int] = {}
        self._listings = 0

    def find(self, most: int) -> list[str]:
        """Return the paths of at most `most` runs, relative to the place; [""] if it is a run itself."""
        self._listings += 1
        found: list[str] = []
        without: list[str] = []
        due = [""]
        for depth in range(DEEPEST + 1):
            below: list[str] = []
            for path, folders in zip(due, self._folders_of(due), strict=True):
                if _COLLECTIONS in folders:
                    found.append(path)
                    continue
                without.append(path)
                below += [f"{path}/{name}" if path else name for name in folders]
            found += [path for path in below if path in self._runs]
            due = [path for path in below if path not in self._runs and self._is_due(path)]
            del due[MOST_FOLDERS:]
            if not due or len(found) >= most or depth == DEEPEST:
                break
        self._note_barren(without, found)
        self._runs = frozenset(found)  # a run that was removed may come back as another
        return sorted(found, key=lambda path: f"{path}/")[:most]

    def _folders_of(self, paths: Sequence[str]) -> Iterator[list[str]]:
        def folders(path: str) -> list[str]:
            return list(folders_in(self._storage, f"{path}/" if path else ""))

        if len(paths) == 1:
            return iter([folders(paths[0])])
        with ThreadPoolExecutor(min(self._storage.concurrency, len(paths))) as pool:
            return iter(list(pool.map(folders, paths)))

    def _is_due(self, path: str) -> bool:
        listed = self._barren.get(path)
        few = len(self._barren) <= FEW_BARREN
        return listed is None or few or self._listings - listed >= BARREN_EVERY

    def _note_barren(self, without: Sequence[str], found: Sequence[str]) -> None:
        fruitful = {path[:at] for path in found for at, letter in enumerate(path) if letter == "/"}
        for path in without:
            if path in fruitful:
                self._barren.pop(path, None)
            else:
                self._barren[path] = self._listings


__all__ = ["BARREN_EVERY", "FEW_BARREN", "MOST_FOLDERS", "BucketRuns"]
