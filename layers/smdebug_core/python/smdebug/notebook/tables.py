"""A run and a tensor as tables of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from smdebug.amounts import counted, number
from smdebug.exceptions import SMDebugError
from smdebug.runs.origins import in_words, readable_origin, value_in_words
from smdebug.runs.overview import thinned
from smdebug.runs.sparkline import sparkline
from smdebug.runs.statistics import statistics_read
from smdebug.runs.training_loss import loss_in_words, training_loss
from smdebug.trials import Trial
from smdebug.trials.tensor import Tensor

_MOST_ROWS = 12
_MOST_SETTINGS = 12
_MOST_POINTS = 60


def run_html(trial: Trial) -> str:
    """Return the run at a glance: state, steps, loss, where it comes from."""
    steps = trial.steps()
    span = f"{len(steps):,} ({steps[0]:,} to {steps[-1]:,})" if steps else "none so far"
    rows: list[tuple[str, str]] = [
        ("run", trial.path),
        ("state", trial.state),
        ("saved steps", span),
        *([("missing steps", str(missing))] if (missing := trial.missing_steps) else []),
        ("workers", str(trial.num_workers)),
        ("tensors", _tensors(trial)),
    ]
    try:
        loss = training_loss(trial)
        if loss is not None:
            curve = sparkline(loss.values.tolist(), _MOST_POINTS)
            rows.append((loss.name, f"{loss_in_words(loss)} {curve}"))
    except SMDebugError as error:
        rows.append(("damaged", str(error)))
    origin = readable_origin(trial)
    if origin is not None:
        rows += [(name, text) for name, text in in_words(origin) if name != "host"]
        settings = list(origin.config.items())[:_MOST_SETTINGS]
        shown = ", ".join(f"{name}={value_in_words(value)}" for name, value in settings)
        more = len(origin.config) - len(settings)
        if shown:
            rows.append(("configuration", shown + (f" and {more} more" if more > 0 else "")))
    return _table((), rows)


def tensor_html(tensor: Tensor) -> str:
    """Return the statistics of the tensor at some of its steps."""
    steps = tensor.steps()
    shown = thinned(steps, _MOST_ROWS)
    rows: list[Sequence[Any]] = []
    for step in shown:
        try:
            found = statistics_read(tensor, step)
        except SMDebugError as error:
            rows.append((step, str(error)))
            continue
        if found is None:
            rows.append((step,))
            continue
        shape = "" if found.shape is None else " × ".join(map(str, found.shape)) or "scalar"
        rows.append(
            (
                step,
                shape,
                found.dtype or "",
                number(found.min),
                number(found.max),
                number(found.mean),
                number(found.std),
                found.non_finite or "",
            )
        )
    head = ("step", "shape", "type", "min", "max", "mean", "std", "non_finite")
    title = f"{tensor.name}: {counted(len(steps), 'step')}"
    if len(shown) < len(steps):
        title += f", {len(shown)} of them shown"
    return f"<p><b>{escape(title)}</b></p>{_table(head, rows)}"


def _tensors(trial: Trial) -> str:
    saved = f"{len(trial.tensor_names()):,} saved"
    if not trial.observations.has_facts:
        return saved
    try:
        layout = trial.observations.layout(trial.observations.steps()[-1])
    except (SMDebugError, IndexError):
        return saved
    return f"{saved}, {sum(map(len, layout.tensors.values())):,} measured"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    parts = ["<table>"]
    if head:
        cells = "".join(f"<th>{escape(text)}</th>" for text in head)
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(f'<td style="text-align:left">{escape(str(value))}</td>' for value in rest)
        parts.append(f'<tr><th style="text-align:left">{escape(str(first))}</th>{cells}</tr>')
    return "".join([*parts, "</tbody></table>"])
