"""The base class of rules that check tensor by tensor: worst first, with the history of each finding.

class TooLarge(TensorRule):
    def judged(self, step):
        for tensor in measure(self.base_trial, self.base_trial.tensor_names(step=step), step):
            largest = tensor.statistics.max
            finding = Finding(tensor.name, "max", largest, 10.0) if largest > 10.0 else None
            yield Judged(tensor.name, tensor.worker, finding, badness=largest, value=largest)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.rules.findings import Finding
from smdebug.rules.measurements import MISSING
from smdebug.rules.rule import Rule

if TYPE_CHECKING:
    from smdebug.trials.trial import Trial

MOST_REMEMBERED = 1000
_MAX_LOOKBACK = 20  # saved steps without the tensor of one worker


class Judged(NamedTuple):
    """A rule's verdict on one worker's part of a tensor; findings are sorted by `badness`.

    Without a finding the tensor passed; with `skipped`, the reason, it was not checked. `value` is the number
    that was compared with the limit: backtests show how near to it healthy runs come.
    """

    tensor: str
    worker: str
    finding: Finding | None = None
    badness: float = 0.0
    skipped: str = ""
    value: float | None = None


class TensorRule(Rule):
    """A rule that checks tensors separately: implement `judged`.

    A finding that repeats, with the same statistic and limit, names the step at which it began
    (`found_since`) and the last earlier step at which the tensor passed (`last_good_step`). This history
    is kept for the first thousand findings. A rule that does not check every saved step of a tensor
    provides `last_good_step` itself, in the `details`.
    """

    def __init__(self, base_trial: Trial, action_str: Any = None, other_trials: Any = None):
        super().__init__(base_trial, action_str, other_trials)
        self.asked_from: int | None = None
        # For tensors skipped since: the last step at which they passed.
        self.good_before: dict[tuple[str, str], int | None] = {}
        self.found_since: dict[tuple[str, ...], tuple[int, int | None]] = {}

    @abstractmethod
    def judged(self, step: int) -> Iterable[Judged]:
        """Yield a verdict for each tensor at this step."""

    def invoke_at_step(self, step: int) -> bool:
        if self.asked_from is None:
            self.asked_from = step
        found: list[tuple[float, str, str, Finding]] = []
        checked: set[tuple[str, str]] = set()
        skipped_now: list[tuple[str, str]] = []
        values: list[float] = []
        for name, worker, finding, badness, skipped, value in self.judged(step):
            if skipped:
                self.skipped[name] = skipped
                skipped_now.append((name, worker))
                continue
            checked.add((name, worker))
            if value is not None and math.isfinite(value):
                values.append(value)
            if finding is not None:
                found.append((-badness, name, worker, finding))
        found.sort(key=lambda item: item[:3])
        self.looked = bool(checked)
        self.checked_value = (min(values), max(values)) if values else None
        before, self.found_since = (
            self.found_since,
            {key: since for key, since in self.found_since.items() if key[:2] not in checked},
        )
        last_good = {key[:2]: good for key, (_, good) in before.items()}
        self.findings = []
        for _, name, worker, finding in found:
            key = (name, worker, finding.statistic or "", str(finding.threshold))
            if key in before:
                since = before[key]
            elif key[:2] in last_good:  # it failed before, in another way
                since = (step, last_good[key[:2]])
            else:
                since = (step, self._last_good_step(name, worker, step, finding.details))
            if len(self.found_since) < MOST_REMEMBERED:
                self.found_since[key] = since
            self.findings.append(_with_history(finding, name, worker, step, since))
        self._remember_good(step, checked, skipped_now)
        return bool(found)

    def _remember_good(
        self, step: int, checked: set[tuple[str, str]], skipped_now: list[tuple[str, str]]
    ) -> None:
        # A tensor that is skipped for all workers has no worker name.
        known = checked | {(name, "") for name, _ in checked}
        kept = {key: good for key, good in self.good_before.items() if key not in known}
        for key in skipped_now:
            if key not in known and key not in kept and len(kept) < MOST_REMEMBERED:
                kept[key] = self._last_good_step(*key, step)
        self.good_before = kept

    def _last_good_step(
        self, name: str, worker: str, step: int, details: Mapping[str, Any] = MappingProxyType({})
    ) -> int | None:
        """Return the last earlier step at which this tensor passed."""
        for key in ((name, worker), (name, "")):
            if key in self.good_before:
                return self.good_before[key]
        earliest = self.asked_from or 0
        if "last_good_step" in details:
            good: int | None = details["last_good_step"]
            return good if good is not None and good >= earliest else None
        if earliest == step:
            return None
        try:
            return self._saved_before(name, worker, step, earliest)
        except MISSING:
            return None

    def _saved_before(self, name: str, worker: str, step: int, earliest: int) -> int | None:
        """Return the last earlier step at which that worker saved the tensor, if it is recent."""
        tensor, latest = self.base_trial.tensor(name), step - 1
        for _ in range(_MAX_LOOKBACK):
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
