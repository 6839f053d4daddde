"""A dropout or a ReLU after the last layer of a classifier: many of its scores are set to zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.loss import in_batch
from smdebug_default_rules.tensors import Modules

LEAST_ROWS, LEAST_ZEROS = 8, 0.03
"""Fewer zeros than this share of the outputs may be there by themselves."""
RECTIFIED = "relu"
"""What a criterion was given, if that is the result of a ReLU."""
_CRITERIA = ("cross entropy", "binary cross entropy with logits")


class Said(NamedTuple):
    """What is wrong, its title, what to try, and the numbers that convince."""

    message: str
    title: str
    advice: str
    why: tuple[str, ...]


def found(seen: ObservedStep, loss: Mapping[str, Any], place: str) -> Iterator[tuple[str, Said]]:
    """Yield what a classifier ends with instead of its last linear layer, and what to say of it."""
    if said := _dropout(seen, loss, place):
        yield "dropout before the loss", said
    if said := _rectifier(seen, loss, place):
        yield "ReLU before the loss", said


def _rectifier(seen: ObservedStep, loss: Mapping[str, Any], place: str) -> Said | None:
    """Return what to say of a classifier without a score below zero."""
    terms: Sequence[Mapping[str, Any]] = loss.get("terms") or []
    term = next((each for each in terms if each.get("given") == RECTIFIED), None)
    outputs = seen.statistics("outputs")
    if term is None or term.get("criterion") not in _CRITERIA or in_batch.is_in_batch(terms):
        return None
    row = outputs.row(place) if outputs is not None and place in outputs else {}
    is_binary = term["criterion"] != _CRITERIA[0]
    return Said(
        f"{term['criterion']} takes scores above and below 0, but got those of a ReLU, which sets each score "
        "below 0 to 0: such a score has no gradient any more",
        "ReLU before the loss",
        "Remove the ReLU before the loss, often the end of the model's last block: give the loss what the "
        "last linear layer returns.",
        (
            *([f"{int(row['zeros'])} of {int(row['count'])} scores are 0"] if row.get("min") == 0 else []),
            *(["No label can be given a probability below 0.5"] if is_binary else []),
        ),
    )


def _dropout(seen: ObservedStep, loss: Mapping[str, Any], place: str) -> Said | None:
    """Return what to say of a classifier whose scores are what a dropout has returned."""
    terms: Sequence[Mapping[str, Any]] = loss.get("terms") or []
    outputs, modules = seen.statistics("outputs"), Modules.of(seen)
    if len(terms) != 1 or outputs is None or place not in outputs or not modules.classes:
        return None
    term, last = terms[0], list(modules.classes)[-1]
    output = f"{last}_output_0"
    if "Dropout" not in modules.classes[last] or output not in outputs or in_batch.is_in_batch(terms):
        return None
    shape, row = outputs.tensors[outputs.names.index(place)].shape, outputs.row(place)
    rows = int(term.get("rows") or 0)
    of_scores = term.get("criterion") in _CRITERIA and shape[:1] == (rows,) and len(shape) <= 2
    if not of_scores or rows < LEAST_ROWS or outputs.row(output) != row or term.get("classes") != shape[-1]:
        return None
    share = row["zeros"] / row["count"]
    if share < LEAST_ZEROS:
        return None
    return Said(
        f"the model ends with {modules.described(last)}, which sets {share:.0%} of the scores to 0: the loss "
        "is told that the model does not know these classes, right ones among them",
        "Dropout after the last layer",
        "Put the dropout before the last linear layer, or leave it out: scores have to reach the loss whole.",
        (f"{int(row['zeros'])} of {int(row['count'])} scores are 0",),
    )
