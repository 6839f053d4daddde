"""Files for TensorBoard from a saved run, like those that a hook with `export_tensorboard` writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from smdebug.exceptions import DamagedFile
from smdebug.export.observed import Observed
from smdebug.export.run_numbers import EVALUATIONS
from smdebug.export.selection import Selection, is_several, nothing_exported, opened
from smdebug.files.framing import EncodedRecord
from smdebug.files.tensorboard import encode_histogram, encode_image, encode_scalar, encode_text
from smdebug.mode_keys import ModeKeys
from smdebug.numbers.conditions import is_numeric
from smdebug.numbers.rows import COLUMNS
from smdebug.runs.curves.training_steps import TrainingSteps
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
    histograms. A tensor that was measured has a curve for each statistic: `gradient/fc.weight/abs_mean`. Each
    mode has its own folder. Steps are training steps, and an evaluation is at the one that it follows: a
    scalar of its batches is their mean. `to` is a folder or `s3://bucket/prefix`. Images and texts that were
    logged are among it; saved text and booleans are not.
    """
    selection = selection or Selection()
    trial = opened(run)
    place = open_storage(to if isinstance(to, str) else Path(to))
    observed = Observed.of(trial, selection)
    names = set(selection.names(trial, or_observed=True)) - observed.scalars
    several = is_several(trial, selection)
    count = 0
    clock = _training_steps(trial, observed)
    evaluations: dict[tuple[str, str, int], list[float]] = {}
    ended: dict[tuple[str, str, int], float] = {}

    def place_of(step: int, mode: ModeKeys, mode_step: int) -> int:
        return int(clock.of(np.array([step]))[0]) if mode in EVALUATIONS else mode_step

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
                at = place_of(step, saved.mode, saved.mode_step)
                if value.size == 1:
                    only = value.reshape(-1)[0]
                    number = float(abs(only)) if value.dtype.kind == "c" else float(only)
                    record = encode_scalar(tag, number, step=at, wall_time=when)
                else:
                    record = encode_histogram(tag, value, step=at, wall_time=when)
                files.of(saved.mode.name).write(record.pieces)
                count += 1
            for row in observed.measured_at(step):
                at = place_of(step, row.mode, row.mode_step)
                for statistic in _CURVES:
                    known = row.summary.of(statistic)
                    if known is None:
                        continue
                    tag = tag_of(f"{row.name}/{statistic}", row.worker)
                    when = row.wall_time or 0.0
                    record = encode_scalar(tag, float(known), step=at, wall_time=when)
                    files.of(row.mode.name).write(record.pieces)
                    count += 1
            for series, worker, saved_at in observed.scalars_at(step):
                tag = tag_of(series.name, worker)
                for mode, own, of_mode, number in zip(
                    series.modes,
                    series.steps.tolist(),
                    series.mode_steps.tolist(),
                    series.values.tolist(),
                    strict=True,
                ):
                    at = place_of(own, mode, of_mode)
                    if mode in EVALUATIONS:
                        evaluations.setdefault((mode.name, tag, at), []).append(number)
                        ended[mode.name, tag, at] = saved_at or 0.0
                        continue
                    record = encode_scalar(tag, number, step=at, wall_time=saved_at or 0.0)
                    files.of(mode.name).write(record.pieces)
                    count += 1
        for (mode_name, tag, at), numbers in evaluations.items():
            when = ended[mode_name, tag, at]
            record = encode_scalar(tag, sum(numbers) / len(numbers), step=at, wall_time=when)
            files.of(mode_name).write(record.pieces)
            count += 1
        for logged in selection.logged(trial):
            found = _logged_record(logged, tag_of(logged.name, logged.worker))
            if found is not None:
                files.of(logged.mode or ModeKeys.TRAIN.name).write(found.pieces)
                count += 1
        if not count:
            raise nothing_exported(trial)
    return count


def _training_steps(trial: Trial, observed: Observed) -> TrainingSteps:
    """Return the training steps of a run: those that were saved, and those of its scalars."""
    clock = TrainingSteps()
    saved = [(trial.global_step(ModeKeys.TRAIN, step), step) for step in trial.steps(ModeKeys.TRAIN)]
    known = np.array([pair for pair in saved if pair[0] is not None], np.int64).reshape(-1, 2)
    clock.note(known[:, 0], known[:, 1])
    for name in sorted(observed.scalars):
        clock.note_rows(trial.observations.series_rows(name))
    return clock


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
