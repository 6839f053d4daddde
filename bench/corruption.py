"""How many corruptions of a training's numbers the rules find, and how often they find one where none is.

    make bench-corruption                       # small trainings on the CPU, with fixed seeds: 2 to 3 minutes

A fault changes numbers in memory, and PyTorch does not notice: `_version` stays. One is counted if it changes
the loss of some step by more than a thousandth, against the same training without it; until then both have
the same bits. Every tenth step is saved and computed twice. Each fault is tried at such a step, and at any.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

import smdebug
from smdebug.logger import get_logger
from smdebug.rules.rule_sets import DEFAULT
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.runs.opening import open_run

STEPS, EVERY = 101, 10
"""Steps of a training, and how often one is computed twice."""
FIRST, LAST = 40, 70
"""Faults are in these steps: rules know the training by then, and see what becomes of it."""
LEAST_VALUES = 256
"""Smaller tensors are left alone."""
BLOCK = 1 / 8
"""The share of a tensor that a block has."""
COUNTS = 0.001
SPIKE, DECLINE, AT_ONCE, AT_THE_END = 0.5, 0.02, 5, 20
"""A loss larger by half within five steps is a spike; one larger by 2% over the last 20 steps, a decline."""
KINDS = ("flipped exponent bit", "scaled block", "block of wrong values")
MOMENTS = (
    "weights, between steps",
    "weights, between the passes",
    "activations, in the forward",
    "activations, between the passes",
    "gradients, in the backward pass",
    "gradients, before the update",
    "optimizer state, before the update",
)
NAMED = ("ComputedTwice", "ElementCorruption")
"""The rules that name corruption as the cause."""
SCHEDULES = ("fault at a step computed twice", "fault at any, one in 10 computed twice")
COURSES = ("spike, recovery", "spike, decline", "silent decline", "drift")
TUNING, ASIDE = 0, 1000
"""The first seed that limits may be chosen with, and the first of those that say what holds."""


class Block(nn.Module):
    """Attention to earlier tokens, and a layer of its own for each token."""

    def __init__(self, width: int):
        super().__init__()
        self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layer = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        query, key, value = self.mixed(self.norm(tokens)).chunk(3, -1)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        tokens = tokens + self.out(seen)
        return tokens + self.layer(self.after(tokens))


def mlp() -> tuple[nn.Module, torch.optim.Optimizer, Callable[[], Any]]:
    """A classifier of noisy labels, with momentum."""
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    truth = torch.randn(16, 4)

    def batch() -> Any:
        rows = torch.randn(64, 16)
        return rows, (rows @ truth + 2 * torch.randn(64, 4)).argmax(1)

    return model, torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9), batch


def transformer() -> tuple[nn.Module, torch.optim.Optimizer, Callable[[], Any]]:
    """A language model of a chain of 16 symbols, with Adam."""
    model = nn.Sequential(nn.Embedding(16, 32), Block(32), nn.LayerNorm(32), nn.Linear(32, 16))
    chances = torch.softmax(2 * torch.randn(16, 16), 1)

    def batch() -> Any:
        rows = [torch.randint(16, (12,))]
        for _ in range(12):
            rows.append(torch.multinomial(chances[rows[-1]], 1)[:, 0])
        tokens = torch.stack(rows, 1)
        return tokens[:, :-1], tokens[:, 1:].flatten()

    return model, torch.optim.Adam(model.parameters(), lr=3e-3), batch


MODELS = {"MLP": mlp, "transformer": transformer}


@dataclass
class Fault:
    """Numbers that are changed once, at one moment of one step."""

    moment: str
    kind: str
    step: int
    random: np.random.Generator
    now: int = -1
    is_done: bool = False
    kept: list[torch.Tensor] = field(default_factory=list)

    def attach(self, model: nn.Module) -> None:
        """Choose the layer that gives wrong outputs, and the parameter that gets a wrong gradient."""
        kinds = (nn.Linear, nn.ReLU, nn.GELU, nn.LayerNorm)
        layers = [each for each in model.modules() if isinstance(each, kinds)]
        self._any_of(layers).register_forward_hook(self._after_layer)
        self._any_of(large(model.parameters())).register_hook(
            lambda gradient: self.offer("gradients, in the backward pass", [gradient])
        )

    def offer(self, moment: str, tensors: Sequence[torch.Tensor]) -> None:
        """Damage one of these tensors, if this is the moment."""
        if moment != self.moment or self.now != self.step or self.is_done:
            return
        self.is_done = True
        tensor = self._any_of(tensors).detach()
        before = tensor._version
        self._damage(tensor.numpy())
        assert tensor._version == before, "a fault that PyTorch notices is none of these"

    def _after_layer(self, module: nn.Module, given: Any, output: torch.Tensor) -> None:
        self.offer("activations, in the forward", [output])
        if self.now == self.step and not self.kept:
            self.kept.append(output)

    def _damage(self, values: NDArray[Any]) -> None:
        size = round(values.size * BLOCK)
        first = int(self.random.integers(values.size - size + 1))
        if self.kind == KINDS[0]:
            bit = np.uint32(1 << self.random.integers(23, 31))
            values.flat[first] = (np.float32(values.flat[first]).view(np.uint32) ^ bit).view(np.float32)
            return
        block = slice(first, first + size)
        if self.kind == KINDS[1]:
            values.flat[block] = values.flat[block] * np.float32(self.random.choice([0.0, -1.0, 4.0, 32.0]))
            return
        wrong = self.random.normal(0, np.abs(values).max(), size)
        values.flat[block] = np.abs(wrong) if values.min() >= 0 else wrong

    def _any_of(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]


def large(tensors: Any) -> list[torch.Tensor]:
    """Those of many values."""
    return [each for each in tensors if isinstance(each, torch.Tensor) and each.numel() >= LEAST_VALUES]


def train(name: str, seed: int, folder: str, fault: Fault | None = None, steps: int = STEPS) -> list[float]:
    """Train that model, and return its losses."""
    torch.manual_seed(seed)
    model, optimizer, batch = MODELS[name]()
    fault = fault or Fault("", "", -1, np.random.default_rng(0))
    fault.attach(model)
    losses = []
    with smdebug.start(folder, compute_twice=EVERY, system_metrics=False):
        for fault.now in range(steps):
            rows, targets = batch()
            fault.offer("weights, between steps", large(model.parameters()))
            loss = functional.cross_entropy(model(rows).flatten(0, -2), targets)
            fault.offer("weights, between the passes", large(model.parameters()))
            fault.offer("activations, between the passes", fault.kept)
            optimizer.zero_grad()
            loss.backward()
            fault.offer("gradients, before the update", large(each.grad for each in model.parameters()))
            states = [value for state in optimizer.state.values() for value in state.values()]
            fault.offer("optimizer state, before the update", large(states))
            optimizer.step()
            losses.append(loss.item())
    assert fault.is_done or not fault.moment, "the moment has come"
    return losses


def alarms(folder: str) -> dict[str, int]:
    """The default rules that find something in this run, and when first."""
    results = diagnose(open_run(folder), [DEFAULT], jobs=1).results
    return {result.rule: min(at.step for at in result.found) for result in results if result.found}


def course_of(losses: Sequence[float], twin: Sequence[float], step: int) -> str | None:
    """What the loss does from that step on, beside that of the same training; None if nothing that counts."""
    ours, others = np.array(losses), np.array(twin)
    assert (ours[:step] == others[:step]).all(), "the same training until the fault"
    with np.errstate(invalid="ignore", over="ignore"):
        more = np.nan_to_num(ours[step:] / others[step:] - 1, nan=math.inf)
        at_the_end = np.nan_to_num(ours[-AT_THE_END:], nan=math.inf).mean() / others[-AT_THE_END:].mean() - 1
    if np.abs(more).max() <= COUNTS:
        return None
    if more[:AT_ONCE].max() > SPIKE:
        return COURSES[1] if at_the_end > DECLINE else COURSES[0]
    return COURSES[2] if at_the_end > DECLINE else COURSES[3]


class Tried(NamedTuple):
    """A training with a fault."""

    moment: str
    kind: str
    schedule: str
    course: str | None
    rules: tuple[str, ...]
    """Those that find something from the fault on, and nothing without it."""

    @property
    def is_named(self) -> bool:
        return not {*NAMED}.isdisjoint(self.rules)

    @property
    def groups(self) -> tuple[str, str]:
        return self.moment.partition(",")[0], self.kind


def try_all(first: int, seeds: int, say: Callable[[], None]) -> tuple[list[Tried], list[dict[str, int]]]:
    """Try all faults with these seeds; return what became of them, and the alarms of trainings without."""
    results, healthy = [], []
    for seed, name in itertools.product(range(first, first + seeds), MODELS):
        with tempfile.TemporaryDirectory() as folder:
            twin = train(name, seed, f"{folder}/run")
            healthy.append(alarms(f"{folder}/run"))
        say()
        for number, (when, moment, kind) in enumerate(itertools.product(SCHEDULES, MOMENTS, KINDS)):
            random = np.random.default_rng([seed, [*MODELS].index(name), number])
            step = int(random.integers(FIRST, LAST))
            if when == SCHEDULES[0]:
                step -= step % EVERY
            with tempfile.TemporaryDirectory() as folder:
                fault = Fault(moment, kind, step, random)
                course = course_of(train(name, seed, f"{folder}/run", fault), twin, step)
                found = {} if course is None else alarms(f"{folder}/run")
            rules = (rule for rule, at in found.items() if at >= step and rule not in healthy[-1])
            results.append(Tried(moment, kind, when, course, tuple(rules)))
            say()
    return results, healthy


def report(what: str, first: int, seeds: int) -> None:
    """Try all faults with these seeds, and print what became of them."""
    count, every = itertools.count(1), len(MODELS) * (1 + len(SCHEDULES) * len(MOMENTS) * len(KINDS))

    def say() -> None:
        print(f"\r{what}: {next(count)} of {seeds * every} trainings", end="", file=sys.stderr, flush=True)

    results, healthy = try_all(first, seeds, say)
    print(f"\n\n{what}: alarms in {sum(map(bool, healthy))} of {len(healthy)} trainings without a fault")
    print(*(f"  {rule} at step {at}\n" for found in healthy for rule, at in found.items()), sep="", end="")
    for when in SCHEDULES:
        print_row(when, ("tried", "counted", *NAMED, "other rules only"))
        for moment in MOMENTS:
            here = [each for each in results if (each.moment, each.schedule) == (moment, when)]
            counted = [each for each in here if each.course]
            by_rule = [sum(rule in each.rules for each in counted) for rule in NAMED]
            others = sum(bool(each.rules) and not each.is_named for each in counted)
            print_row(moment, (len(here), len(counted), *by_rule, others))
    print_row("course of the loss: named of counted", COURSES)
    for group in (*dict.fromkeys(moment.partition(",")[0] for moment in MOMENTS), *KINDS):
        those = [[each for each in results if each.course == it and group in each.groups] for it in COURSES]
        print_row(group, [f"{sum(each.is_named for each in some)} of {len(some)}" for some in those])
    further = Counter(rule for each in results for rule in each.rules if rule not in NAMED)
    print("other rules:", ", ".join(f"{rule} {times}" for rule, times in further.most_common()) or "none")


def print_row(what: str, cells: Sequence[object]) -> None:
    """Print a row of a table."""
    print(f"{what:40}" + "".join(f"{cell!s:>18}" for cell in cells))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tuning", type=int, default=1, help="seeds that limits may be chosen with")
    parser.add_argument("--aside", type=int, default=2, help="seeds that say what holds")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    get_logger().setLevel("ERROR")
    for what, first, seeds in (("Tuning", TUNING, options.tuning), ("Kept aside", ASIDE, options.aside)):
        if seeds:
            report(what, first, seeds)


if __name__ == "__main__":
    main()
