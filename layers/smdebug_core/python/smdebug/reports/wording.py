"""Numbers and sentences as the page shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug import amounts
from smdebug.amounts import counted, size

if TYPE_CHECKING:
    from smdebug.reports.curves import Curve
    from smdebug.reports.distributions import Distribution
    from smdebug.reports.gathering import Gathered
    from smdebug.reports.tensor_series import Series
    from smdebug.reports.verdicts import Verdict
    from smdebug.runs.comparing import Comparison
    from smdebug.runs.overview import Overview


def number(value: float | None) -> str:
    """A number with four digits, infinity as its sign."""
    if value is not None and math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return amounts.number(value)


def cell(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, float):
        return number(value)
    return "" if value is None else str(value)


def percent(share: float) -> str:
    return f"{share:.2%}"


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def facts(run: Overview) -> list[tuple[str, str]]:
    """The labelled facts below the heading."""
    steps = "; ".join(
        f"{part.count:,} {part.mode} ({part.first}–{part.last})" for part in run.steps
    )
    return [
        ("State", "ended" if run.ended else "not ended"),
        ("Steps", steps or "none"),
        ("Workers", _workers(run)),
        ("Tensors", f"{len(run.tensors):,}"),
        ("Size", size(run.bytes)),
        ("Started", time(run.first_saved)),
        ("Last step", time(run.last_saved)),
    ]


def _workers(run: Overview) -> str:
    if not run.digest_workers:
        return f"{run.num_workers:,}"
    return f"{run.num_workers + run.digest_workers:,}, of which {run.digest_workers:,} save digests"


def headline(verdicts: Sequence[Verdict]) -> str:
    """All verdicts in a few words."""
    failing = sum(verdict.is_bad for verdict in verdicts)
    errors = sum(verdict.has_failed for verdict in verdicts)
    passed = sum(verdict.kind == "good" for verdict in verdicts)
    if failing:
        return f"{failing} of {counted(len(verdicts), 'rule')} detected a problem"
    if errors:
        return f"{counted(errors, 'rule')} could not be evaluated"
    if passed:
        rest = len(verdicts) - passed
        return f"{counted(passed, 'rule')} passed" + (f", {rest} not checked" if rest else "")
    return "nothing was checked" if verdicts else "no rules evaluated"


def evidence_shown(verdict: Verdict) -> str:
    """How many of the steps with findings are listed."""
    total, shown = len(verdict.steps_found), len(verdict.found)
    return f"{shown} of {counted(total, 'step')}" if total > shown else counted(total, "step")


def outcome(comparison: Comparison) -> str:
    """A comparison in a sentence."""
    if comparison.first is not None:
        return f"First difference: {comparison.first}."
    if comparison.is_same:
        return f"No differences in {comparison.compared:,} values."
    return "No differences in common values, but one run lacks steps or tensors of the other."


def curve_in_words(curve: Curve, other: Curve | None) -> str:
    """The drawing of a curve in words."""
    finite = [value for value in curve.values if math.isfinite(value)]
    odd = len(curve.values) - len(finite)
    text = _ends(curve)
    if finite:
        text += f"; smallest {number(min(finite))}, largest {number(max(finite))}"
    if odd:
        text += f"; {odd} not finite"
    return text if other is None else f"{text}; the other run: {_ends(other)}"


def _ends(curve: Curve) -> str:
    return (
        f"{number(curve.values[0])} at step {curve.steps[0]}, "
        f"{number(curve.values[-1])} at step {curve.steps[-1]}"
    )


def spoken(series: Series) -> str:
    """The drawing of a tensor's statistics in words."""
    means = series.numbers["abs_mean"]
    known = means[np.isfinite(means)]
    if not known.size:
        return f"{series.name}: no finite values"
    first, last, low, high = (
        number(float(value)) for value in (known[0], known[-1], known.min(), known.max())
    )
    return f"{series.name}: mean magnitude first {first}, last {last}, between {low} and {high}"


def last_numbers(series: Series) -> tuple[Any, ...]:
    """The cells of a tensor's row: its statistics at the last step."""
    last = series.last
    if last is None:
        return ()
    shape = "" if last.shape is None else "×".join(map(str, last.shape)) or "scalar"
    return (
        *(series.last_step, shape, last.minimum, last.maximum, last.mean, last.std),
        *(last.abs_mean, last.zeros, last.nan, last.infinite),
    )


def range_in_words(distribution: Distribution) -> str:
    """The drawing of a distribution in words."""
    low, high = (distribution.value_at(edge) for edge in (distribution.low, distribution.high))
    return (
        f"{distribution.name}: values between {number(low)} and {number(high)} "
        f"over {len(distribution.steps)} steps"
    )


def notes(found: Gathered) -> list[str]:
    """Notes on what the page omits."""
    texts = list(found.notes)
    if found.left_out:
        texts.append(f"{counted(found.left_out, 'saved tensor')} not drawn.")
    if found.overview.incomplete_steps:
        count = len(found.overview.incomplete_steps)
        texts.append(f"{counted(count, 'step')} not counted: workers are missing.")
    return texts + [f"Damaged: {key}: {why}" for key, why in found.overview.damaged.items()]
