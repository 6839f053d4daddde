"""A training that stopped saving, but has not ended."""

from __future__ import annotations

import json
import time
from typing import Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Finding, Rule
from smdebug.rules.action import listed_actions
from smdebug.rules.parameters import boolean, integer, is_given, text
from smdebug.trials import StepState


class StalledTrainingRule(Rule):
    """Fires when no step was saved for `threshold` seconds and the training has not ended.

    On a run in progress, it fires while it waits for the next step, once in each silence; before the first
    step, the time counts from its first invocation, unless `before_first_step` is False. Deployed, a timer
    wakes it. At a saved step, it fires if the previous one is that much older, by the times in the index
    files.
    """

    advice: ClassVar = {
        "": (
            "Look at the log of the training, and at its processes: one may wait for another, or for data.",
            "Check that the disk or bucket can still be written to.",
        )
    }

    now = staticmethod(time.time)
    pause = staticmethod(time.sleep)

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = 1800,
        stop_training_on_fire: Any = False,
        training_job_name_prefix: Any = None,
        before_first_step: Any = True,
        *,
        action_str: Any = None,
    ):
        stop = boolean("stop_training_on_fire", stop_training_on_fire)
        if stop and not is_given(training_job_name_prefix):
            raise SMDebugValueError("stop_training_on_fire needs training_job_name_prefix")
        if stop:
            prefix = text("training_job_name_prefix", training_job_name_prefix)
            stopping = {"name": "stoptraining", "training_job_prefix": prefix}
            every = [*listed_actions(action_str), stopping]
            action_str = json.dumps(every) if isinstance(action_str, str) else every
        super().__init__(base_trial, action_str)
        self.threshold = integer("threshold", threshold, minimum=1)
        self.before_first_step = boolean("before_first_step", before_first_step)
        self.watched_since: float | None = None  # when it first waited for a step
        self.last_saved: float | None = None
        self.last_step: int | None = None
        self.told_of: float | None = None
        # The step after which a silence was reported that still lasts.
        self.silent_after: int | None = None

    def invoke(self, step: int) -> None:
        self._watch(step)
        super().invoke(step)

    def invoke_at_step(self, step: int) -> bool:
        saved = self.base_trial.saved_at(step)
        self.looked = saved is not None or self.silent_after is not None
        self.silent_after = None
        if saved is None:
            self.skipped["saved_at"] = "the files lack the time at which they were saved"
            return False
        last, before = self.last_saved, self.last_step
        self.last_saved, self.last_step = saved, step
        if last is None or saved - last < self.threshold:
            return False
        if self.told_of is not None and self.told_of >= last:
            return False  # already reported while it lasted
        silence = saved - last
        self.findings = [self._finding(silence, step, before)]
        return True

    def invoke_in_silence(self, step: int, seconds: float) -> None:
        """Evaluate the rule `seconds` after `step`, the last one, at which it was invoked.

        Called by a timer, in place of waiting in `invoke`.
        """
        self.findings, self.looked, self.skipped = [], False, {}
        if seconds >= self.threshold and self.silent_after != step:
            self.silent_after, self.told_of = step, self.last_saved
            self.last_step = step
            self._fire(step, seconds)

    def _watch(self, step: int) -> None:
        """Wait for the step, and fire if that takes too long."""
        trial = self.base_trial
        began: float | None = None
        pause = 0.1
        while trial.has_passed_step(step) is StepState.NOT_YET_AVAILABLE:
            if began is None:
                began = self.now()
            if self.watched_since is None:
                self.watched_since = began
            self._note_news()
            last = self.last_saved if self.last_step is not None else self.watched_since
            if last is None:
                last = began
            counts = self.last_step is not None or self.before_first_step
            silence = self.now() - last
            if counts and silence >= self.threshold and self.told_of != last:
                self.told_of = last
                self._fire(step, silence)
            self.pause(min(pause, max(self.threshold - silence, 0.05)))
            pause = min(2 * pause, 10.0)

    def _note_news(self) -> None:
        steps = self.base_trial.steps(show_incomplete_steps=True)
        if steps and (self.last_step is None or steps[-1] > self.last_step):
            self.last_step = steps[-1]
            self.last_saved = self.base_trial.saved_at(steps[-1]) or self.now()

    def _fire(self, step: int, silence: float) -> None:
        self.looked = True
        found = self._finding(silence, step, self.last_step)
        self.findings = [found]
        self.raise_met(step, (found,))

    def _finding(self, silence: float, step: int, before: int | None) -> Finding:
        since = "since the rule started" if before is None else f"after step {before}"
        return Finding(
            statistic="seconds without a step",
            value=silence,
            threshold=self.threshold,
            step=step,
            message=f"no step saved for {silence:.0f} s {since} (limit {self.threshold} s)",
            details={} if before is None else {"last_good_step": before},
        )
