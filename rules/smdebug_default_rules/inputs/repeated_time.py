"""Times of a diffusion or a flow: drawn anew for each batch, or the same throughout."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.denoising import ERRORS, LEAST_COLUMNS

LEAST_STEPS, LEAST_APART = 10, 50
LEAST_ROWS = 8
LEAST_MEAN, LEAST_OF_A_COLUMN = 0.9, 0.3
"""Noise of the standard normal distribution is in the targets if their variances are not below these."""
_TIME = re.compile(
    r"^(t|ts|tau|times?|timesteps?|time_?steps?|sigmas?|noise_?(levels?|steps?))$", re.IGNORECASE
)
"""What a model calls its time: other inputs may be constant on purpose, such as the length of a step."""
_NUMBERED = re.compile(r"^(diffusion|noise|time)?_?step_?(idx|index|id|no|number)?$", re.IGNORECASE)
"""What it calls the whole number of a time: another `step` may be a length, and `steps` are a count."""
TITLE = "The time is the same at every step"
ADVICE = (
    "Draw the time anew for each row of each batch, inside the loop, such as t = torch.rand(len(batch)). "
    "Look for a t that is made once, an argument with a default, or randint(0, 1), which is always 0.",
    "If one level of noise is all that the model is for, leave the time out of its inputs.",
)


class Time(NamedTuple):
    """An input that has the same value in all rows of all steps."""

    name: str
    value: float
    steps: int
    since: int


def empty() -> dict[str, Any]:
    """What is kept of times of which nothing was seen yet."""
    return {"name": "", "value": None, "steps": 0, "since": 0, "inputs": [], "changed": False}


def extend(kept: MutableMapping[str, Any], seen: ObservedStep) -> None:
    """Add a step: one with another time begins anew."""
    time = _time_of(seen)
    if time is None:
        kept.update(empty())
        return
    name, value = time
    if (name, value) != (kept["name"], kept["value"]):
        kept.update(empty(), name=name, value=value, since=seen.step)
    inputs = sorted(map(list, seen.digests("inputs").values()))
    kept["changed"] = kept["changed"] or bool(kept["inputs"] and inputs != kept["inputs"])
    kept["inputs"] = inputs
    kept["steps"] += 1


def found(kept: Mapping[str, Any], seen: ObservedStep) -> Time | None:
    """Return the time if it was the same at enough saved steps, while the other inputs were not."""
    is_long = kept["steps"] >= LEAST_STEPS and seen.step - kept["since"] >= LEAST_APART
    if not is_long or not kept["changed"]:
        return None
    return Time(kept["name"], kept["value"], kept["steps"], kept["since"])


def _time_of(seen: ObservedStep) -> tuple[str, float] | None:
    """The input that is called a time, if it is equal in all rows, of a model that is given noisy rows."""
    terms = (seen.facts.get("loss") or {}).get("terms") or []
    shapes: list[list[int]] = seen.facts.get("shapes") or []
    inputs = seen.statistics("inputs")
    if len(terms) != 1 or inputs is None or len(shapes) != 2 or len(inputs) < 2 or not _has_noise(terms[0]):
        return None
    rows, columns = terms[0]["target_rows"], terms[0]["columns"]
    lengths = [math.prod(shape[1:]) if shape and shape[0] == rows else 0 for shape in shapes]
    if rows < LEAST_ROWS or sorted(lengths) != [1, columns]:
        return None
    place = lengths.index(1)
    called = seen.facts.get("input_names") or ()
    if len(called) <= place or not is_time(called[place], inputs.tensors[place].dtype):
        return None
    low, high = (float(inputs.column(end)[place]) for end in ("min", "max"))
    is_single = low == high and inputs.column("count")[place] == rows
    return (inputs.names[place], low) if is_single else None


def is_time(name: str, dtype: str) -> bool:
    """Whether an input is called what models call a time."""
    return bool(_TIME.match(name) or ("int" in dtype and _NUMBERED.match(name)))


def _has_noise(term: Mapping[str, Any]) -> bool:
    """Whether the targets vary as much as noise does, in each column: those of a diffusion or a flow do."""
    variances = term.get("variances") or ()
    if term.get("criterion") not in ERRORS or term.get("columns", 0) < LEAST_COLUMNS or not variances:
        return False
    return bool(sum(variances) / len(variances) > LEAST_MEAN and min(variances) > LEAST_OF_A_COLUMN)
