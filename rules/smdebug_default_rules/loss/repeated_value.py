"""What a forecast would cost that repeats the last value of its input: a model has to be better than that."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from typing import Any

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.arrays import rounded
from smdebug_default_rules.loss.constant_prediction import Compared

MOST_SAMPLES, LEAST_SAMPLES = 32, 16
STRONG = 0.8
"""The last value says something of the targets if it costs less than this share of their own spread."""
FAR = 1.25
"""Above this, a model has not come as far yet."""


def empty() -> dict[str, Any]:
    """What is kept of forecasts of which nothing was seen yet."""
    return {"repeated": []}


def add(kept: MutableMapping[str, Any], seen: ObservedStep) -> None:
    """Add a step's loss beside what repeating the last value would cost; nothing if that is not known."""
    loss = seen.facts.get("loss") or {}
    terms = loss.get("terms") or []
    if len(terms) != 1 or "value" not in loss or terms[0].get("repeated") is None:
        return
    (term,) = terms
    constant = term.get("constant", _mean(term.get("variances") or ()))
    value = loss["value"] / (loss.get("factor") or 1.0)
    value = value / (term["target_rows"] * term["columns"]) if term.get("reduction") == "sum" else value
    if term.get("reduction") in ("mean", "sum"):
        sample = [seen.step, *rounded((value, term["repeated"], constant))]
        kept["repeated"] = [*kept["repeated"], sample][-MOST_SAMPLES:]


def compared(kept: Mapping[str, Any]) -> Compared | None:
    """Compare the newest losses; None if they are too few, or if the last value says little."""
    samples = kept["repeated"]
    middle = samples[-1][0] / 2 if samples else 0
    samples = [sample for sample in samples if sample[0] >= middle]
    if len(samples) < LEAST_SAMPLES:
        return None
    loss, repeated, constant = (_mean(values) for values in list(zip(*samples, strict=True))[1:])
    if not 0 < repeated < STRONG * constant or loss > FAR * repeated:
        return None
    gains = [other - own for _, own, other, _ in samples]
    spread = math.sqrt(sum((gain - _mean(gains)) ** 2 for gain in gains) / (len(gains) - 1))
    return Compared(loss, repeated, spread / math.sqrt(len(gains)), len(samples))


def _mean(values: Any) -> float:
    return sum(values) / len(values) if values else math.nan
