"""Rules that judge tensor by tensor, and tell the worst first, since when, and when all was still well.

class TooLarge(TensorRule):
    def judged(self, step):
        for seen in measure(self.base_trial, self.base_trial.tensor_names(step=step), step):
            largest = seen.statistics.max
            finding = Finding(seen.name, "max", largest, 10.0) if largest > 10.0 else None
            yield Judged(seen.name, seen.worker, finding, badness=largest)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.rules.findings import Finding
from smdebug.rules.looking import MISSING
from smdebug.rules.rule import Rule

if TYPE_CHECKING:
    from smdebug.trials.trial import Trial

MOST_REMEMBERED = 1000


class Judged(NamedTuple):
    """What a rule says of one worker's part of a tensor; the larger `badness`, the further up it is told.

    Without a finding it is all right; with `skipped`, it was not looked at, and that is why.
    """

    tensor: str
    worker: str
    finding: Finding | None = None
    badness: float = 0.0
    skipped: str = ""


class TensorRule(Rule):
    """A rule that judges tensors one by one: implement `judged`.

    What is found over several looks in a row, by the same statistic and limit, is told with the step
    since which that is so (`found_since`), and with the last step before at which the tensor was saved
    and nothing was found (`last_good_step`). That is remembered of the first thousand.
    """

    def __init__(self, base_trial: Trial, action_str: Any = None, other_trials: Any = None):
        super().__init__(base_trial, action_str, other_trials)
        self.asked_from: int | None = None
        self.found_since: dict[tuple[str, ...], tuple[int, int | None]] = {}

    @abstractmethod
    def judged(self, step: int) -> Iterable[Judged]:
        """What there is to say of each tensor at this step."""

    def invoke_at_step(self, step: int) -> bool:
        if self.asked_from is None:
            self.asked_from = step
        found: list[tuple[float, str, str, Finding]] = []
        looked_at: set[tuple[str, str]] = set()
        for name, worker, finding, badness, skipped in self.judged(step):
            if skipped:
                self.skipped[name] = skipped
                continue
            looked_at.add((name, worker))
            if finding is not None:
                found.append((-badness, name, worker, finding))
        found.sort(key=lambda one: one[:3])
        self.looked = bool(looked_at)
        before, self.found_since = (
            self.found_since,
            {key: since for key, since in self.found_since.items() if key[:2] not in looked_at},
        )
        last_good = {key[:2]: good for key, (_, good) in before.items()}
        self.findings = []
        for _, name, worker, finding in found:
            key = (name, worker, finding.statistic or "", str(finding.threshold))
            if key in before:
                since = before[key]
            elif key[:2] in last_good:  # it was ill before, in another way
                since = (step, last_good[key[:2]])
            else:
                since = (step, self._last_good_step(name, step))
            if len(self.found_since) < MOST_REMEMBERED:
                self.found_since[key] = since
            self.findings.append(_with_history(finding, name, worker, step, since))
        return bool(found)

    def _last_good_step(self, name: str, step: int) -> int | None:
        if self.asked_from == step:
            return None
        try:
            before = [one for one in self.base_trial.tensor(name).prev_steps(step, 2) if one < step]
        except MISSING:
            return None
        return before[-1] if before and before[-1] >= (self.asked_from or 0) else None


def _with_history(
    finding: Finding, name: str, worker: str, step: int, since: tuple[int, int | None]
) -> Finding:
    began, last_good = since
    details = {**finding.details, "found_since": began}
    if last_good is not None:
        details["last_good_step"] = last_good
    message = str(finding)
    if began != step:
        message += f", since step {began}"
    return replace(finding, tensor=name, worker=worker, step=step, message=message, details=details)
