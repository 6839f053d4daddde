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
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.rules.findings import Finding
from smdebug.rules.looking import MISSING
from smdebug.rules.rule import Rule

if TYPE_CHECKING:
    from smdebug.trials.trial import Trial

MOST_REMEMBERED = 1000
_LOOKED_BACK = 20  # saved steps at which a worker may have left out the tensor


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
    since which that is so (`found_since`), and with the last step before at which it was looked at and
    nothing was found (`last_good_step`). That is remembered of the first thousand. A rule that does not look
    at every step at which a tensor was saved tells the `last_good_step` itself, in the `details`.
    """

    def __init__(self, base_trial: Trial, action_str: Any = None, other_trials: Any = None):
        super().__init__(base_trial, action_str, other_trials)
        self.asked_from: int | None = None
        # Of tensors that were passed over since, the step at which all was still well.
        self.good_before: dict[tuple[str, str], int | None] = {}
        self.found_since: dict[tuple[str, ...], tuple[int, int | None]] = {}

    @abstractmethod
    def judged(self, step: int) -> Iterable[Judged]:
        """What there is to say of each tensor at this step."""

    def invoke_at_step(self, step: int) -> bool:
        if self.asked_from is None:
            self.asked_from = step
        found: list[tuple[float, str, str, Finding]] = []
        looked_at: set[tuple[str, str]] = set()
        passed_over: list[tuple[str, str]] = []
        for name, worker, finding, badness, skipped in self.judged(step):
            if skipped:
                self.skipped[name] = skipped
                passed_over.append((name, worker))
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
                since = (step, self._last_good_step(name, worker, step, finding.details))
            if len(self.found_since) < MOST_REMEMBERED:
                self.found_since[key] = since
            self.findings.append(_with_history(finding, name, worker, step, since))
        self._remember_good(step, looked_at, passed_over)
        return bool(found)

    def _remember_good(
        self, step: int, looked_at: set[tuple[str, str]], passed_over: list[tuple[str, str]]
    ) -> None:
        # What is passed over as a whole has no worker.
        seen = looked_at | {(name, "") for name, _ in looked_at}
        kept = {key: good for key, good in self.good_before.items() if key not in seen}
        for key in passed_over:
            if key not in seen and key not in kept and len(kept) < MOST_REMEMBERED:
                kept[key] = self._last_good_step(*key, step)
        self.good_before = kept

    def _last_good_step(
        self, name: str, worker: str, step: int, told: Mapping[str, Any] = MappingProxyType({})
    ) -> int | None:
        """The last step before at which it was looked at, of a tensor of which nothing was found there."""
        for key in ((name, worker), (name, "")):
            if key in self.good_before:
                return self.good_before[key]
        earliest = self.asked_from or 0
        if "last_good_step" in told:
            good: int | None = told["last_good_step"]
            return good if good is not None and good >= earliest else None
        if earliest == step:
            return None
        try:
            return self._saved_before(name, worker, step, earliest)
        except MISSING:
            return None

    def _saved_before(self, name: str, worker: str, step: int, earliest: int) -> int | None:
        """The step before at which that worker saved the tensor, if it is not long ago."""
        tensor, latest = self.base_trial.tensor(name), step - 1
        for _ in range(_LOOKED_BACK):
            steps = tensor.prev_steps(latest, 1)
            if not steps or steps[0] < earliest:
                return None
            if not worker or worker in tensor.workers(steps[0]):
                return int(steps[0])
            latest = steps[0] - 1
        return None


def _with_history(
    finding: Finding, name: str, worker: str, step: int, since: tuple[int, int | None]
) -> Finding:
    began, last_good = since
    details = {**finding.details, "found_since": began}
    details.pop("last_good_step", None)
    if last_good is not None:
        details["last_good_step"] = last_good
    message = str(finding)
    if began != step:
        message += f", since step {began}"
    return replace(finding, tensor=name, worker=worker, step=step, message=message, details=details)
