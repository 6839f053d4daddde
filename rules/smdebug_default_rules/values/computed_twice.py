"""Steps that give other bits when they are computed again, and bits that change in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LEAST_EQUAL = 2
"""How many steps must have given the same bits twice before: some computations never do."""
_STORED = {
    "stored_weights": ("Weights", "since the update before step {step}"),
    "stored_gradients": ("Gradients", "between the backward pass and the update of step {step}"),
    "stored_state": ("Optimizer state", "since the update before step {step}"),
}
"""What is compared with a copy: what a title calls it, and since when the copy was there."""
_COMPUTED = ("update", "outputs", "gradients")
NOT_ASKED = "no step was computed twice: smdebug.start(..., compute_twice=1000)"


class ComputedTwice(DefaultRule):
    """Fires when a step gives other bits as it is computed again, or if weights, gradients or optimizer state
    change in memory and nothing has written to them, and neither was so at earlier steps.

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
        """How many steps have given the same twice: of each worker, outputs, gradients and what is stored."""
        self.written: dict[str, list[str]] = {}
        """What of each worker the training itself seems to write behind PyTorch's back."""

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
            self.judged[worker] = step
            finding = self._of_worker(step, worker, given)
            if finding is not None:
                self.looked = True
                yield finding
            elif isinstance(given.get("not"), str) and "outputs" not in self.equal[worker]:
                self.lacks(f"no step was computed twice: {given['not']}")

    def _of_worker(self, step: int, worker: str, given: dict[str, Any]) -> Finding | None:
        """Count what is equal, and return the first of what is not: the rest may follow from it."""
        equal = self.equal.setdefault(worker, {})
        found = None
        for kind in (*_STORED, *_COMPUTED):
            compared = given.get(kind)
            if not isinstance(compared, dict):
                continue
            if "equal" in compared:
                equal[kind] = equal.get(kind, 0) + 1
                self.looked = True
            elif kind in _STORED:
                change = self._changed(step, worker, kind, compared)
                found = found or change
            elif all(type(compared.get(name)) is int for name in ("replays", "as_before", "results")):
                if equal.get(kind, 0) >= LEAST_EQUAL:
                    found = found or self._differs(step, worker, equal[kind], kind, compared)
                elif kind == "outputs" and found is None:
                    self.lacks("computed twice, outputs differ from the first step on")
                if kind == "outputs":
                    break
        return found

    def _changed(self, step: int, worker: str, kind: str, compared: dict[str, Any]) -> Finding | None:
        """Say what has changed in memory, unless the training writes there behind PyTorch's back."""
        written = self.written.setdefault(worker, [])
        equal = self.equal[worker].get(kind, 0)
        said = _said_of(compared)
        if kind in written:
            return None
        if said is None or equal < LEAST_EQUAL:
            written.append(kind)
            return None
        name = str(compared.get("first"))
        what, since = _STORED[kind]
        parameter = name.rpartition(" of ")[2]
        return self.finding(
            f"{what} changed in memory {since.format(step=step)}, and nothing has written to {name}",
            since=step,
            tensor=f"gradient/{parameter}" if kind == "stored_gradients" else parameter,
            worker=worker,
            statistic="values that changed in memory",
            value=compared["values"],
            limit=0,
            title=f"{what} on {worker} changed in memory",
            why=(
                f"{name}: {said}",
                f"Its address and version counter stayed, so PyTorch has not written to it. At {equal} "
                "earlier steps, no bit had changed",
            ),
            advice=IN_MEMORY,
        )

    def _differs(self, step: int, worker: str, equal: int, kind: str, compared: dict[str, Any]) -> Finding:
        name, replays, as_before = str(compared.get("first")), compared["replays"], compared["as_before"]
        tensors = {"outputs": f"{name}_output_0", "gradients": name, "update": name.rpartition(" of ")[2]}
        what = f"the {kind.removesuffix('s')} of {name.removeprefix('gradient/')}"
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
            tensor=tensors[kind],
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


def _said_of(compared: dict[str, Any]) -> str | None:
    """How values have changed, if no program changes them so."""
    form, size, values = compared.get("form"), compared.get("size"), compared.get("values")
    if type(size) is not int or type(values) is not int:
        return None
    if form == "bit":
        before, after = (_number(compared.get(name)) for name in ("before", "after"))
        return f"one bit of {size:,} values flipped, and {before} became {after}"
    if form == "run":
        return f"{values:,} of {size:,} values changed, side by side from within one row to another"
    return None


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else "a number that is not finite"


ONCE = ("Resume from the last checkpoint before this step: what was computed in it is wrong.",)
VARYING = (
    "Move the training to another device, from the last checkpoint before this step. If results vary there, "
    "too, an operation is not deterministic: torch.use_deterministic_algorithms(True) names it.",
)
IN_MEMORY = (
    "Resume from the last checkpoint before this step, on another machine if this one does it again. Rule "
    "out code that writes there through NumPy or a pointer, which PyTorch does not see, either.",
)
