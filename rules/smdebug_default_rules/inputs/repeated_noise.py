"""Noise that a model has to tell from its inputs, as in a diffusion, and that is the same at each step."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.denoising import ERRORS, LEAST_COLUMNS, has_time

LEAST_STEPS, LEAST_APART = 5, 10
LEAST_ROWS, MOST_ROWS = 8, 512
"""Batches mostly have a power of two of rows; so many other targets are more often a small data set."""
CLOSE = 1e-4
"""Targets that are computed from a difference are rounded a little otherwise at each step."""
ENDS, ENDS_OF_FEW = (2.5, 6.5), (1.8, 6.5)
"""Between these are the largest values of many that are drawn from the standard normal distribution."""
MANY = 1000
MEAN, VARIANCES = 0.2, (0.7, 1.3)
TITLE = "The noise is the same at every step"
ADVICE = (
    "Draw the noise anew for each batch, inside the loop: torch.randn_like(batch). Look for a noise that is "
    "made once before the loop, and for torch.manual_seed or a generator with a fixed seed inside it."
)


def empty() -> dict[str, Any]:
    """What is kept of noise of which nothing was seen yet."""
    return {"targets": [], "inputs": [], "since": 0, "steps": 0}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep) -> None:
    """Add a step: one whose targets are others, or whose inputs are the same, begins anew."""
    term = _noise_of(seen)
    if term is None:
        kept.update(empty())
        return
    targets = [term["lowest"], term["highest"], *term.get("means", ())]
    inputs = sorted(map(list, seen.digests("inputs").values()))
    before = kept["targets"]
    is_equal = len(before) == len(targets) and all(
        abs(number - known) <= CLOSE for known, number in zip(before, targets, strict=True)
    )
    if is_equal and inputs != kept["inputs"]:
        kept["steps"] += 1
    else:
        kept.update(targets=targets, since=seen.step, steps=1)
    kept["inputs"] = inputs


def found(kept: Mapping[str, Any], seen: ObservedStep) -> bool:
    """Whether the noise was the same at enough saved steps."""
    return bool(kept["steps"] >= LEAST_STEPS and seen.step - kept["since"] >= LEAST_APART)


def _noise_of(seen: ObservedStep) -> Mapping[str, Any] | None:
    """The term of the loss whose targets look like noise of the form of an input; None if there is none."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    shapes: list[list[int]] = seen.facts.get("shapes") or []
    for term in terms:
        rows, columns = term.get("target_rows", 0), term.get("columns", 0)
        if term.get("criterion") not in ERRORS or columns < LEAST_COLUMNS:
            continue
        is_batch = LEAST_ROWS <= rows <= MOST_ROWS and rows & (rows - 1) == 0
        if is_batch and has_time(shapes, rows, columns) and _is_normal(term):
            known: Mapping[str, Any] = term
            return known
    return None


def _is_normal(term: Mapping[str, Any]) -> bool:
    if "lowest" not in term or "highest" not in term:
        return False
    means, variances = term.get("means"), term.get("variances")
    is_few = means and variances and term["target_rows"] * term["columns"] < MANY
    least, most = ENDS_OF_FEW if is_few else ENDS
    if not (least < -term["lowest"] < most and least < term["highest"] < most):
        return False
    if not means or not variances:
        return True
    low, high = VARIANCES
    count = len(means)
    return bool(abs(sum(means) / count) < MEAN and low < sum(variances) / count < high)
