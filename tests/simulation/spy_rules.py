"""Rules that record exactly what they saw: their state is the evidence of the simulation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

import smdebug_rules.catalog as built_in
from smdebug.rules import Rule
from smdebug.rules.findings import Finding
from smdebug_rules.catalog import Parameter, RuleEntry

LIMIT = 10.0


class Remembers(Rule):
    """Keeps each step, the sum of all losses, how many steps there were; fires above a limit."""

    def __init__(self, base_trial, padding=0):
        super().__init__(base_trial)
        # Text that cannot be packed: with more than 1 KB, the state is an object of its own.
        self.padding = random.Random(0).randbytes(int(padding) // 2).hex()
        self.seen = []

    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss")
        total = sum(float(loss.value(step, worker=worker)[0]) for worker in loss.workers(step))
        self.seen.append([step, total, len(self.base_trial.steps())])
        return total > LIMIT


class Breaks(Remembers):
    """Raises at a step."""

    def __init__(self, base_trial, at=0):
        super().__init__(base_trial)
        self.at = int(at)

    def invoke_at_step(self, step):
        if step == self.at:
            raise ArithmeticError(f"step {step} is too much")
        return super().invoke_at_step(step)


class Ends(Remembers):
    """Finds something at the end alone, and would remember that."""

    def invoke_at_step(self, step):
        super().invoke_at_step(step)
        return False

    def invoke_at_end(self, step):
        self.seen = [*self.seen, [step, -1.0, len(self.base_trial.steps())]]
        self.findings.append(f"it ended at {step}, after {len(self.seen) - 1} steps")
        return True


class Floods(Remembers):
    """Finds so much at once that no item and no event can hold it."""

    def __init__(self, base_trial, findings=0):
        super().__init__(base_trial)
        self.number = int(findings)

    def invoke_at_step(self, step):
        fires = super().invoke_at_step(step)
        if fires:
            self.findings = [
                Finding(
                    tensor=f"layer{n}/" + "w" * 600,
                    value=float(n),
                    threshold=1.0,
                    message=f"layer{n}: " + "m" * 600,
                    details={"all": "d" * 900},
                )
                for n in range(self.number)
            ]
        return fires


_SPIES = tuple(
    RuleEntry(name, __name__, "For the simulation.", (Parameter(parameter, "int", 0, "how much"),))
    for name, parameter in (
        ("Remembers", "padding"),
        ("Breaks", "at"),
        ("Ends", "padding"),
        ("Floods", "findings"),
    )
)


@contextmanager
def in_the_catalog() -> Iterator[None]:
    """Let the functions find the spies where they find the built-in rules."""
    before = built_in.CATALOG
    spies = {spy.name: spy for spy in _SPIES}
    built_in.CATALOG = MappingProxyType({**before, **spies})
    try:
        yield
    finally:
        built_in.CATALOG = before
