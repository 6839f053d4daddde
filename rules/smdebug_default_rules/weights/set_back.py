"""Parameters that each step of the optimizer changes, and that have their old values again at the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np

from smdebug_default_rules.arrays import where
from smdebug_default_rules.tensors import Parameters

LEAST_STEPS = 6
"""A parameter is set back if this many saved steps in a row began with the same values."""
LEAST_APART = 30
"""The first and the last of them are at least this many steps apart: inner loops go back, too."""
LEAST_VALUES = 8
LEAST_CHANGE = 1e-4
"""What a step changes, as a share of the values, at least."""
MOST = 200
"""How many parameters are followed."""


def followed(
    known: Mapping[str, list[int]], table: Parameters, owned: Any, step: int
) -> dict[str, list[int]]:
    """Return a checksum of each parameter at a step, since when it has had it, and how often."""
    ratio = table.update("rms") / table.column("rms")
    changes = owned & table.is_weight & (table.sizes >= LEAST_VALUES) & (ratio > LEAST_CHANGE)
    # A weight of two values alone, as clipping leaves, could be equal by chance.
    varies = table.column("abs_mean") < table.column("rms") * (1 - 1e-6)
    kept = {}
    places = where(changes & varies)[:MOST]
    for place, row in zip(places, np.ascontiguousarray(table.values[places]), strict=True):
        name, now = table.names[place], crc32(row)
        before = known.get(name, (None, step, 0))
        kept[name] = [now, before[1], before[2] + 1] if before[0] == now else [now, step, 1]
    return kept


def set_back(kept: Mapping[str, list[int]], step: int) -> dict[str, list[int]]:
    """Return those that have gone back for long enough: since when, and at how many saved steps."""
    return {
        name: [since, count]
        for name, (_, since, count) in kept.items()
        if count >= LEAST_STEPS and step - since >= LEAST_APART
    }
