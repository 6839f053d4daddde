"""What was read of a run, as a file for the cache: its charts, and what the rules found.

A file of NumPy's form (npz, read without pickle): `head` is JSON, the others are the series and matrices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from smdebug.diagnosis import Issue
from smdebug.runs.curves.moments import Moments
from smdebug.runs.curves.training_steps import TrainingSteps
from smdebug.ui.answer_types import VerdictAnswer
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.folded_rows import FoldedRows
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.drawing.pyramid import Pyramid
from smdebug.ui.following.verdict_answers import NO_VERDICT

_HEAD = "head"


@dataclass(frozen=True)
class Kept:
    """What was read of a run, as far as it was read."""

    steps: list[int]
    read_through: int
    checked: int
    has_ended: bool
    attempt: list[Any]
    series: dict[str, Pyramid]
    kinds: dict[str, Statistics]
    lines: dict[str, dict[str, Pyramid]] = field(default_factory=dict)
    training_steps: TrainingSteps = field(default_factory=TrainingSteps)
    moments: Moments = field(default_factory=Moments)
    orders: dict[str, list[int]] = field(default_factory=dict)
    modes: list[tuple[int, int, str]] = field(default_factory=list)
    facts: list[tuple[int, str, Any]] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    values_left_out_from: int | None = None
    folded: dict[str, FoldedRows] = field(default_factory=dict)
    workers: list[str] = field(default_factory=list)
    missing: str = ""
    issues: tuple[Issue, ...] = ()
    verdict: VerdictAnswer = field(default_factory=lambda: NO_VERDICT)
    """The results of the rules and their log, as the page shows them."""

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended, and all of it was read and checked."""
        return self.has_ended and self.checked == len(self.steps)

    def charts(self) -> Charts:
        """Return the charts that were read, to which later steps can be added."""
        charts = Charts()
        charts.series, charts.lines = self.series, self.lines
        charts.training_steps.extend(self.training_steps)
        charts.moments.extend(self.moments)
        charts.kinds, charts.orders = self.kinds, dict(self.orders)
        charts.modes, charts.facts = list(self.modes), list(self.facts)
        charts.damaged, charts.folded = dict(self.damaged), dict(self.folded)
        charts.values_left_out_from = self.values_left_out_from
        return charts

    def write(self, file: IO[bytes]) -> None:
        """Write what `read` reads."""
        head = {
            "read_through": self.read_through,
            "checked": self.checked,
            "has_ended": self.has_ended,
            "attempt": self.attempt,
            "series": list(self.series),
            "lines": {mode: list(lines) for mode, lines in self.lines.items()},
            "training_steps": self.training_steps.to_list(),
            "kinds": {kind: statistics.names for kind, statistics in self.kinds.items()},
            "per_stretch": [statistics.steps_in_a_stretch for statistics in self.kinds.values()],
            "orders": self.orders,
            "modes": self.modes,
            "facts": self.facts,
            "damaged": self.damaged,
            "values_left_out_from": self.values_left_out_from,
            "folded": {kind: rows.tensors for kind, rows in self.folded.items()},
            "workers": self.workers,
            "missing": self.missing,
            "issues": [issue.to_dict() for issue in self.issues],
            "verdict": self.verdict,
        }
        text = json.dumps(head).encode("utf-8", "surrogatepass")
        arrays: dict[str, Any] = {_HEAD: np.frombuffer(text, np.uint8)}
        arrays["steps"] = np.asarray(self.steps, np.int64)
        arrays["moments.steps"] = np.asarray(self.moments.steps, np.int64)
        arrays["moments.seconds"] = np.asarray(self.moments.seconds, np.float64)
        for prefix, pyramids in (("s", self.series), *self.lines.items()):
            for at, pyramid in enumerate(pyramids.values()):
                arrays[f"{prefix}{at}.steps"] = pyramid.steps
                arrays[f"{prefix}{at}.values"] = pyramid.values
        for at, kind in enumerate(self.kinds.values()):
            first, last, low, high = kind.stretches
            arrays |= {f"k{at}.first": first, f"k{at}.last": last, f"k{at}.low": low}
            if high is not None:
                arrays[f"k{at}.high"] = high
        np.savez(file, **arrays)

    @classmethod
    def read(cls, file: IO[bytes], budget: int) -> Kept:
        """Return what `write` wrote; raise a `ValueError`, `KeyError` or `TypeError` for anything else."""
        with np.load(file, allow_pickle=False) as arrays:
            head = json.loads(arrays[_HEAD].tobytes().decode("utf-8", "surrogatepass"))
            series = _pyramids(arrays, "s", head["series"])
            lines = {mode: _pyramids(arrays, mode, names) for mode, names in head["lines"].items()}
            kinds = {
                kind: Statistics.of_stretches(
                    names,
                    (arrays[f"k{at}.first"], arrays[f"k{at}.last"], arrays[f"k{at}.low"]),
                    arrays.get(f"k{at}.high"),
                    per_stretch=head["per_stretch"][at],
                    budget=budget,
                )
                for at, (kind, names) in enumerate(head["kinds"].items())
            }
            steps = arrays["steps"].tolist()
            moments = Moments(arrays["moments.steps"].tolist(), arrays["moments.seconds"].tolist())
        return cls(
            steps=steps,
            read_through=head["read_through"],
            checked=head["checked"],
            has_ended=head["has_ended"],
            attempt=head["attempt"],
            series=series,
            kinds=kinds,
            lines=lines,
            training_steps=TrainingSteps(*head["training_steps"]),
            moments=moments,
            orders=head["orders"],
            modes=[(first, last, name) for first, last, name in head["modes"]],
            facts=[(step, name, value) for step, name, value in head["facts"]],
            damaged=head["damaged"],
            values_left_out_from=head["values_left_out_from"],
            folded={kind: FoldedRows(names) for kind, names in head["folded"].items()},
            workers=head["workers"],
            missing=head["missing"],
            issues=tuple(map(Issue.from_dict, head["issues"])),
            verdict={**NO_VERDICT, **head["verdict"]},
        )


def _pyramids(arrays: Mapping[str, Any], prefix: str, names: Sequence[str]) -> dict[str, Pyramid]:
    found: dict[str, Pyramid] = {}
    for at, name in enumerate(names):
        found[name] = Pyramid()
        found[name].append(arrays[f"{prefix}{at}.steps"], arrays[f"{prefix}{at}.values"])
    return found
