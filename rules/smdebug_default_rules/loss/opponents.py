"""A generator and a discriminator that are told the same of what is generated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

LEAST_STEPS = 3
"""Labels may be turned on purpose now and then."""
APART = 0.25
"""Labels of real and generated rows are at least so far apart, smoothed or not."""


class Labels(NamedTuple):
    """The labels that the judge and the maker are given, each the same for all rows of a pass."""

    judge: str
    maker: str
    of_real: float
    of_made: float
    of_maker: float | None
    """The label in the loss of the maker; None if no pass of it is known."""


class Problem(NamedTuple):
    """What is wrong, in words."""

    key: str
    place: str
    title: str
    message: str
    why: str
    advice: str


def labels_in(facts: Mapping[str, Any]) -> Labels | None:
    """Return the labels of a judge, whose optimizer sees real and generated rows, and of a maker."""
    passes: Sequence[Sequence[Any]] = facts.get("opponents") or ()
    judges = {(number, model) for number, model, judged, _ in passes if not judged}
    if len(judges) != 1:
        return None
    ((number, judge),) = judges
    makers = {made for _, model, made, _ in passes if model == judge and made}
    of_real = _only(label for at, model, made, label in passes if (at, model, made) == (number, judge, ""))
    of_made = _only(label for at, model, made, label in passes if (at, model) == (number, judge) and made)
    others = [label for at, model, made, label in passes if at != number and model == judge and made]
    if len(makers) != 1 or of_real is None or of_made is None:
        return None
    return Labels(judge, makers.pop(), of_real, of_made, _only(others))


def problem_of(labels: Labels) -> Problem | None:
    """Return what is wrong with the labels; None if they are as they have to be."""
    judge, maker = labels.judge, labels.maker
    real, made, wanted = labels.of_real, labels.of_made, labels.of_maker
    if abs(real - made) < APART:
        return Problem(
            "same labels",
            f"{judge}_output_0",
            "Real and generated rows have the same label",
            f"The loss of {judge} gets the label {made:g} for what {maker} generates, and {real:g} for real "
            "rows: it learns to say the same of both, and teaches nothing",
            f"The labels are {real:g} and {made:g} at {LEAST_STEPS} saved steps in a row",
            "Give the discriminator another label for generated rows: 1 for real and 0 for generated ones. "
            "Look for a tensor of labels that is filled once and used for both.",
        )
    if wanted is not None and abs(wanted - made) < APART:
        return Problem(
            "label of the generator",
            f"{maker}_output_0",
            "The generator is trained to be recognised",
            f"The loss of {maker} gets the label {wanted:g}, which {judge} gets for generated rows: {maker} "
            f"learns to make what {judge} recognises",
            f"The label is {real:g} for real and {made:g} for generated rows, and {wanted:g} in the loss of "
            f"the generator, at {LEAST_STEPS} saved steps in a row",
            f"Give the loss of the generator the label of real rows, {real:g}: fill the labels anew before "
            "its pass.",
        )
    return None


def _only(values: Iterator[float] | Sequence[float]) -> float | None:
    """The label that all have, as nearly as smoothed labels vary; None if they differ or there are none."""
    known = [*values]
    return sum(known) / len(known) if known and max(known) - min(known) < APART else None
