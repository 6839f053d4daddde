"""Weights of a sampler that are too few, or that favour the classes that are frequent already."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.loss.constant_prediction import YES_OR_NO

MANY_ROWS, FEWER = 4, 100
"""So many times as many rows as weights; if a batch has no more rows than there are weights, the second."""
EXACT = 1e-4
"""How far weights may be from the counts of classes, as a share."""
LEAST_APART = 1.5
"""The most frequent class has so many times as many rows as the rarest, at least."""
LEAST_LABELS, LEAST_STEPS = 300, 10
CLOSE, BY_CHANCE = 0.01, 3.0
"""So near is the share of its labels to the one that the weights give, beside so many standard deviations."""
MORE = 1.1
"""It is drawn so many times as often as it would be without weights, at least."""
TITLE = "The sampler favours the frequent class"
TITLE_OF_FEW = "The sampler has a weight for each class, not for each row"


def too_few(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to say of a sampler with far fewer weights than there are rows."""
    sampler = facts.get("sampler")
    if not sampler:
        return None
    rows, weights, batch = sampler["rows"], sampler["weights"], sampler.get("batch", 0)
    if rows < (MANY_ROWS if weights < batch else FEWER) * weights:
        return None
    return {
        "message": (
            f"The sampler has {weights} weights, and the data {rows:,} rows: it draws the first {weights} "
            "alone, and no other row is ever read"
        ),
        "statistic": "weights of the sampler",
        "value": weights,
        "limit": rows,
        "title": TITLE_OF_FEW,
        "why": (f"{weights} weights for {rows:,} rows, in batches of {batch}",)
        if batch
        else (f"{weights} weights for {rows:,} rows",),
        "advice": (
            "Give WeightedRandomSampler a weight for each row: class_weights[labels], where labels has the "
            "class of every row.",
        ),
    }


def empty() -> dict[str, Any]:
    """What is kept of a sampler before any was seen, as plain data."""
    return {"kinds": [], "counts": {}, "steps": 0, "since": 0}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep, term: Mapping[str, Any]) -> None:
    """Add the labels of a step; those of another sampler are counted anew."""
    kinds = (seen.facts.get("sampler") or {}).get("kinds") or []
    if kinds != kept["kinds"]:
        kept.update(empty(), kinds=kinds, since=seen.step)
    counted = _counted(term) if kinds else None
    if not counted:
        return
    kept["steps"] += 1
    known: dict[str, float] = kept["counts"]
    for number, count in counted.items():
        known[str(number)] = known.get(str(number), 0) + count


def favours_frequent(kept: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to say of weights that are the counts of the classes, if the labels are those so drawn."""
    classes = _classes(kept["kinds"])
    labels = sum(kept["counts"].values())
    if not classes or kept["steps"] < LEAST_STEPS or labels < LEAST_LABELS:
        return None
    (most, weight), (fewest, least) = max(classes), min(classes)
    rows, drawn = sum(count for count, _ in classes), sum(count * weight for count, weight in classes)
    share, expected, without = max(kept["counts"].values()) / labels, most * weight / drawn, most / rows
    near = CLOSE + BY_CHANCE * (expected * (1 - expected) / labels) ** 0.5
    if most < LEAST_APART * fewest or abs(share - expected) > near or share < MORE * without:
        return None
    return {
        "message": (
            f"The sampler's weights grow with the number of rows: {most:,} rows of one class weigh "
            f"{weight / least:.3g} times as much each as the {fewest:,} of another, so that the rare classes "
            "are drawn more rarely still"
        ),
        "since": kept["since"],
        "statistic": "share of the class that is drawn most",
        "value": share,
        "limit": 1 / len(classes),
        "title": TITLE,
        "why": (
            f"{share:.0%} of {labels:,.0f} labels are of the most frequent class, which has {without:.0%} of "
            f"the rows; 1 / count as weight would draw {1 / len(classes):.0%}",
        ),
        "advice": (
            "Weigh each row with 1 / count of its class: WeightedRandomSampler(1 / counts[labels], ...).",
        ),
    }


def _classes(kinds: list[list[float]]) -> list[tuple[int, float]]:
    """The rows and the weight of each class if weights are proportional to counts; else nothing.

    Classes of the same size share a weight, whose rows are a multiple then.
    """
    if len(kinds) < 2 or any(weight <= 0 for weight, _ in kinds):
        return []
    ratios = [count / weight for weight, count in kinds]
    found = []
    for (weight, count), ratio in zip(kinds, ratios, strict=True):
        times = ratio / min(ratios)
        if abs(times - round(times)) > EXACT * times or count % round(times):
            return []
        found += [(int(count) // round(times), weight)] * round(times)
    return found


def _counted(term: Mapping[str, Any]) -> Mapping[int, float]:
    """How many labels of each class a step has; nothing if it has no labels."""
    if term.get("counts"):
        return {number: float(count) for number, count in term["counts"]}
    if term.get("criterion") in YES_OR_NO and term.get("columns") == 1 and term.get("means"):
        rows, share = float(term.get("target_rows") or 0), float(term["means"][0])
        return {0: rows * (1 - share), 1: rows * share} if 0 <= share <= 1 else {}
    return {}
