"""The data of the measurement: a long run, the same scalars for TensorBoard, and many short runs.

It takes minutes to write and gigabytes to keep, so it stays in a folder outside the repository.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from smdebug.files.framing import frame
from smdebug.files.wire import delimited, varint
from smdebug.numbers.rows import COLUMN
from smdebug.trials import create_trial
from tests.ui.written_runs import WrittenRun

STATISTICS = ("rms", "std", "abs_mean", "min", "max", "p05", "p95", "p99")
"""What TensorBoard gets of each tensor; the run has these and eight more."""
_VERSION = 1
_BYTES_OF_A_TENSOR = 76
_BYTES_OF_A_STEP = 8_192
_SPARE = 2 << 30


class Size(NamedTuple):
    """How much a run has."""

    steps: int
    saved: int
    tensors: int

    @property
    def nbytes(self) -> int:
        """About how much room its files take."""
        return self.saved * (_BYTES_OF_A_STEP + _BYTES_OF_A_TENSOR * self.tensors)

    def __str__(self) -> str:
        return f"{self.steps}-steps-{self.saved}-saved-{self.tensors}-tensors"


def default_folder() -> Path:
    """Return the folder of the data, which may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "smdebug" / "bench-ui"


def saved_steps(size: Size) -> list[int]:
    """Return the saved steps as the default plan spaces them: dense at the beginning, then regular."""
    if size.saved >= size.steps:
        return list(range(size.steps))
    dense = min(100, size.saved)
    regular = np.linspace(0, size.steps - 1, size.saved - dense).astype(int)
    return sorted({*range(dense), *regular.tolist()})


def long_run(folder: Path, size: Size) -> Path:
    """Return a run of that size, written by the hook unless it is there already."""

    def write(place: Path) -> None:
        saved = None if size.saved >= size.steps else saved_steps(size)
        run = WrittenRun(place, tensors=size.tensors, saved=saved)
        progress = Progress("steps", size.steps)
        part = max(1, size.steps // 50)
        for begun in range(0, size.steps, part):
            run.write(min(part, size.steps - begun))
            progress.show(min(size.steps, begun + part))
        run.hook.close()

    return _made(folder / f"run-{_VERSION}-{size}", size.nbytes, write)


def event_files(folder: Path, size: Size, run: Path) -> Path:
    """Return a folder with the scalars of that run as TensorBoard's event files.

    An event has all statistics of a step, which is the smallest form that TensorBoard reads.
    """

    def write(place: Path) -> None:
        trial = create_trial(str(run))
        steps = trial.steps()
        progress = Progress("saved steps", len(steps))
        template: _Template | None = None
        written = 0
        with (place / "events.out.tfevents.1700000000.bench").open("wb") as file:
            file.write(_record(0, delimited(b"\x1a", b"brain.Event:2")))
            for at, step in enumerate(steps):
                seen = trial.observations.at(step)
                matrix = seen.statistics("gradients")
                assert matrix is not None
                template = template or _Template(
                    [f"{statistic}/{name}" for name in matrix.names for statistic in STATISTICS]
                )
                for row in seen.series("loss"):
                    file.write(_record(int(row[0]), _LOSS.filled(row[3:4])))
                values = matrix.values[:, [COLUMN[statistic] for statistic in STATISTICS]]
                file.write(_record(step, template.filled(values)))
                written += 1
                if at % 50 == 49 or at == len(steps) - 1:
                    progress.show(at + 1)

    nbytes = size.saved * size.tensors * len(STATISTICS) * 42 + 40 * size.steps
    return _made(folder / f"tensorboard-{_VERSION}-{size}", nbytes, write)


def many_runs(folder: Path, number: int) -> Path:
    """Return a folder with runs of a few steps each."""

    def write(place: Path) -> None:
        progress = Progress("runs", number)
        for at in range(number):
            WrittenRun(place / f"run-{at:04}", tensors=2, seed=at).write(3, end=True)
            if at % 50 == 49:
                progress.show(at + 1)

    return _made(folder / f"many-{_VERSION}-{number}", number * 40_000, write)


class Progress:
    """A line that grows on a terminal, and a few lines in a log."""

    def __init__(self, what: str, total: int):
        self._what = what
        self._total = total
        self._begun = time.monotonic()
        self._shown = -1

    def show(self, done: int) -> None:
        """Show how much is done."""
        tenth = 10 * done // max(1, self._total)
        if not sys.stderr.isatty() and tenth == self._shown:
            return
        self._shown = tenth
        seconds = time.monotonic() - self._begun
        end = "\r" if sys.stderr.isatty() and done < self._total else "\n"
        text = f"  {done:,} of {self._total:,} {self._what}, {seconds:.0f} s"
        print(text, end=end, file=sys.stderr, flush=True)


def _made(place: Path, nbytes: int, write: Callable[[Path], None]) -> Path:
    """Return the folder, written first if it is not there; half-written ones are never used."""
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(place.parent).free < nbytes + _SPARE:
        raise SystemExit(
            f"{place.parent} has too little room for {nbytes / 1e9:.1f} GB. Give another folder with --data, "
            "or less data with --saved-steps."
        )
    print(f"Writing about {nbytes / 1e6:,.0f} MB, once: {place}", file=sys.stderr, flush=True)
    partial = place.with_name(f"{place.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    write(partial)
    partial.rename(place)
    return place


class _Template:
    """The summary of an event whose tags are the same at each step: only its numbers change."""

    def __init__(self, tags: list[str]):
        whole, places = bytearray(), []
        for tag in tags:
            value = delimited(b"\x0a", tag.encode()) + b"\x15\0\0\0\0"
            whole += delimited(b"\x0a", value)
            places.append(len(whole) - 4)
        self._bytes = np.frombuffer(bytes(whole), np.uint8).copy()
        self._places = np.array(places)[:, None] + np.arange(4)

    def filled(self, values: np.ndarray) -> bytes:
        """Return the summary with those values."""
        self._bytes[self._places] = values.astype("<f4").reshape(-1, 1).view(np.uint8)
        return delimited(b"\x2a", self._bytes.tobytes())


_LOSS = _Template(["loss"])


def _record(step: int, content: bytes) -> bytes:
    wall_time = np.float64(1_700_000_000 + step).tobytes()
    record = frame(b"\x09" + wall_time + b"\x10" + varint(step) + content, "tfrecord")
    return b"".join(record.pieces)
