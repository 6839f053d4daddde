"""The loss of a training: one series, one last and one lowest value, wherever a run is shown.

A run of the default plan keeps its loss at every step; any other has it where the hook saved it. Losses of
evaluations are left out, unless the run has no steps of training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import number
from smdebug.exceptions import SMDebugTypeError, TensorUnavailableForStep
from smdebug.files.names import SYSTEM
from smdebug.mode_keys import ModeKeys
from smdebug.runs.thinned_steps import thinned
from smdebug.trials import Trial
from smdebug.trials.observations.damaged_values import DAMAGED, note_damage
from smdebug.trials.observations.loss_names import likely_losses
from smdebug.trials.observations.series import settled

LOSSES = "losses"
MOST_READ = 1000
"""Saved losses that a command reads of a run that keeps no series, before it leaves some out."""


@dataclass(frozen=True)
class TrainingLoss:
    """The loss at the global steps of a training, in order; there is at least one value."""

    name: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    is_sampled: bool = False
    """Whether some values were left out, but not the last one: the run is long."""
    training_steps: NDArray[np.int64] | None = None
    """The same steps, counted among those of the training alone, if they are known."""

    @property
    def last(self) -> float:
        """The loss of the last step that has one."""
        return float(self.values[-1])

    @property
    def last_step(self) -> int:
        """The step of `last`."""
        return int(self.steps[-1])

    @property
    def last_training_step(self) -> int | None:
        """The step of `last`, counted among those of the training alone; None if that is not known."""
        return None if self.training_steps is None else int(self.training_steps[-1])

    @property
    def best(self) -> float | None:
        """The lowest loss; None if no value is finite, or some were not read."""
        place = self._best_place
        return None if place is None else float(self.values[place])

    @property
    def best_step(self) -> int | None:
        """The first step with the lowest loss."""
        place = self._best_place
        return None if place is None else int(self.steps[place])

    def step_in_words(self, step: int) -> str:
        """Return the step, with its number among the training steps if evaluations were counted before it."""
        words = f"step {step:,}"
        if self.training_steps is None:
            return words
        own = int(self.training_steps[np.searchsorted(self.steps, step)])
        return words if own == step else f"{words} (training step {own:,})"

    @property
    def _best_place(self) -> int | None:
        if self.is_sampled:
            return None
        known = np.where(np.isfinite(self.values), self.values, np.inf)
        place = int(np.argmin(known))
        return place if known[place] < np.inf else None

    def points(self, most: int) -> list[tuple[int, float]]:
        """Return at most so many steps with their losses, evenly spread, with the first and the last."""
        places = thinned(list(range(len(self))), most)
        return [(int(self.steps[place]), float(self.values[place])) for place in places]

    def __len__(self) -> int:
        return len(self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The last and the lowest value, as JSON has them."""
        return {
            "name": self.name,
            "last": self.last,
            "last_step": self.last_step,
            "best": self.best,
            "best_step": self.best_step,
            "values": len(self),
        }


def losses_first(names: Iterable[str]) -> list[str]:
    """Return the names of scalars in order: losses, other metrics, those of the machine."""
    return sorted(names, key=lambda name: (name.startswith(SYSTEM), "loss" not in name.lower(), name))


def loss_in_words(loss: TrainingLoss) -> str:
    """Return the last and the lowest loss: `0.104 at step 136, lowest 0.0519 at step 81`."""
    text = f"{number(loss.last)} at {loss.step_in_words(loss.last_step)}"
    if loss.best is None or loss.best_step is None or loss.best_step == loss.last_step:
        return text
    return f"{text}, lowest {number(loss.best)} at {loss.step_in_words(loss.best_step)}"


def loss_name(trial: Trial) -> str:
    """Return the name of the training's loss; empty if the run has none."""
    return next(iter(loss_names(trial)), "")


def loss_names(trial: Trial) -> list[str]:
    """Return the names of all losses, the most likely loss of the training first."""
    saved = trial.tensor_names(collection=LOSSES)
    return likely_losses([*trial.observations.series_names(), *saved], saved)


def training_loss(trial: Trial, name: str = "", most: int | None = MOST_READ) -> TrainingLoss | None:
    """Return the loss of the training, or the one of that name; None if there is none.

    At most `most` losses that were saved are read; a series of every step is read in full.
    """
    return LossReader(trial, name, most).read()


def of_rows(name: str, rows: NDArray[np.float64]) -> TrainingLoss | None:
    """Return the loss in rows of step, mode, step of the mode, value; the last row of a step counts."""
    rows = settled(rows)
    chosen = rows[rows[:, 1] == ModeKeys.TRAIN.value]
    is_training = len(chosen) > 0
    rows = chosen if is_training else rows
    if not len(rows):
        return None
    steps, places = np.unique(rows[::-1, 0], return_index=True)
    own = rows[::-1, 2][places].astype(np.int64) if is_training else None
    return TrainingLoss(name, steps.astype(np.int64), rows[::-1, 3][places], training_steps=own)


class _Point(NamedTuple):
    """The loss at a step, which has that number among the training steps, if it is known."""

    step: int
    value: float
    own_step: int | None = None


class LossReader:
    """Reads the loss of a run that may grow: each saved step once.

    At most `most` saved losses are read, evenly spread and with the last one. A series of every step is read
    in full, unless `samples_series`.
    """

    def __init__(
        self,
        trial: Trial,
        name: str = "",
        most: int | None = None,
        *,
        samples_series: bool = False,
    ):
        self.name = name
        self._trial = trial
        self._most = most
        self._samples_series = samples_series
        self._attempt: Any = None
        self._known: dict[int, _Point | None] = {}

    def read(self) -> TrainingLoss | None:
        """Return the loss as far as it was saved; None if there is none."""
        trial = self._trial
        self.name = self.name or loss_name(trial)
        if not self.name:
            return None
        if self._attempt is not trial.observations:  # those of another attempt replace them
            self._attempt, self._known = trial.observations, {}
        if not has_series(trial, self.name):
            return self._of_steps(_saved_steps(trial, self.name), self._saved_at)
        if self._samples_series:
            return self._of_steps(trial.steps(), self._kept_at)
        return of_rows(self.name, trial.observations.series_rows(self.name))

    def _of_steps(self, steps: list[int], read: Callable[[int], _Point | None]) -> TrainingLoss | None:
        chosen = steps if self._most is None else thinned(steps, self._most)
        for newest in steps[-1:]:  # late values may be added to it
            self._known.pop(newest, None)
        points = {self._at(step, read) for step in chosen}
        for step in reversed(steps):  # evaluations may have come last
            last = self._at(step, read)
            points.add(last)
            if last is not None:
                break
        found = sorted((point for point in points if point is not None), key=lambda point: point[:2])
        if not found:
            return None
        own = [point.own_step for point in found if point.own_step is not None]
        return TrainingLoss(
            self.name,
            np.array([point.step for point in found], np.int64),
            np.array([point.value for point in found], np.float64),
            is_sampled=self._samples_series or len(chosen) < len(steps),
            training_steps=np.array(own, np.int64) if len(own) == len(found) else None,
        )

    def _at(self, step: int, read: Callable[[int], _Point | None]) -> _Point | None:
        if step not in self._known:
            self._known[step] = read(step)
        return self._known[step]

    def _kept_at(self, step: int) -> _Point | None:
        """Return the newest loss that a saved step has kept, with its own step."""
        rows = self._trial.observations.at(step).series(self.name)
        is_training = ModeKeys.TRAIN in self._trial.modes()
        if is_training:
            rows = rows[rows[:, 1] == ModeKeys.TRAIN.value]
        if not len(rows):
            return None
        step, _, own_step, value = rows[-1].tolist()
        return _Point(int(step), value, int(own_step) if is_training else None)

    def _saved_at(self, step: int) -> _Point | None:
        """Return a saved loss, the mean if it has several values; None if it cannot be read."""
        try:
            value = self._trial.tensor(self.name).reduction_value(step, "mean")
        except DAMAGED as error:
            note_damage(self._trial, error)
        except (TensorUnavailableForStep, SMDebugTypeError):  # its shape alone was saved, or text
            pass
        else:
            return None if np.iscomplexobj(value) else _Point(step, float(value))
        return None


def has_series(trial: Trial, name: str) -> bool:
    """Return whether the run keeps a scalar of that name at every step."""
    return name in trial.observations.series_names()


def _saved_steps(trial: Trial, name: str) -> list[int]:
    """Return the global steps of the saved losses that count."""
    tensor = trial.tensor(name)
    of_training = tensor.steps(ModeKeys.TRAIN)
    if not of_training:
        return tensor.steps()
    steps = (trial.global_step(ModeKeys.TRAIN, step) for step in of_training)
    return [step for step in steps if step is not None]
