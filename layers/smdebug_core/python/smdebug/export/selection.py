"""The tensors, steps and worker to export, one value at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from smdebug.exceptions import (
    DamagedFile,
    InvalidWorker,
    SMDebugError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.runs.opening import open_run
from smdebug.trials import Trial
from smdebug.trials.logged_reading import LoggedValue
from smdebug.trials.observations.damaged_values import note_damage


class Saved(NamedTuple):
    """One value, and its place in the run."""

    name: str
    step: int
    mode: ModeKeys
    mode_step: int
    worker: str
    value: NDArray[Any]
    wall_time: float | None


@dataclass(frozen=True)
class Selection:
    """A part of a run; by default all of it."""

    regex: str | tuple[str, ...] | None = None
    collection: str | None = None
    steps: tuple[int, ...] | None = None  # global ones; None: all
    worker: str | None = None  # None: all
    skips_damaged: bool = False
    """Leave out damaged values, which `trial.damaged_files` then lists, instead of raising `DamagedFile`."""

    def names(self, trial: Trial, *, or_observed: bool = False) -> list[str]:
        """Return the names of the selected tensors that were saved; raise `SMDebugValueError` without any.

        With `or_observed`, only if there is no measured tensor and no scalar either.
        """
        if self.worker is not None and self.worker not in trial.workers():
            raise InvalidWorker(self.worker)
        regex = list(self.regex) if isinstance(self.regex, tuple) else self.regex
        found = trial.tensor_names(regex=regex, collection=self.collection)
        if not (found or (or_observed and any(self.observed_names(trial)))):
            if regex:
                problem = f"No tensor of {trial.path} matches {' or '.join(_listed(regex))}"
            elif self.collection:
                problem = f"No tensor of {trial.path} is in {self.collection!r}"
            else:
                for error in trial.damaged_files.values():
                    raise error
                problem = f"{trial.path} has saved no tensor"
            raise SMDebugValueError(f"{problem}: nothing to export")
        return found

    def observed_names(self, trial: Trial) -> tuple[list[str], list[str]]:
        """Return the names of the selected tensors that were measured, and of the scalars of every step."""
        regex = list(self.regex) if isinstance(self.regex, tuple) else self.regex
        chosen = trial.chosen_by(regex, self.collection)
        scalars = trial.observations.series_names()
        return (
            trial.measured_tensors(regex=regex, collection=self.collection),
            [name for name in scalars if chosen is None or chosen(name)],
        )

    def logged(self, trial: Trial) -> list[LoggedValue]:
        """Return the selected images, texts and others that were logged."""
        regex = list(self.regex) if isinstance(self.regex, tuple) else self.regex
        chosen = trial.chosen_by(regex, self.collection)
        try:
            found = trial.logged()
        except DamagedFile as error:
            if not self.skips_damaged:
                raise
            note_damage(trial, error)
            return []
        return [
            value
            for value in found
            if (chosen is None or chosen(value.name))
            and self.worker in (None, value.worker)
            and (self.steps is None or value.step in self.steps)
        ]

    def steps_of(self, trial: Trial) -> list[int]:
        """Return the selected steps; raise `SMDebugValueError` if the run lacks one."""
        known = trial.steps()
        if self.steps is None:
            return known
        missing = sorted(set(self.steps) - set(known))
        if missing:
            last = f"; its last step is {known[-1]}" if known else ""
            raise SMDebugValueError(f"{trial.path} has no step {missing[0]}{last}")
        return sorted(set(self.steps))

    def values_at(self, trial: Trial, step: int, names: set[str]) -> Iterator[Saved]:
        """Yield the values saved at that step; tensors without a value are skipped."""
        mode, mode_step = trial.mode_modestep(step)
        workers = trial.index.workers_at(step, ModeKeys.GLOBAL) or {}
        for name in trial.tensor_names(step=step):
            if name not in names:
                continue
            tensor = trial.tensor(name)
            for worker in tensor.workers(step):
                if self.worker not in (None, worker):
                    continue
                try:
                    value = tensor.value(step, worker=worker)
                except TensorUnavailableForStep:
                    continue  # only its shape or its reductions were saved
                except DamagedFile as error:
                    if not self.skips_damaged:
                        raise
                    note_damage(trial, error)
                    continue
                yield Saved(
                    name=name,
                    step=step,
                    mode=mode or ModeKeys.GLOBAL,
                    mode_step=step if mode_step is None else mode_step,
                    worker=worker,
                    value=value,
                    wall_time=workers[worker].saved_at if worker in workers else None,
                )


def nothing_exported(trial: Trial) -> SMDebugError:
    """Return the error of an export without a value: nothing was saved, or nothing can be read."""
    for error in trial.damaged_files.values():
        return error
    return SMDebugValueError(
        "None of the tensors has a value to export: only shapes or reductions were saved"
    )


def _listed(regex: str | list[str]) -> list[str]:
    return [repr(pattern) for pattern in ([regex] if isinstance(regex, str) else regex)]


def opened(run: str | os.PathLike[str] | Trial) -> Trial:
    """Open the run, unless it is open already."""
    return run if isinstance(run, Trial) else open_run(run)


def label(saved: Saved, several_workers: bool) -> str:
    """The name of a value among those of other steps: `gradient/fc@100`, `gradient/fc@100:worker_1`."""
    return f"{saved.name}@{saved.step}" + (f":{saved.worker}" if several_workers else "")


def is_several(trial: Trial, selection: Selection) -> bool:
    """Whether a tensor can have values of several workers."""
    return selection.worker is None and len(trial.workers()) > 1
