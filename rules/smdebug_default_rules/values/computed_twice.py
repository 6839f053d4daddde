"""Steps that give other bits when they are computed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_EQUAL = 2
"""How many steps must have given the same bits twice before: some computations never do."""
_KINDS = ("outputs", "gradients")
NOT_ASKED = "no step was computed twice: smdebug.start(..., compute_twice=1000)"


class ComputedTwice(DefaultRule):
    """Fires when a step gives other bits as it is computed again, and earlier steps gave the same.

    It is checked of PyTorch trainings that ask for it: `smdebug.start(..., compute_twice=1000)`.
    """

    cause = "corruption"
    advice: ClassVar[Advice] = {
        "corruption": (
            "Resume from the last checkpoint before this step on other hardware.",
            "Check the memory and error counters of the device, such as nvidia-smi -q -d ECC.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.before: int | None = None
        """The step of the last check, of which files of other workers may have come since."""
        self.judged: dict[str, int] = {}
        self.equal: dict[str, dict[str, int]] = {}
        """How many steps have given the same twice: of each worker, outputs and gradients."""

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        self.looked = False
        for step in (self.before, seen.step):
            if step is not None:
                yield from self._of_step(step)
        self.before = seen.step
        if not self.judged and self.not_checked is None:
            self.lacks(NOT_ASKED)

    def invoke_at_end(self, step: int) -> bool:
        """Judge what has come since the last check."""
        self.findings = [] if self.before is None else [*self._of_step(self.before)]
        return bool(self.findings)

    def _of_step(self, step: int) -> Iterator[Finding]:
        for worker, given in sorted(self.base_trial.observations.computed_twice(step).items()):
            if self.judged.get(worker, -1) >= step:
                continue
            if isinstance(given.get("not"), str) and not self.judged:
                self.lacks(f"no step was computed twice: {given['not']}")
                continue
            self.judged[worker] = step
            finding = self._of_worker(step, worker, given)
            if finding is not None:
                yield finding

    def _of_worker(self, step: int, worker: str, given: dict[str, Any]) -> Finding | None:
        """Count what is equal, and say what is not: of wrong outputs follow wrong gradients."""
        equal = self.equal.setdefault(worker, {})
        for kind in _KINDS:
            compared = given.get(kind)
            if not isinstance(compared, dict):
                continue
            if "equal" in compared:
                self.looked = True
                equal[kind] = equal.get(kind, 0) + 1
                continue
            if not all(type(compared.get(name)) is int for name in ("replays", "as_before", "results")):
                return None
            if equal.get(kind, 0) < LEAST_EQUAL:
                if not self.looked:
                    self.lacks(f"computed twice, {kind} differ from the first step on")
                return None
            self.looked = True
            return self._differs(step, worker, equal[kind], kind, compared)
        return None

    def _differs(self, step: int, worker: str, equal: int, kind: str, compared: dict[str, Any]) -> Finding:
        name, replays, as_before = str(compared.get("first")), compared["replays"], compared["as_before"]
        what = f"the {kind[:-1]} of {name.removeprefix('gradient/')}"
        was_once = compared["results"] == 1 and not as_before
        if was_once:
            title = f"A computation on {worker} went wrong once"
            said = f"{replays} further computations have given the same value, and it is another one"
        else:
            title = f"The same numbers give other results on {worker}"
            values = compared["results"]
            said = f"{replays} further computations have given {values} values, {as_before} times the first"
        return self.finding(
            f"Computed again, {what} at step {step} is not what the training used",
            since=step,
            tensor=name if kind == "gradients" else f"{name}_output_0",
            worker=worker,
            statistic="computations that gave the bits of the training",
            value=as_before,
            limit=replays,
            title=title,
            why=(
                f"{what[0].upper()}{what[1:]}: {said}",
                f"At {equal} earlier steps, all bits were the same twice",
            ),
            advice=ONCE if was_once else VARYING,
        )


ONCE = ("Resume from the last checkpoint before this step: what was computed in it is wrong.",)
VARYING = (
    "Move the training to another device, from the last checkpoint before this step. If results vary there, "
    "too, an operation is not deterministic: torch.use_deterministic_algorithms(True) names it.",
)
