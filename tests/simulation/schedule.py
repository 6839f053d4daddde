"""What may happen in one simulation, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass
class Schedule:
    """How many faults and clock jumps a simulation has, and what is lost in it."""

    seed: int
    faults: int = 0
    jumps: int = 0
    loses_notifications: bool = False
    sweeps: bool = False
    is_standard: bool = False  # the name of an execution cannot be used again
    is_orderly: bool = False

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        chance = random.Random(seed)
        sweeps = chance.random() < 0.4
        return cls(
            seed,
            faults=chance.choice((0, 1, 2, 4, 8)),
            jumps=chance.choice((0, 1, 3, 8)),
            sweeps=sweeps,
            loses_notifications=sweeps and chance.random() < 0.7,
            is_standard=chance.random() < 0.3,
        )

    @classmethod
    def orderly(cls) -> Schedule:
        """One thing after the other, without faults."""
        return cls(0, is_orderly=True)
