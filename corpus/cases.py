"""What is measured: healthy programs, and faults, each with the twin that lacks it.

A program is an ordinary training. It knows nothing of smdebug, and takes a seed. Half of them are held out:
no rule may be tuned on those.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from smdebug.diagnosis.causes import CAUSES

Training = Callable[[int], object]
FaultyTraining = Callable[[int, bool], object]
"""Takes a seed, and whether the fault is in. Without it, it is the healthy twin: same seed, same data."""


@dataclass(frozen=True)
class Program:
    """A healthy training, in which nothing may be found."""

    name: str
    framework: str
    held_out: bool
    train: Training
    ranks: int = 1


@dataclass(frozen=True)
class Fault:
    """A training with a fault whose cause and place are known."""

    name: str
    framework: str
    held_out: bool
    train: FaultyTraining
    cause: str
    """What a right diagnosis calls it, one of `CAUSES`."""
    place: str
    """A pattern: what a right diagnosis names has to match it (tensor, layer, input, worker)."""
    visible_from: int
    """The first step of its mode at which it can be seen, if that step is saved."""
    source: str
    """Where it was met."""
    ranks: int = 1
    visible_in: str = "TRAIN"
    """The mode in which it shows."""
    onset: int = 0
    """The step of that mode at which it begins, not later than it is visible."""
    also: tuple[str, ...] = ()
    """Other causes that are right names for it as well."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Every cause that names it rightly."""
        return (self.cause, *self.also)


PLACE: ContextVar[str] = ContextVar("place")
"""Where a program saves that has a hook of its own, as those of JAX do."""

PROGRAMS: list[Program] = []
FAULTS: list[Fault] = []


def layer(*names: str) -> str:
    """A pattern for the layers of these names, and for their tensors."""
    return rf"(^|/|\.|(?<!put)_)({'|'.join(map(re.escape, names))})($|[._ ])"


def tensor(*names: str) -> str:
    """A pattern for tensors whose names end so, and for what is derived from them."""
    return rf"(^|/|\.|_|\b)({'|'.join(map(re.escape, names))})"


def healthy(*, framework: str = "pytorch", held_out: bool, ranks: int = 1) -> Callable[[Training], Training]:
    """Register a healthy program under the name of its function."""

    def register(train: Training) -> Training:
        PROGRAMS.append(Program(_name_of(train), framework, held_out, train, ranks))
        return train

    return register


def fault(
    cause: str,
    place: str,
    *,
    visible_from: int = 0,
    source: str,
    held_out: bool,
    framework: str = "pytorch",
    ranks: int = 1,
    visible_in: str = "TRAIN",
    onset: int | None = None,
    also: tuple[str, ...] = (),
) -> Callable[[FaultyTraining], FaultyTraining]:
    """Register a fault under the name of its function.

    A fault begins with the training unless it is visible only at step 10 or later: then it begins there.
    """
    for name in (cause, *also):
        if name not in CAUSES:
            raise ValueError(f"{name!r} is no cause: add it to CAUSES, with its sentence")

    def register(train: FaultyTraining) -> FaultyTraining:
        FAULTS.append(
            Fault(
                _name_of(train),
                framework,
                held_out,
                train,
                cause,
                place,
                visible_from,
                source,
                ranks,
                visible_in,
                (visible_from if visible_from >= 10 else 0) if onset is None else onset,
                also,
            )
        )
        return train

    return register


def _name_of(train: Callable[..., object]) -> str:
    return train.__name__.replace("_", " ")
