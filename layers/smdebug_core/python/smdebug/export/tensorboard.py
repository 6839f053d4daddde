"""Files for TensorBoard from a saved run, like those that a hook with `export_tensorboard` writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from smdebug.export.selection import Selection, is_several, nothing_exported, opened
from smdebug.files.tensorboard import encode_histogram, encode_scalar
from smdebug.numbers.conditions import is_numeric
from smdebug.storage import Sink, Storage, open_storage
from smdebug.trials import Trial


def export_tensorboard(
    run: str | os.PathLike[str] | Trial,
    to: str | os.PathLike[str],
    selection: Selection | None = None,
    *,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> int:
    """Write files for `tensorboard --logdir`; return the number of values.

    Scalars become curves, other tensors histograms. Like the hook, it counts steps within their mode and
    gives each mode its own folder. `to` is a folder or `s3://bucket/prefix`. Text and booleans are omitted.
    """
    selection = selection or Selection()
    trial = opened(run)
    place = open_storage(to if isinstance(to, str) else Path(to))
    names = set(selection.names(trial))
    several = is_several(trial, selection)
    count = 0
    with _Files(place) as files:
        for step in progress(selection.steps_of(trial)):
            for saved in selection.values_at(trial, step, names):
                value = saved.value
                if not value.size or value.dtype.kind == "b" or not is_numeric(value):
                    continue
                tag = f"{saved.worker}/{saved.name}" if several else saved.name
                when = saved.wall_time or 0.0
                if value.size == 1:
                    only = value.reshape(-1)[0]
                    number = float(abs(only)) if value.dtype.kind == "c" else float(only)
                    record = encode_scalar(tag, number, step=saved.mode_step, wall_time=when)
                else:
                    record = encode_histogram(tag, value, step=saved.mode_step, wall_time=when)
                files.of(saved.mode.name).write(record.pieces)
                count += 1
        if not count:
            raise nothing_exported(trial)
    return count


class _Files:
    """One file per mode, since TensorBoard is slow with thousands; all are committed at the end, or none."""

    def __init__(self, place: Storage):
        self._place = place
        self._open: dict[str, Sink] = {}

    def of(self, mode: str) -> Sink:
        if mode not in self._open:
            self._open[mode] = self._place.create(f"{mode}/export.tfevents")
        return self._open[mode]

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for sink in self._open.values():
            if kind is None:
                sink.commit()
            else:
                sink.abort()
