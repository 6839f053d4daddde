"""The numbers under which steps are saved, where evaluations have the number of a training step.

A number has one record. An evaluation after training step 49 is saved as 49, as training seldom saves that
step as well. If it does, the evaluation is saved as 50, and what training would save at 50 follows at 51.
An evaluation that follows every step is no evaluation in blocks: it takes no number that training wants.
"""

from __future__ import annotations

from smdebug.saving.planning.save_plan import NO_MEMBERS, Members
from smdebug.saving.planning.step_clock import EVALUATIONS, StepClock


class RecordNumbers:
    """Which step has the last number that was saved, and what has to wait for the next one."""

    def __init__(self, resumed: StepClock | None = None) -> None:
        """`resumed` is the last step of a training that is resumed: its number is taken."""
        self.last = resumed
        """The last step that was saved, with the number that it has."""
        self._waiting: Members = NO_MEMBERS
        self._evaluated: int | None = None  # the last training step that an evaluation followed

    @property
    def is_waiting(self) -> bool:
        """Whether something is due at the next step, as the number of this one was taken."""
        return bool(self._waiting)

    def take(self, clock: StepClock) -> None:
        """Note that a step was saved."""
        self.last = clock

    def placed(self, due: Members, clock: StepClock, *, is_training_due: bool = False) -> Members:
        """Return what to save of a step that has begun: what is due, if there is a number for it.

        `is_training_due` says of an evaluation whether the next step of training is to be saved.
        """
        number = self._number_of(clock)
        is_free = self.last is None or number > self.last.step
        if clock.mode in EVALUATIONS:
            before, self._evaluated = self._evaluated, clock.step
            follows_every_step = before is not None and clock.step <= before + 1
            if is_training_due and number > clock.step and follows_every_step:
                return NO_MEMBERS
            return due if is_free else NO_MEMBERS
        due |= self._waiting
        self._waiting = NO_MEMBERS if is_free else due
        return due if is_free else NO_MEMBERS

    def clock_of(self, clock: StepClock) -> StepClock:
        """Return the step with the number that its values are saved under.

        If that number is taken, the values belong to the step that has it.
        """
        number = self._number_of(clock)
        if self.last is not None and number <= self.last.step:
            return self.last
        return clock._replace(step=number)

    def after_last(self, clock: StepClock) -> StepClock:
        """Return the step with a number that is free in any case."""
        if self.last is None or clock.step > self.last.step:
            return clock
        return clock._replace(step=self.last.step + 1)

    def _number_of(self, clock: StepClock) -> int:
        last = self.last
        follows = last is not None and last.step == clock.step and last.mode not in EVALUATIONS
        return clock.step + 1 if follows and clock.mode in EVALUATIONS else clock.step
