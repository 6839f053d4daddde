"""A model beside the trained one, such as a target network or a mean of its weights, that never follows it.

It began as a copy of weights that nobody had trained. A reference that stays on purpose was trained before,
or the probabilities that it gives to some tokens are compared, of which nothing is said here: all there is
to learn is what a teacher gives if its probabilities are the targets, and alone in the loss.

A copy of the untrained model that is evaluated several times, where the trained one never is, was to be a
mean of its weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.loss import in_batch
from smdebug_default_rules.loss.constant_prediction import ABSOLUTE, SQUARED
from smdebug_default_rules.tensors import Parameters

LEAST_SEEN = 10
"""It was called between so many saved steps, the last this far from the first:"""
LEAST_OF_VALUES, LIVE_OF_VALUES = 500, 20_000
"""Targets that are values, at the end of a run and before: such networks are copied now and then."""
LEAST_OF_CODES, LIVE_OF_CODES = 200, 1000
"""Targets that are embeddings, or probabilities of all classes: such models follow at each step."""
LEAST_EVALUATIONS, LEAST_BETWEEN = 3, 100
"""A copy was evaluated so many times, the last time so far from the first."""
TITLE_OF_EVALUATED = "The model that is evaluated never changes"
ADVICE_OF_EVALUATED = (
    "Update the copy after each step of the optimizer: ema.update(model), or update_parameters(model) of an "
    "AveragedModel, from the step on at which averaging is to begin.",
    "If that is there, check that it writes into the copy: own = 0.99 * own + 0.01 * new in a loop does not, "
    "own.lerp_(new, 0.01) does; and that the decay is not 1.",
)
TITLE = "A copy of the model never follows it"
ADVICE = (
    "Update it in the loop, under torch.no_grad(): copy.load_state_dict(model.state_dict()) every some "
    "hundred steps, or after each step, for each pair of parameters, ours.lerp_(theirs, 0.01).",
    "If that is there, check that its share is not 0 (a decay of 1), and that it writes into the parameters "
    "of this model: a new dictionary of averages has to be loaded.",
)


class Still(NamedTuple):
    """A copy that has not changed."""

    model: str
    of: str
    """The first parameter that it is a copy of."""
    seen: int
    apart: int

    @property
    def message(self) -> str:
        """What is wrong."""
        return (
            f"{self.model} began as a copy of the trained model, from {self.of} on, and is called beside it; "
            f"in {self.apart} steps its weights have not changed: the targets are those of an untrained model"
        )

    @property
    def why(self) -> str:
        """The numbers that convince."""
        return f"Its weights are as they were at the start at {self.seen} saved steps in a row"


class Evaluated(NamedTuple):
    """A copy of the untrained model that was evaluated in the place of the trained one."""

    model: str
    of: str
    times: int
    apart: int

    @property
    def message(self) -> str:
        """What is wrong."""
        return (
            f"{self.model} began as a copy of the untrained model, from {self.of} on, and was evaluated "
            f"{self.times} times within {self.apart} steps without having changed, and the trained model "
            "never was: what was evaluated is untrained"
        )

    @property
    def why(self) -> str:
        """The numbers that convince."""
        return f"0 of its weights have changed in {self.apart} steps, and {self.times} evaluations were of it"


def empty_of_evaluated() -> dict[str, Any]:
    """Return what a rule keeps of a copy that is evaluated, as plain data."""
    return {"of": "", "first": 0}


def evaluated(known: dict[str, Any], seen: ObservedStep) -> Evaluated | None:
    """Return a copy that was evaluated often enough without having changed."""
    copy = seen.facts.get("evaluated_copy")
    if not copy:
        return None
    if copy["of"] != known["of"]:
        known.update(of=copy["of"], first=seen.step)
    apart = seen.step - known["first"]
    if copy["evaluations"] < LEAST_EVALUATIONS or apart < LEAST_BETWEEN:
        return None
    return Evaluated(copy["model"], copy["of"], copy["evaluations"], apart)


def empty() -> dict[str, Any]:
    """Return what a rule keeps of a copy, as plain data."""
    return {"model": "", "of": "", "seen": 0, "first": 0, "last": 0, "kind": ""}


def extend(known: dict[str, Any], seen: ObservedStep, table: Parameters) -> None:
    """Keep at how many steps in a row there is a copy that has not changed, while the trained model has."""
    copy = seen.facts.get("copied_model")
    if not isinstance(copy, Mapping) or not copy["is_same"]:
        if copy:
            known.update(empty())
        return
    kind = _kind_of_targets(seen.facts.get("loss") or {})
    moves = bool((table.update("abs_mean") > 0).any())
    if not kind or not moves:
        return
    if (copy["model"], copy["of"], kind) != (known["model"], known["of"], known["kind"]):
        known.update(empty(), model=copy["model"], of=copy["of"], kind=kind, first=seen.step)
    known["seen"] += 1
    known["last"] = seen.step


def found(known: Mapping[str, Any], *, at_end: bool) -> Iterator[Still]:
    """Yield the copy if it has been there for long enough."""
    apart = known["last"] - known["first"]
    limits = (
        (LEAST_OF_CODES, LIVE_OF_CODES) if known["kind"] == "codes" else (LEAST_OF_VALUES, LIVE_OF_VALUES)
    )
    if known["seen"] >= LEAST_SEEN and apart >= limits[not at_end]:
        yield Still(known["model"], known["of"], known["seen"], apart)


def _kind_of_targets(loss: Mapping[str, Any]) -> str:
    """What the loss compares with targets that another model may give: "" if that is not known.

    An error beside a part that is not known may be that of values, beside the probabilities of a policy.
    """
    terms = loss.get("terms") or []
    if "embedding" in loss or loss.get("soft_targets") or in_batch.is_in_batch(terms):
        return "codes"
    has_errors = any(term.get("criterion") in (SQUARED, *ABSOLUTE) for term in terms)
    is_known = len(terms) > 1 or (len(terms) == 1 and "value" in loss)
    return "values" if has_errors and is_known else ""
