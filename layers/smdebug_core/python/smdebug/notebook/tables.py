"""A run and a tensor as tables of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from smdebug.amounts import counted, number
from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.runs.origins import in_words, readable_origin, value_in_words
from smdebug.runs.overview import thinned
from smdebug.runs.sparkline import sparkline
from smdebug.runs.statistics import TensorSummary, statistics_read
from smdebug.runs.training_loss import kept_losses
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
        ("state", "ended" if trial.loaded_all_steps else "not ended"),
        ("saved steps", span),
        ("workers", str(trial.num_workers)),
        ("tensors", _tensors(trial)),
    ]
    try:
        kept = kept_losses(trial)
        if kept is not None and kept[1]:
            name, losses = kept
            rows.append((name, f"{number(losses[-1])} {sparkline(losses, _MOST_POINTS)}"))
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
            found = _statistics(tensor, step)
        except SMDebugError as error:
            rows.append((step, str(error)))
            continue
        if found is None:
            rows.append((step,))
            continue
        shape = "" if found.shape is None else " × ".join(map(str, found.shape)) or "scalar"
        odd = None if found.nan is None else found.nan + (found.infinite or 0)
        rows.append(
            (
                *(step, shape, found.dtype or "", number(found.minimum), number(found.maximum)),
                *(number(found.mean), number(found.std), odd or ""),
            )
        )
    head = ("step", "shape", "type", "min", "max", "mean", "std", "not finite")
    title = f"{tensor.name}: {counted(len(steps), 'step')}"
    if len(shown) < len(steps):
        title += f", {len(shown)} of them shown"
    return f"<p><b>{escape(title)}</b></p>{_table(head, rows)}"


def _statistics(tensor: Tensor, step: int) -> TensorSummary | None:
    """Return the statistics of a saved tensor, or what was measured of one that was not saved."""
    try:
        return statistics_read(tensor, step)
    except TensorUnavailableForStep:
        matrix = tensor.trial.observations.statistics(step)
        row = matrix.row(tensor.name)
        kept = matrix.tensors[matrix.names.index(tensor.name)]
        return TensorSummary(
            minimum=row["min"],
            maximum=row["max"],
            mean=row["mean"],
            std=row["std"],
            nan=int(row["non_finite"]),
            dtype=kept.dtype,
            shape=kept.shape,
        )


def _tensors(trial: Trial) -> str:
    saved = f"{len(trial.tensor_names()):,} saved"
    if not trial.observations.exist:
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
