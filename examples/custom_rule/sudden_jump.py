"""Detect a loss that jumps to many times its previous value, for example after a bad batch or restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from smdebug.rules import Finding, Rule
from smdebug.rules.parameters import number, patterns


def jumps(
    before: Mapping[str, float], now: Mapping[str, float], factor: float
) -> Iterator[tuple[str, float]]:
    """Yield each name whose value is more than `factor` times its previous value, and the ratio."""
    for name, value in now.items():
        if before.get(name, 0) > 0 and value > factor * before[name]:
            yield name, value / before[name]


class SuddenJump(Rule):
    """Detects a loss that is more than `factor` times its previous value."""

    def __init__(self, base_trial, factor="10", tensor_regex="loss"):
        super().__init__(base_trial)
        self.factor = number("factor", factor)  # parameters arrive as strings
        self.regex = patterns("tensor_regex", tensor_regex)
        self.before = {}  # plain data in attributes is kept from step to step

    def invoke_at_step(self, step):
        names = self.base_trial.tensor_names(step=step, regex=self.regex)
        now = {name: float(self.base_trial.tensor(name).value(step).mean()) for name in names}
        for name, times in sorted(jumps(self.before, now, self.factor), key=lambda jump: -jump[1]):
            self.findings.append(Finding(name, "jump", times, self.factor))
        self.before.update(now)
        return bool(self.findings)
