"""The series of many runs in one file, column by column. It is made from the runs, and may be deleted.

An expression reads the columns that it names and nothing else. Each column has its own list of runs, as of
which their values were read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from smdebug.backtesting.expressions.columns import Values
from smdebug.storage.whole_file import whole_file

_PARTS = ("runs", "identities", "offsets", "steps", "values")


@dataclass(frozen=True)
class KeptColumn:
    """One series of many runs, one run behind the other."""

    place_of: Mapping[str, int]
    identities: list[str]
    offsets: NDArray[np.int64]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    def of(self, run: str) -> Values:
        """Return the values of a run."""
        place = self.place_of[run]
        span = slice(self.offsets[place], self.offsets[place + 1])
        return Values(self.steps[span], self.values[span])


class KeptIndex:
    """The columns of a file; without the file, or with a damaged one, there are none."""

    def __init__(self, file: Path):
        self._file = file
        self._keys = _keys_in(file)

    def column(self, key: str) -> KeptColumn | None:
        """Return the column of that key."""
        place = self._keys.get(key)
        if place is None:
            return None
        try:
            with self._file.open("rb") as file, np.load(file, allow_pickle=False) as content:
                runs, identities, *numbers = (content[f"{place}.{part}"] for part in _PARTS)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            return None
        places = {run: at for at, run in enumerate(runs.tolist())}
        return KeptColumn(places, identities.tolist(), *numbers)

    def keep(self, changed: Mapping[str, Mapping[str, tuple[str, Values]]]) -> None:
        """Write the file again, with these columns: by key and run, its identity and values."""
        keys = list(dict.fromkeys([*self._keys, *changed]))
        with whole_file(self._file) as place, zipfile.ZipFile(place, "w", allowZip64=True) as content:
            _write(content, "keys", np.array(keys, dtype=np.str_))
            for number, key in enumerate(keys):
                of_run = dict(_known(self.column(key)))
                of_run.update(changed.get(key, {}))
                for part, array in zip(_PARTS, _arrays(of_run), strict=True):
                    _write(content, f"{number}.{part}", array)
        self._keys = {key: number for number, key in enumerate(keys)}


def _known(column: KeptColumn | None) -> Iterator[tuple[str, tuple[str, Values]]]:
    if column is not None:
        for run, place in column.place_of.items():
            yield run, (column.identities[place], column.of(run))


def _arrays(of_run: Mapping[str, tuple[str, Values]]) -> Iterable[NDArray[np.generic]]:
    columns = [values for _, values in of_run.values()]
    lengths = [len(values.steps) for values in columns]
    return (
        np.array(list(of_run), dtype=np.str_),
        np.array([identity for identity, _ in of_run.values()], dtype=np.str_),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        np.concatenate([np.empty(0, np.int64), *(values.steps for values in columns)]),
        np.concatenate([np.empty(0), *(values.values for values in columns)]),
    )


def _write(content: zipfile.ZipFile, name: str, array: NDArray[np.generic]) -> None:
    with content.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def _keys_in(place: Path) -> dict[str, int]:
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as content:
            return {key: number for number, key in enumerate(content["keys"].tolist())}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return {}
