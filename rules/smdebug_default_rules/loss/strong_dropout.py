"""Dropout that leaves too little to learn from: the training loss stays high, and validation is far lower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.scales import Hint
from smdebug_default_rules.tensors import Modules

STRONG = 0.85
"""The lowest rate that is noted."""
LEAST_LOSSES, LEAST_VALIDATIONS = 150, 4
HIGH = 0.6
"""The training loss is still at this share of what it began with."""
LOWER = 0.8
"""The validation, which drops nothing, is below this share of it."""
FLAT = 0.85
"""Since half of the validations it has not fallen below this share."""


class Dropped(NamedTuple):
    """A module that drops most of its values."""

    module: str
    rate: float


def dropped(facts: Mapping[str, Any]) -> Dropped | None:
    """Return the module that drops most values at a training step, if any drops nearly all."""
    noted = facts.get("strong_dropout")
    return Dropped(str(noted["module"]), float(noted["rate"])) if noted else None


def holds_back(start: float, training: Sequence[float], validation: Sequence[float], losses: int) -> bool:
    """Return whether the training loss stays high, and without dropout the model has a far lower one."""
    if losses < LEAST_LOSSES or len(validation) < LEAST_VALIDATIONS or not start > 0:
        return False
    now, before = training[-1], training[len(training) // 2 - 1]
    return now > HIGH * start and now > FLAT * before and validation[-1] < LOWER * now


def advice(name: str, rate: float) -> str:
    """Return what to change."""
    return (
        f"Lower p of {name}: 0.1 to 0.5 is usual. p is the share to drop: if {rate:g} was meant as the share "
        f"to keep, pass {1 - rate:.3g}."
    )


def hint(seen: ObservedStep) -> Hint | None:
    """Return what to say beside a loss that does not fall."""
    found = dropped(seen.facts)
    if found is None:
        return None
    name = Modules.of(seen).described(found.module)
    return Hint(f"Dropout of p={found.rate:g} in {name}", advice(name, found.rate))
