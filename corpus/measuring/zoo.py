"""Every program and fault there is, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from corpus.cases import FAULTS, PROGRAMS, Fault, Program

MODULES = (
    "healthy_torch",
    "unusual_torch",
    "targets_torch",
    "targets_held_out_torch",
    "faults_torch",
    "ranks_torch",
    "scripts_healthy_torch",
    "scripts_faults_torch",
    "scripts_ranks_torch",
    "modern_torch",
    "modern_held_out_torch",
    "silent.tuning_torch",
    "silent.choices_torch",
    "silent.resumes_torch",
    "silent.routers_torch",
    "silent.errors_torch",
    "silent.rows_torch",
    "silent.forecasts_torch",
    "silent.teachers_torch",
    "silent.drops_torch",
    "silent.generated_torch",
    "silent.held_out_torch",
    "silent.choices_held_out_torch",
    "silent.resumes_held_out_torch",
    "silent.routers_held_out_torch",
    "silent.errors_held_out_torch",
    "silent.rows_held_out_torch",
    "silent.forecasts_held_out_torch",
    "silent.teachers_held_out_torch",
    "silent.drops_held_out_torch",
    "unlearnt.rounded_torch",
    "unlearnt.rounded_held_out_torch",
    "unlearnt.views_torch",
    "unlearnt.views_held_out_torch",
    "unlearnt.heads_torch",
    "unlearnt.heads_held_out_torch",
    "unlearnt.times_torch",
    "unlearnt.times_held_out_torch",
    "unlearnt.shared_torch",
    "unlearnt.shared_held_out_torch",
    "unlearnt.conditions_torch",
    "unlearnt.conditions_held_out_torch",
    "unlearnt.averages_torch",
    "unlearnt.averages_held_out_torch",
    "arguments.tuning_torch",
    "arguments.held_out_torch",
    "arguments.ignored_torch",
    "arguments.ignored_held_out_torch",
    "arguments.scores_torch",
    "arguments.scores_held_out_torch",
    "arguments.samplers_torch",
    "arguments.samplers_held_out_torch",
    "arguments.divisors_torch",
    "arguments.divisors_held_out_torch",
    "arguments.rectified_torch",
    "arguments.rectified_held_out_torch",
    "arguments.tags_torch",
    "arguments.tags_held_out_torch",
    "fit_keras",
    "trees_xgboost",
    "steps_jax",
)
SEEDS = {"healthy": 5, "faulty": 3, "twin": 3}


@dataclass(frozen=True)
class Trained:
    """One kind of training of a program or fault: `healthy`, `faulty`, or the fault's healthy `twin`."""

    case: Program | Fault
    kind: str

    @property
    def name(self) -> str:
        return f"{self.case.name} ({self.kind})"

    def train(self, seed: int) -> object:
        """Train it in this process."""
        if isinstance(self.case, Program):
            return self.case.train(seed)
        return self.case.train(seed, self.kind == "faulty")


def load() -> None:
    """Import the modules in which programs and faults are registered."""
    for module in MODULES:
        import_module(f"corpus.programs.{module}")


def trainings(half: str | None = None, only: str | None = None) -> Iterator[Trained]:
    """The trainings of one half (`tuning` or `held out`) or of both, whose names contain `only`."""
    load()
    cases: list[Program | Fault] = [*PROGRAMS, *FAULTS]
    for case in cases:
        if half is not None and case.held_out != (half == "held out"):
            continue
        if only is not None and only.lower() not in f"{case.framework} {case.name}".lower():
            continue
        for kind in ("healthy",) if isinstance(case, Program) else ("faulty", "twin"):
            yield Trained(case, kind)


def at_random(count: int) -> Iterator[Trained]:
    """So many healthy trainings that are drawn at random, the same each time."""
    from corpus.programs.random_torch import programs

    yield from (Trained(program, "healthy") for program in programs(count))


def find(name: str, kind: str) -> Trained:
    """The training with that name and kind."""
    drawn, _, number = name.partition(" ")
    if drawn == "random" and number.isdecimal():
        return next(each for each in at_random(int(number) + 1) if each.case.name == name)
    return next(each for each in trainings() if (each.case.name, each.kind) == (name, kind))
