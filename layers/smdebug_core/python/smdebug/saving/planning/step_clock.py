"""The step of a training, and its mode."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from smdebug.mode_keys import ModeKeys

BEFORE_THE_FIRST = -1
EVALUATIONS = (ModeKeys.EVAL, ModeKeys.PREDICT)
"""The modes of steps that train nothing."""


class StepClock(NamedTuple):
    """The current step, counted over all modes (`step`) and within its own (`mode_step`).

    Before the first step of a mode its count is -1. With `by_training`, `step` counts the steps that train:
    an evaluation has the number of the training step before it. A clock never changes: `next` gives another
    one.
    """

    step: int = BEFORE_THE_FIRST
    mode: ModeKeys = ModeKeys.GLOBAL
    mode_step: int = BEFORE_THE_FIRST
    # The counts of the other modes, kept apart so that a step copies no dictionary.
    resting: Mapping[ModeKeys, int] = MappingProxyType({})
    # The count of a mode that was never set: -1, or 0 where counting begins before the step runs.
    untouched: int = BEFORE_THE_FIRST
    # Whether steps of evaluation have the number of the training step before them, and none of their own.
    by_training: bool = False

    @classmethod
    def resumed(
        cls,
        step: int,
        mode_steps: Mapping[ModeKeys, int] | None = None,
        untouched: int = BEFORE_THE_FIRST,
    ) -> StepClock:
        """Return a clock whose last step was `step`, with the steps of each mode."""
        return cls(step, ModeKeys.GLOBAL, step, _resting(mode_steps or {}), untouched)

    def before_step(self, step: int) -> StepClock:
        """Return the clock of a training that goes on with that step, in the same mode."""
        trained = {ModeKeys.TRAIN: step - 1}
        resumed = StepClock.resumed(step - 1, trained, self.untouched)._replace(by_training=self.by_training)
        return resumed.in_mode(self.mode)

    def next(self, steps: int = 1) -> StepClock:
        """Return the clock `steps` steps of the mode later."""
        step, mode, mode_step, resting, untouched, by_training = self
        number = self.number_after(steps) if by_training else step + steps
        # The class itself, called with six arguments, takes twice as long.
        later = (number, mode, mode_step + steps, resting, untouched, by_training)
        return tuple.__new__(StepClock, later)

    def number_after(self, steps: int) -> int:
        """Return the number that the clock's step has `steps` steps of the mode later."""
        if self.by_training and self.mode in EVALUATIONS:
            return max(self.step, 0) if steps else self.step
        return self.step + steps

    def in_mode(self, mode: ModeKeys) -> StepClock:
        """Return the same moment, with the next steps counted for `mode`."""
        if mode is self.mode:
            return self
        counts = self.mode_steps
        mode_step = counts.get(mode, self.untouched)
        return StepClock(self.step, mode, mode_step, _resting(counts), self.untouched, self.by_training)

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The last step of each mode that was ever set; GLOBAL counts every step."""
        return {**self.resting, self.mode: self.mode_step, ModeKeys.GLOBAL: self.step}

    @property
    def was_trained(self) -> bool:
        """Whether steps of mode TRAIN have begun."""
        return self.mode_steps.get(ModeKeys.TRAIN, BEFORE_THE_FIRST) > BEFORE_THE_FIRST

    @property
    def training_step(self) -> int:
        """The step of the training that this is, or that an evaluation follows; `step` if none is known."""
        if self.by_training:
            return self.step
        if self.mode is ModeKeys.TRAIN:
            return self.mode_step
        trained = self.resting.get(ModeKeys.TRAIN, BEFORE_THE_FIRST)
        return trained if self.mode in EVALUATIONS and trained >= 0 else self.step

    def steps_since(self, began: StepClock) -> int:
        """Return how many steps of all modes there were since that clock."""
        if not self.by_training:
            return self.step - began.step
        return sum(self.steps_of_mode_since(mode, began) for mode in (ModeKeys.TRAIN, *EVALUATIONS))

    def steps_of_mode_since(self, mode: ModeKeys, began: StepClock) -> int:
        """Return how many steps of that mode there were since that clock."""
        now, then = self.mode_steps, began.mode_steps
        return now.get(mode, self.untouched) - then.get(mode, self.untouched)


def _resting(counts: Mapping[ModeKeys, int]) -> Mapping[ModeKeys, int]:
    return MappingProxyType({mode: steps for mode, steps in counts.items() if mode is not ModeKeys.GLOBAL})
