"""What is measured: healthy programs, and faults, each with the twin that lacks it.

A program is an ordinary training. It knows nothing of smdebug, and takes a seed. Half of them are held out:
no rule may be tuned on those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    """The first step at which it can be seen, if that step is saved."""
    source: str
    """Where it was met."""
    ranks: int = 1


CAUSES = {
    "lost update": "a parameter with a gradient does not change",
    "gradients not reset": "gradients of earlier steps are added to those of later ones",
    "no gradient": "a part of the model that should learn gets no gradient",
    "vanishing gradient": "gradients shrink from layer to layer",
    "exploding": "values or gradients grow out of all bounds",
    "dead activation": "a layer gives zeros for nearly every input",
    "saturated activation": "a layer gives its extreme values for nearly every input",
    "bad initialisation": "weights are far too large or small, or alike, at the start",
    "learning rate": "the learning rate is far too large or small, jumped, or vanished",
    "not learning": "the loss does not fall",
    "overfitting": "validation gets worse while training gets better",
    "memorising": "training succeeds and validation stays at chance",
    "imbalance": "one class stands for nearly all labels",
    "mode mismatch": "modules are in training mode in evaluation, or the other way round",
    "repeated input": "the same rows come again within a batch, or step after step",
    "unscaled input": "inputs are of a scale that the model is not made for",
    "padding": "nearly all of the input is padding",
    "loss input": "the loss is given what it is not made for",
    "constant output": "the model gives the same for every input",
    "accumulation scale": "the loss of micro-batches is added up, not averaged",
    "corruption": "single values changed that no computation explains",
    "spike": "the loss or an update jumps at one step",
    "scaler": "the loss scale collapses, or updates are skipped",
    "precision": "a layer does not compute in the declared precision",
    "batch shape": "inputs and labels differ in their number",
    "replicas differ": "parameters that should be equal differ between ranks",
    "ranks alike": "inputs or noise that should differ are equal on all ranks",
    "missing rank": "a rank does not take part in a step",
    "leaked label": "one feature gives the label away",
}

PROGRAMS: list[Program] = []
FAULTS: list[Fault] = []


def healthy(
    *, framework: str = "pytorch", held_out: bool, ranks: int = 1
) -> Callable[[Training], Training]:
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
) -> Callable[[FaultyTraining], FaultyTraining]:
    """Register a fault under the name of its function."""
    if cause not in CAUSES:
        raise ValueError(f"{cause!r} is no cause: add it to CAUSES, with its sentence")

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
            )
        )
        return train

    return register


def _name_of(train: Callable[..., object]) -> str:
    return train.__name__.replace("_", " ")
