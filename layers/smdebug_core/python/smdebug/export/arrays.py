"""Named arrays in one file: numpy's npz, and safetensors."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError
from smdebug.export.observed import Measured, Observed
from smdebug.export.selection import Saved, Selection, is_several, label, nothing_exported, opened
from smdebug.numbers.rows import COLUMNS
from smdebug.storage.whole_file import whole_file
from smdebug.trials import Trial
from smdebug.trials.observations.series import Series

Steps = Callable[[Iterable[int]], Iterable[int]]

# The types of safetensors, by numpy's names.
_SAFE = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "float16": "F16",
    "bfloat16": "BF16",
    "uint32": "U32",
    "int32": "I32",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
}
_ALIGNED = 8


def export_npz(
    run: str | os.PathLike[str] | Trial,
    to: str | os.PathLike[str],
    selection: Selection | None = None,
    *,
    progress: Steps = iter,
) -> int:
    """Write arrays for `numpy.load`; return their number.

    Saved values are `name@step`. A measured tensor has an array for each statistic, such as
    `gradient/fc.weight/abs_mean`, over the steps in `gradient/fc.weight/step`; a scalar of every step has
    `loss/step`, `loss/mode` and `loss/value`. With several workers, `:worker_1` follows each name. One saved
    value at a time is in memory. npz has no bfloat16, which is widened to float32.
    """
    count = 0
    seen: set[str] = set()
    trial = opened(run)
    with whole_file(to) as place, zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as archive:

        def write(name: str, value: NDArray[Any]) -> None:
            nonlocal count
            member = name.replace("\0", "")
            if member in seen:
                return
            seen.add(member)
            with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(value), allow_pickle=False)
            count += 1

        for name, saved in _labelled(trial, selection, progress, or_observed=True):
            value = saved.value
            if value.dtype.name == "bfloat16":
                value = value.astype(np.float32)
            elif value.dtype.kind == "O":
                value = value.astype(np.str_)
            write(name, value)
        for name, value in _over_steps(trial, selection or Selection()):
            write(name, value)
        if not count:
            raise nothing_exported(trial)
    return count


def export_safetensors(
    run: str | os.PathLike[str] | Trial,
    to: str | os.PathLike[str],
    selection: Selection | None = None,
    *,
    progress: Steps = iter,
) -> int:
    """Write the values of a single step by name, of several steps as `name@step`; return their number.

    One value at a time is in memory. The format has no type for text and complex numbers: they are omitted
    and listed in the file's metadata. Its own library needs all values at once, so the format is written
    here: a length, a JSON header, and the values in sequence.
    """
    entries: dict[str, Any] = {}
    left_out: list[str] = []
    trial = opened(run)
    with whole_file(to) as place, tempfile.TemporaryFile(dir=_folder_of(to)) as values:
        for name, saved in _labelled(trial, selection, progress):
            value: NDArray[Any] = np.ascontiguousarray(saved.value)
            kind = _SAFE.get(value.dtype.name)
            if kind is None:
                left_out.append(name)
                continue
            start = values.tell()
            if value.size:
                values.write(value.reshape(-1).view(np.uint8).data)
            shape = list(saved.value.shape)
            entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, values.tell()]}
        if not entries:
            raise SMDebugValueError("None of the tensors has a value that safetensors can store")
        metadata = {"run": trial.path, "left_out": json.dumps(left_out)}
        header = json.dumps({"__metadata__": metadata, **entries}).encode()
        header += b" " * (-len(header) % _ALIGNED)
        values.seek(0)
        with Path(place).open("wb") as file:
            file.write(struct.pack("<Q", len(header)))
            file.write(header)
            shutil.copyfileobj(values, file, 1 << 20)
    return len(entries)


def _folder_of(to: str | os.PathLike[str]) -> Path:
    folder = Path(to).expanduser().parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _over_steps(trial: Trial, selection: Selection) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield what was measured of each tensor, and each scalar, as arrays over steps."""
    several = is_several(trial, selection)
    rows: dict[tuple[str, str], list[Measured]] = {}
    parts: dict[tuple[str, str], list[Series]] = {}
    observed = Observed.of(trial, selection)
    for step in selection.steps_of(trial):
        for row in observed.measured_at(step):
            rows.setdefault((row.name, row.worker), []).append(row)
        for scalars in observed.scalars_at(step):
            parts.setdefault((scalars.series.name, scalars.worker), []).append(scalars.series)
    for (name, worker), measured in rows.items():
        end = f":{worker}" if several else ""
        yield f"{name}/step{end}", np.array([row.step for row in measured], np.int64)
        for statistic in COLUMNS:
            numbers = [row.summary.of(statistic) for row in measured]
            yield f"{name}/{statistic}{end}", np.array(numbers, np.float32)
    for (name, worker), series in parts.items():
        end = f":{worker}" if several else ""
        yield f"{name}/step{end}", np.concatenate([part.steps for part in series])
        yield f"{name}/value{end}", np.concatenate([part.values for part in series])
        modes = [mode.name for part in series for mode in part.modes]
        yield f"{name}/mode{end}", np.array(modes, np.str_)


def _labelled(
    run: str | os.PathLike[str] | Trial,
    selection: Selection | None,
    progress: Steps,
    *,
    or_observed: bool = False,
) -> Iterator[tuple[str, Saved]]:
    selection = selection or Selection()
    trial = opened(run)
    names = set(selection.names(trial, or_observed=or_observed))
    steps = selection.steps_of(trial)
    several = is_several(trial, selection)
    for step in progress(steps):
        for saved in selection.values_at(trial, step, names):
            if len(steps) == 1 and not several:
                yield saved.name, saved
            else:
                yield label(saved, several), saved
