"""Make the training of a run save the tensors of a finding whole for its next steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from smdebug.config.patterns import searcher
from smdebug.exceptions import ObjectMissing, SMDebugValueError
from smdebug.files.names import END_MARKER, ZOOM_KEY
from smdebug.files.zoom_request import MOST_STEPS, STEPS, ZoomRequest, patterns_for
from smdebug.rules.action.outcome import ActionOutcome

if TYPE_CHECKING:
    from smdebug.rules.findings import Finding
    from smdebug.trials import Trial


class ZoomInAction:
    """Writes a zoom request beside the run, for the tensors that the finding names or a pattern matches.

    The same tensors are requested once, however often the rule fires.
    """

    def __init__(self, rule_name: str, *, tensor_regex: str | None = None, steps: int = STEPS):
        if not 1 <= steps <= MOST_STEPS:
            raise SMDebugValueError(f"steps of the action zoomin must be 1 to {MOST_STEPS}, not {steps}")
        if tensor_regex is not None:
            searcher(tensor_regex)  # raises if it is not a pattern
        self.rule_name = rule_name
        self.tensor_regex = tensor_regex
        self.steps = steps
        self._requested: set[tuple[str, ...]] = set()

    def __str__(self) -> str:
        what = self.tensor_regex or "the tensors of the finding"
        return f"zoom into {what} for {self.steps} steps"

    def invoke(
        self, message: str = "", trial: Trial | None = None, findings: Iterable[Finding] = ()
    ) -> ActionOutcome:
        """Write the request."""
        if trial is None:
            return self._not_done("the run is not known")
        patterns = self._patterns(findings)
        if not patterns:
            return self._not_done("the finding names no tensor. Give the action a tensor_regex to zoom into")
        if trial.storage.exists(END_MARKER):
            return self._not_done("the run has ended")
        if patterns in self._requested or patterns == _requested_before(trial):
            return self._not_done("these tensors were requested before")
        meta = trial.collection_manager.meta
        run_id, training_run = meta.get("run_id"), meta.get("training_run")
        request = ZoomRequest(
            patterns,
            self.steps,
            f"{self.rule_name}: {message}" if message else self.rule_name,
            run_id=run_id if isinstance(run_id, str) else None,
            training_run=training_run if isinstance(training_run, int) else None,
        )
        trial.storage.write(ZOOM_KEY, request.encode())
        self._requested.add(patterns)
        return ActionOutcome(str(self), True, f"wrote {trial.path}/{ZOOM_KEY}")

    def _patterns(self, findings: Iterable[Finding]) -> tuple[str, ...]:
        if self.tensor_regex is not None:
            return (self.tensor_regex,)
        return patterns_for(finding.tensor for finding in findings if finding.tensor)

    def _not_done(self, reason: str) -> ActionOutcome:
        return ActionOutcome(str(self), False, f"nothing was requested: {reason}")


def _requested_before(trial: Trial) -> tuple[str, ...] | None:
    try:
        return ZoomRequest.parse(trial.storage.read(ZOOM_KEY)).tensors
    except (ObjectMissing, ValueError):
        return None
