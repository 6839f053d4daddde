"""A class that a cross entropy leaves out although it is one of those to learn, as by ignore_index=0.

Rows without a label are left out on purpose: they are as many as there happen to be. A class is as common as
the others, where these are about as common as each other.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep

LEAST_CLASSES, LEAST_STEPS = 4, 10
LEAST_LABELS = 50
"""So many labels of each class have to be seen."""
EVEN, ALIKE = 2.0, 1.2
"""Other classes are at most this many times as common as each other, and how far it may lie beyond them."""
TITLE = "A class is left out of the loss"
ADVICE = (
    "Leave ignore_index out, or give it a number that no class has, as -100 is by default. Where rows "
    "without a label are to be left out, give these rows that number, too."
)


def empty() -> dict[str, Any]:
    """What is kept of labels before any was seen, as plain data."""
    return {"ignored": -1, "labels": 0, "counts": {}, "since": 0, "steps": 0}


def found(kept: MutableMapping[str, Any], seen: ObservedStep) -> Mapping[str, Any] | None:
    """Add the labels of a step; return what is wrong once enough were seen."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    if not terms:
        return None
    term = terms[0]
    ignored, classes = term.get("ignored_class"), int(term.get("classes") or 0)
    counts = dict(term.get("counts") or ())
    if ignored is None or len(terms) > 1 or not _is_of_rows(term, seen) or classes < LEAST_CLASSES:
        kept.update(empty())
        return None
    if kept["ignored"] != ignored:
        kept.update(empty(), ignored=ignored, since=seen.step)
    kept["labels"] += int(term["rows"]) - sum(counts.values())
    kept["steps"] += 1
    known: dict[str, int] = kept["counts"]
    for number, count in counts.items():
        known[str(number)] = known.get(str(number), 0) + count
    if len(known) != classes - 1 or ignored >= classes or kept["steps"] < LEAST_STEPS:
        return None
    least, most, labels = min(known.values()), max(known.values()), kept["labels"]
    is_alike = least / ALIKE <= labels <= most * ALIKE
    if least < LEAST_LABELS or most > EVEN * least or not is_alike:
        return None
    total = labels + sum(known.values())
    return {
        "message": (
            f"Class {ignored} is left out of the loss by ignore_index={ignored}, and is as common as the "
            f"other {classes - 1} classes: the model has an output for it, and never learns when to choose it"
        ),
        "since": kept["since"],
        "tensor": "loss",
        "statistic": "labels that are left out",
        "value": labels,
        "title": TITLE,
        "why": (
            f"{labels:,} of {total:,} labels so far are left out; each other class has {least:,} to {most:,}",
        ),
        "advice": (ADVICE,),
    }


def _is_of_rows(term: Mapping[str, Any], seen: ObservedStep) -> bool:
    """Whether each row of the batch has one label, unlike one of tokens or pixels."""
    shapes = seen.facts.get("shapes") or []
    rows = shapes[0][0] if shapes and shapes[0] else 0
    return term.get("of_a_layer") is True and 0 < rows == int(term.get("rows") or 0)
