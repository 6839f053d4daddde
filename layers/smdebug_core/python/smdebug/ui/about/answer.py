"""What a whole run tells about itself: its size, its origin, inputs in findings, workers, time and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from smdebug.amounts import as_json_number, counted, number, size
from smdebug.exceptions import SMDebugError
from smdebug.plain_text import escaped
from smdebug.runs.metrics import SIZES, measured_sizes
from smdebug.runs.origins import in_words, readable_origin
from smdebug.runs.overview import Overview, overview_of
from smdebug.service.costs import PRICED_IN, Cost
from smdebug.trials import Trial
from smdebug.ui.about.inputs import inputs_shown
from smdebug.ui.about.worker_spread import worker_spread
from smdebug.ui.answer_types import AboutAnswer, InputAnswer, SpreadAnswer
from smdebug.ui.read_run import ReadRun

Latency = Mapping[str, tuple[float, float]]
"""The median and p99 in seconds of each stage from saving to publishing."""


def about(
    run: ReadRun,
    trial: Trial,
    *,
    latency: Latency | None = None,
    deployed: bool = False,
    progress: Callable[[int], Any] | None = lambda done: None,
) -> AboutAnswer:
    """Return it. Without `progress` no values are read: neither inputs nor those of several workers."""
    overview = overview_of(trial, with_values=False)
    origin = readable_origin(trial)
    rules = run.verdict["rules"]
    inputs, unsaved = ((), ()) if progress is None else inputs_shown(trial, rules)
    spread = () if progress is None else worker_spread(trial, progress)
    cost, basis = _cost(overview, deployed=deployed) if rules else ("", "")
    return {
        "facts": [
            [label, escaped(text)]
            for label, text in [*_facts(overview), *([] if progress is None else _sizes(trial))]
        ],
        "origin": [] if origin is None else [[a, escaped(b)] for a, b in in_words(origin)],
        "waiting": None if progress is None else waiting_share(trial),
        "inputs": [
            InputAnswer(
                name=escaped(item.name),
                step=item.step,
                shape=list(item.shape),
                rules=list(item.rules),
                pictures=list(item.pictures),
                texts=[escaped(text) for text in item.texts],
            )
            for item in inputs
        ],
        "unsaved_inputs": [escaped(name) for name in unsaved],
        "spread": [
            SpreadAnswer(
                name=escaped(tensor.name),
                steps=list(tensor.steps),
                spread=[as_json_number(value) for value in tensor.spread],
            )
            for tensor in spread
        ],
        "cost": cost,
        "cost_basis": basis,
        "latency": [
            {"stage": stage, "median": median, "p99": p99} for stage, (median, p99) in (latency or {}).items()
        ],
    }


def waiting_share(trial: Trial) -> float | None:
    """Return the share of the time that the training waited for data; None if that is not known."""
    try:
        measured = trial.system_metrics().values()
    except SMDebugError:  # damage is listed elsewhere
        return None
    taken = [
        (float(metrics["step_seconds"]), float(metrics["waiting_seconds"]))
        for metrics in measured
        if _is_number(metrics.get("step_seconds")) and _is_number(metrics.get("waiting_seconds"))
    ]
    total = sum(seconds for seconds, _ in taken)
    return sum(waited for _, waited in taken) / total if total > 0 else None


def _facts(overview: Overview) -> list[tuple[str, str]]:
    steps = "; ".join(f"{part.count:,} {part.mode} ({part.first}–{part.last})" for part in overview.steps)
    facts = [
        ("Steps", steps or "none"),
        ("Workers", _workers(overview)),
        ("Saved tensors", f"{len(overview.tensors):,}"),
        ("Size", size(overview.bytes)),
        ("Started", _time(overview.first_saved)),
        ("Last step", _time(overview.last_saved)),
    ]
    return [(label, text) for label, text in facts if text]


def _sizes(trial: Trial) -> list[tuple[str, str]]:
    labels = ("Parameters", "Batch size", "Samples a second", "Tokens a second")
    sizes = measured_sizes(trial)
    known = [(label, sizes[name]) for label, name in zip(labels, SIZES, strict=True) if name in sizes]
    return [(label, f"{value:,.0f}" if value >= 10 else number(value)) for label, value in known]


def _workers(overview: Overview) -> str:
    if not overview.digest_workers:
        return f"{overview.num_workers:,}"
    workers = overview.num_workers + overview.digest_workers
    return f"{workers:,}, of which {overview.digest_workers:,} save digests"


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _cost(overview: Overview, *, deployed: bool) -> tuple[str, str]:
    """Return what evaluating the run costs in a deployment, in a sentence, and by which prices."""
    steps, workers = overview.num_steps, max(1, overview.num_workers)
    if not steps:
        return "", ""
    cost = Cost(steps, workers)
    work = f"{counted(steps, 'saved step')} of {counted(workers, 'worker')}"
    sentence = (
        f"Evaluating {work} has cost about {cost}."
        if deployed
        else f"In a deployment, evaluating {work} would cost about {cost}."
    )
    return sentence, (
        f"AWS list prices in {PRICED_IN}, default settings, any number of built-in rules; "
        "without uploads, logs and the free tier."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
