"""One run as `smdebug watch` shows it: how far it is, its loss, and its problems as they come and go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from smdebug.amounts import counted
from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.files.names import END_MARKER
from smdebug.runs.evaluation.following import Following, IssueChange
from smdebug.runs.left_out import LeftOut, left_out_of
from smdebug.runs.opening import open_run
from smdebug.runs.training_loss import LossReader, TrainingLoss
from smdebug.secrets.texts import redacted_line
from smdebug.service.records import RequestedRule
from smdebug.storage import open_storage
from smdebug.trials import Trial
from smdebug.trials.stored.missing_steps import NOTHING_MISSING, MissingSteps

MOST_STEPS_AT_A_TIME = 200  # so that a long run shows progress while the rules catch up


class State(Enum):
    """The state of a run, as far as its files show it."""

    AWAITED = "waiting for the first step"
    CATCHING_UP = "reading"
    LIVE = "training"
    FAILED = "failed"
    ENDED = "ended"
    UNREADABLE = "cannot be read"


@dataclass
class LiveRun:
    """A run that is followed from its path; `advance` reads what is new."""

    path: str
    rules: Sequence[RequestedRule] | None = None
    rule_file: str | None = None
    state: State = State.AWAITED
    error: str = ""
    steps_saved: int = 0
    last_step: int | None = None
    last_saved_at: float | None = None
    training_loss: TrainingLoss | None = None
    following: Following | None = None
    missing: MissingSteps = NOTHING_MISSING
    """The steps that no rule can check, because they are not there."""
    left_out: tuple[LeftOut, ...] = ()
    """What cannot be read of it, once it has ended."""
    _loss_reader: LossReader | None = field(default=None, repr=False)

    def advance(self) -> list[IssueChange]:
        """Read and evaluate what is new; return which problems were opened or resolved."""
        try:
            changes = self._advance()
            self.error = ""
            return changes
        except MissingCollectionFiles:
            self.state = State.ENDED if open_storage(self.path).exists(END_MARKER) else State.AWAITED
        except SMDebugError as error:  # storage that cannot be reached now, or a damaged run
            self.state, self.error = State.UNREADABLE, redacted_line(error)
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
        where = " at the steps that are there" if self.is_partial else ""
        return f"{counted(passed, 'rule')} passed{where}" if passed else "nothing was checked"

    @property
    def is_partial(self) -> bool:
        """Whether steps or files of the run are known to be out of the rules' reach."""
        damaged = self.following is not None and self.following.trial.damaged_files
        return bool(self.missing or self.left_out or damaged)

    @property
    def loss(self) -> float | None:
        return None if self.training_loss is None else self.training_loss.last

    @property
    def losses(self) -> list[float]:
        return [] if self.training_loss is None else self.training_loss.values.tolist()

    def _advance(self) -> list[IssueChange]:
        following = self.following
        if following is None:
            trial = open_run(self.path)
            following = Following(trial, self.rules, file=self.rule_file)
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
            self.missing = trial.missing_steps
        if following.has_ended and not self.has_ended:
            self.missing = trial.missing_steps
            self.left_out = left_out_of(trial)
        if following.has_ended:
            self.state = State.ENDED
        elif behind:
            self.state = State.CATCHING_UP
        elif not steps:
            self.state = State.AWAITED
        else:  # one that failed may be resumed
            self.state = State.FAILED if trial.state == "failed" else State.LIVE
        return changes

    def _read_losses(self, trial: Trial) -> None:
        """Read the losses that are new. A run may have none."""
        if self._loss_reader is None:
            self._loss_reader = LossReader(trial)
        with suppress(SMDebugError):  # the rest of the run can still be shown
            self.training_loss = self._loss_reader.read()


def is_bad(loss: float | None) -> bool:
    """Return whether there is a loss that is not finite."""
    return loss is not None and not math.isfinite(loss)
