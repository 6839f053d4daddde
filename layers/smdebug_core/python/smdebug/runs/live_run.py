"""One run as `smdebug watch` shows it: how far it is, its loss, and its problems as they come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from smdebug.amounts import counted
from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.mode_keys import ModeKeys
from smdebug.runs.following import Change, Following
from smdebug.runs.opening import open_run
from smdebug.runs.training_loss import kept_losses, most_likely_loss
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial

MOST_STEPS_AT_A_TIME = 200  # so that a long run shows progress while the rules catch up


Rules = Sequence[RequestedRule] | Callable[[Trial], Sequence[RequestedRule]] | None
"""The rules, or a function that chooses them once the run has begun; None: as `Following` does."""


class State(Enum):
    """The state of a run, as far as its files show it."""

    AWAITED = "waiting for the first step"
    CATCHING_UP = "reading"
    LIVE = "training"
    ENDED = "ended"
    UNREADABLE = "cannot be read"


@dataclass
class LiveRun:
    """A run that is followed from its path; `advance` reads what is new."""

    path: str
    rules: Rules = None
    rule_file: str | None = None
    state: State = State.AWAITED
    error: str = ""
    steps_saved: int = 0
    last_step: int | None = None
    last_saved_at: float | None = None
    loss_name: str = ""
    losses: list[float] = field(default_factory=list)
    following: Following | None = None

    def advance(self) -> list[Change]:
        """Read and evaluate what is new; return which problems were opened or resolved."""
        try:
            changes = self._advance()
            self.error = ""
            return changes
        except MissingCollectionFiles:
            self.state = State.AWAITED
        except SMDebugError as error:  # storage that cannot be reached now, or a damaged run
            self.state, self.error = State.UNREADABLE, " ".join(str(error).split())
        return []

    @property
    def has_ended(self) -> bool:
        return self.state is State.ENDED

    @property
    def is_behind(self) -> bool:
        """Whether there are saved steps that were not evaluated yet."""
        return self.state is State.CATCHING_UP

    @property
    def failed_rules(self) -> dict[str, str]:
        """The rules that failed, with their errors."""
        return {} if self.following is None else self.following.failed

    @property
    def outcome(self) -> str:
        """What the rules found so far: problems, or how many rules passed, or that nothing was checked."""
        if self.following is None:
            return "nothing was saved"
        problems = len(self.following.issues)
        if problems:
            return f"{counted(problems, 'problem')} detected"
        results = self.following.results
        passed = sum(result.has_seen and not result.error for result in results)
        return f"{counted(passed, 'rule')} passed" if passed else "nothing was checked"

    @property
    def loss(self) -> float | None:
        return self.losses[-1] if self.losses else None

    def _advance(self) -> list[Change]:
        following = self.following
        if following is None:
            trial = open_run(self.path)
            rules = self.rules(trial) if callable(self.rules) else self.rules
            following = Following(trial, rules, file=self.rule_file)
            self.following = following
        changes = following.advance(most_steps=MOST_STEPS_AT_A_TIME)
        trial = following.trial
        steps = trial.steps()
        behind = bool(steps) and steps[-1] > following.last_step
        self.steps_saved = len(steps)
        if steps and steps[-1] != self.last_step:
            self.last_step = steps[-1]
            self.last_saved_at = trial.saved_at(steps[-1])
            self._read_losses(trial)
        if following.has_ended:
            self.state = State.ENDED
        elif behind:
            self.state = State.CATCHING_UP
        else:
            self.state = State.LIVE if steps else State.AWAITED
        return changes

    def _read_losses(self, trial: Trial) -> None:
        """Read the losses that are new: of every step, or else of the saved ones. A run may have none."""
        try:
            kept = kept_losses(trial)
            if kept is not None:
                self.loss_name, self.losses = kept
            else:
                self._read_saved_losses(trial)
        except SMDebugError:
            pass  # the rest of the run can still be shown

    def _read_saved_losses(self, trial: Trial) -> None:
        self.loss_name = self.loss_name or most_likely_loss(trial.tensor_names(collection="losses"))
        if not self.loss_name:
            return
        tensor = trial.tensor(self.loss_name)
        steps = tensor.steps(ModeKeys.TRAIN) or tensor.steps()
        mode = ModeKeys.TRAIN if tensor.steps(ModeKeys.TRAIN) else ModeKeys.GLOBAL
        for step in steps[len(self.losses) :]:
            self.losses.append(float(tensor.reduction_value(step, "mean", mode)))


def is_bad(loss: float | None) -> bool:
    """Return whether there is a loss that is not finite."""
    return loss is not None and not math.isfinite(loss)
