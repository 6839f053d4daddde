"""Noise that a model has to tell from its inputs, as in a diffusion, and that all rows of a batch share."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.denoising import ERRORS, has_time
from smdebug_default_rules.inputs.repeated_time import is_time

LEAST_STEPS, LEAST_ROWS, LEAST_COLUMNS = 10, 8, 16
LEAST_SHARED = 0.35
"""Of the variance of targets, the share that rows of a batch have in common. Of rows that are drawn by
themselves it is one over their number, and a few tenths where all rows of a batch have one time."""
EQUAL = 0.999
"""Above this share, rows are equal: nothing else than a noise is, and the time need not have a name."""
LEAST_SPREAD, MOST_MEAN = 0.1, 0.3
"""What rows have in common varies from step to step, and around zero, as noise does."""
TITLE = "All rows of a batch have the same noise"
ADVICE = (
    "Draw a noise for each row: torch.randn_like(batch). Look for torch.randn(1, ...) or a noise of the "
    "shape of one row, which is broadcast to all of them.",
)


def empty() -> dict[str, Any]:
    """What is kept of targets of which nothing was seen yet."""
    return {"since": 0, "steps": 0, "rows": 0, "named": True, "sums": [], "squares": [], "within": 0.0}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep) -> None:
    """Add what the rows of this batch have in common, and how far they are apart."""
    term = _noise_of(seen)
    if term is None:
        return
    means: Sequence[float] = term["means"]
    if len(means) != len(kept["sums"]) or term["target_rows"] != kept["rows"]:
        if kept["steps"] and term["target_rows"] < kept["rows"]:
            return  # the last batch of an epoch
        zeros = [0.0] * len(means)
        kept.update(empty(), since=seen.step, rows=term["target_rows"], sums=zeros, squares=zeros)
    kept["steps"] += 1
    kept["named"] = kept["named"] and _has_named_time(seen)
    kept["sums"] = [known + mean for known, mean in zip(kept["sums"], means, strict=True)]
    kept["squares"] = [known + mean * mean for known, mean in zip(kept["squares"], means, strict=True)]
    kept["within"] += sum(term["variances"]) / len(means)


def found(kept: Mapping[str, Any]) -> float | None:
    """Return the share of the variance that rows have in common; None unless they share a noise."""
    steps, columns = kept["steps"], len(kept["sums"])
    if steps < LEAST_STEPS:
        return None
    between = (
        sum(
            squares - total * total / steps
            for total, squares in zip(kept["sums"], kept["squares"], strict=True)
        )
        / (steps - 1)
        / columns
    )
    if between < LEAST_SPREAD or abs(sum(kept["sums"])) / steps / columns > MOST_MEAN:
        return None
    share = float(between / (between + kept["within"] / steps))
    return share if share > (LEAST_SHARED if kept["named"] else EQUAL) else None


def _noise_of(seen: ObservedStep) -> Mapping[str, Any] | None:
    """The only term of the loss of a model that is given noisy rows and the time of each."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    if len(terms) != 1 or terms[0].get("criterion") not in ERRORS:
        return None
    term: Mapping[str, Any] = terms[0]
    rows, columns, shapes = term.get("target_rows", 0), term.get("columns", 0), seen.facts.get("shapes") or []
    distinct = seen.facts.get("distinct_rows")
    is_known = len(term.get("means") or ()) == len(term.get("variances") or ()) == columns
    if rows < LEAST_ROWS or columns < LEAST_COLUMNS or not is_known or not has_time(shapes, rows, columns):
        return None
    return term if isinstance(distinct, int) and 2 * distinct > rows else None


def _has_named_time(seen: ObservedStep) -> bool:
    inputs, names = seen.statistics("inputs"), seen.facts.get("input_names") or ()
    kinds = [each.dtype for each in inputs.tensors] if inputs is not None else []
    return any(is_time(name, kind) for name, kind in zip(names, kinds, strict=False))
