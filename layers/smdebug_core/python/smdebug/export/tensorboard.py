"""Files for TensorBoard from a saved run, like those that a hook with `export_tensorboard` writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from smdebug.exceptions import DamagedFile
from smdebug.export.observed import Observed
from smdebug.export.selection import Selection, is_several, nothing_exported, opened
from smdebug.files.framing import EncodedRecord
from smdebug.files.tensorboard import encode_histogram, encode_image, encode_scalar, encode_text
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.numbers.rows import COLUMNS
from smdebug.storage import Sink, Storage, open_storage
from smdebug.trials import Trial
from smdebug.trials.logged_reading import LoggedValue

_CURVES = tuple(name for name in COLUMNS if name != "count")


def export_tensorboard(
    run: str | os.PathLike[str] | Trial,
    to: str | os.PathLike[str],
    selection: Selection | None = None,
    *,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> int:
    """Write files for `tensorboard --logdir`; return the number of values.

    Scalars become curves, with their values at every step where the run keeps them, and other tensors
    histograms. A tensor that was measured has a curve for each statistic: `gradient/fc.weight/abs_mean`. Like
    the hook, it counts steps within their mode and gives each mode its own folder. `to` is a folder or
    `s3://bucket/prefix`. Images and texts that were logged are among it; saved text and booleans are not.
    """
    selection = selection or Selection()
    trial = opened(run)
    place = open_storage(to if isinstance(to, str) else Path(to))
    observed = Observed.of(trial, selection)
    names = set(selection.names(trial, or_observed=True)) - observed.scalars
    several = is_several(trial, selection)
    count = 0

    def tag_of(name: str, worker: str) -> str:
        return f"{worker}/{name}" if several else name

    with _Files(place) as files:
        for step in progress(selection.steps_of(trial)):
            for saved in selection.values_at(trial, step, names):
                value = saved.value
                if not value.size or value.dtype.kind == "b" or not is_numeric(value):
                    continue
                tag = tag_of(saved.name, saved.worker)
                when = saved.wall_time or 0.0
                if value.size == 1:
                    only = value.reshape(-1)[0]
                    number = float(abs(only)) if value.dtype.kind == "c" else float(only)
                    record = encode_scalar(tag, number, step=saved.mode_step, wall_time=when)
                else:
                    record = encode_histogram(tag, value, step=saved.mode_step, wall_time=when)
                files.of(saved.mode.name).write(record.pieces)
                count += 1
            for row in observed.measured_at(step):
                for statistic in _CURVES:
                    known = row.summary.of(statistic)
                    if known is None:
                        continue
                    tag = tag_of(f"{row.name}/{statistic}", row.worker)
                    when = row.wall_time or 0.0
                    record = encode_scalar(tag, float(known), step=row.mode_step, wall_time=when)
                    files.of(row.mode.name).write(record.pieces)
                    count += 1
            for series, worker, saved_at in observed.scalars_at(step):
                tag = tag_of(series.name, worker)
                for mode, at, number in zip(
                    series.modes, series.mode_steps.tolist(), series.values.tolist(), strict=True
                ):
                    record = encode_scalar(tag, number, step=at, wall_time=saved_at or 0.0)
                    files.of(mode.name).write(record.pieces)
                    count += 1
        for logged in selection.logged(trial):
            found = _logged_record(logged, tag_of(logged.name, logged.worker))
            if found is not None:
                files.of(logged.mode or ModeKeys.TRAIN.name).write(found.pieces)
                count += 1
        if not count:
            raise nothing_exported(trial)
    return count


def _logged_record(value: LoggedValue, tag: str) -> EncodedRecord | None:
    """Return the record of a logged image or text; None for others, and if it cannot be read."""
    try:
        if value.kind == "image" and len(value.shape) == 3:
            height, width, channels = value.shape
            shape = (height, width, channels)
            return encode_image(tag, value.data(), shape, step=value.step, wall_time=value.time)
        if value.kind == "text":
            # Indented, Markdown shows it as it is, and none of it is a link or an image.
            text = "\n".join(f"    {line}" for line in str(value.read()).split("\n"))
            return encode_text(tag, text, step=value.step, wall_time=value.time)
    except DamagedFile:
        return None
    return None


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
