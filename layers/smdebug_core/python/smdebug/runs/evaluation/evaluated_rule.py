"""One rule on a run, evaluated step by step, with its result so far."""

from __future__ import annotations

import time

from smdebug.exceptions import SMDebugError
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import has_seen_all
from smdebug.runs.evaluation.parallel_rules import RuleWorker, worker_for
from smdebug.runs.evaluation.rule_results import PartialResult, RuleResult
from smdebug.runs.evaluation.rule_steps import LocalRule, RuleRequest, result_of, rule_class
from smdebug.secrets.texts import redacted
from smdebug.trials import Trial


class EvaluatedRule:
    """A rule with its result; one that cannot be constructed has failed."""

    def __init__(self, request: RuleRequest, trial: Trial):
        self.request = request
        self.result = PartialResult()
        self.steps: list[int] = []
        self.detects = False
        """Whether the rule detected its problem when it last checked a step."""
        self._trial = trial
        self._type: type[Rule] | None = None
        self._seconds = 0.0
        self._known = 0
        self._worker: RuleWorker | None = None
        try:
            self._type = rule_class(request.configuration.rule, request.file)
            self._worker = worker_for(request, trial)
        except SMDebugError as error:
            self.result.error = redacted(str(error))

    @property
    def name(self) -> str:
        return self.request.configuration.name

    def evaluate(self, step: int) -> None:
        """Evaluate the rule at the step, if it is in the rule's range."""
        configuration, result = self.request.configuration, self.result
        end = configuration.end_step
        if self._worker is None or result.is_over or step < configuration.start_step:
            return
        if end is not None and step >= end:
            return
        self.steps.append(step)
        passed = result.evaluated - result.without_data
        begun = time.perf_counter()
        self._worker.evaluate((step,), result)
        self._seconds += time.perf_counter() - begun
        if result.steps_found[-1:] == [step]:
            self.detects = True
        elif result.evaluated - result.without_data > passed:
            self.detects = False

    def end(self) -> None:
        """Evaluate the rule at the end of the run, if that was its last step."""
        worker, steps = self._worker, self.steps
        if (
            self._type is None
            or worker is None
            or not steps
            or not self.result.evaluated
            or self.result.is_over
        ):
            return
        if has_seen_all(self._type, self._trial, steps[-1]):
            before = self._number_found()
            worker.end(steps[-1], self.result)
            self.detects = self.detects or self._number_found() > before

    def in_silence(self) -> None:
        """Evaluate the rule while nothing is saved after its last step, if it judges that."""
        worker, steps = self._worker, self.steps
        if isinstance(worker, LocalRule) and steps and not self.result.is_over:
            self.detects = worker.in_silence(steps[-1], self.result) or self.detects

    def has_found_more(self) -> bool:
        """Return whether there are findings since the last call."""
        known, self._known = self._known, len(self.result.steps_found) + self._number_found()
        return self._known > known

    def _number_found(self) -> int:
        return sum(findings.count for findings in self.result.found)

    def so_far(self) -> RuleResult:
        """Return the result at the steps up to now."""
        self.result.note_damage(self._trial.damaged_files)
        return result_of(
            self.request.configuration,
            self._type,
            self.result,
            self.steps,
            selection=self._worker.selection if self._worker else "",
            seconds=self._seconds,
        )
