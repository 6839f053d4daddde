"""The report page on an XGBoost training: one self-contained HTML file."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 240, 60, 30
_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#17becf", "#7f7f7f")
_MOST_BARS = 25
_MOST_CLASSES = 30
_MOST_POINTS = 400


@dataclass(frozen=True)
class Training:
    """The data of a training up to one step."""

    run: str
    step: int
    metrics: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    importance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    labels: Any = None
    predictions: Any = None
    scores: Any = None


def page(training: Training) -> str:
    """Return the page, with a chapter for everything that was saved."""
    body = [
        f"<h1>XGBoost training {_text(training.run)}, at step {training.step}</h1>",
        *_metrics(training.metrics),
        *_importance(training.importance),
        *_about_labels(training),
        *_table("Hyperparameters", ("name", "value"), sorted(training.hyperparameters.items())),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>XGBoost report</title><style>'
        "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:2px 8px;text-align:right}"
        "svg{background:#fafafa;border:1px solid #ddd}</style></head><body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _metrics(metrics: Mapping[str, Sequence[Sequence[float]]]) -> Iterable[str]:
    kinds: dict[str, dict[str, Sequence[Sequence[float]]]] = {}
    for name, series in sorted(metrics.items()):
        kinds.setdefault(name.partition("-")[2] or name, {})[name] = series
    for kind, lines in kinds.items():
        yield f"<h2>{_text(kind)} by step</h2>{line_chart(lines)}"


def _importance(importance: Mapping[str, Mapping[str, float]]) -> Iterable[str]:
    for kind, features in sorted(importance.items()):
        ranked = sorted(features.items(), key=lambda item: (-item[1], item[0]))[:_MOST_BARS]
        yield f"<h2>Feature importance: {_text(kind)}</h2>{bar_chart(ranked)}"


def _about_labels(training: Training) -> Iterable[str]:
    labels, predictions = training.labels, training.predictions
    if labels is None:
        return
    classes = np.unique(labels)
    if not is_classification(labels):
        yield f"<h2>Distribution of labels</h2>{histogram(labels)}"
        if predictions is not None and predictions.size == labels.size:
            yield f"<h2>Distribution of residuals</h2>{histogram(labels - predictions)}"
            yield from _error_by_label(labels, predictions)
        return
    counts = [(f"{label:g}", int(np.count_nonzero(labels == label))) for label in classes]
    yield f"<h2>Distribution of labels</h2>{bar_chart(counts)}"
    if predictions is None or predictions.size != labels.size:
        return
    yield from _confusion(labels, predictions)
    if training.scores is not None and training.scores.size == labels.size and classes.size == 2:
        false, true, area = roc(labels == classes[1], training.scores)
        yield f"<h2>ROC, area {area:.4f}</h2>" + line_chart(
            {"true positives by false positives": list(zip(false, true, strict=True))}
        )


def is_classification(labels: Any) -> bool:
    """Return whether the labels are few whole numbers, rather than measurements."""
    classes = np.unique(labels)
    return bool(classes.size <= _MOST_CLASSES and (classes == np.floor(classes)).all())


def _confusion(labels: Any, predictions: Any) -> Iterable[str]:
    classes = np.unique(np.concatenate([labels, predictions]))[:_MOST_CLASSES]
    rows, measures = [], []
    for label in classes:
        cells = [
            int(np.count_nonzero((labels == label) & (predictions == predicted))) for predicted in classes
        ]
        rows.append((f"{label:g}", *cells))
        right = int(np.count_nonzero((labels == label) & (predictions == label)))
        actual, predicted = (int(np.count_nonzero(values == label)) for values in (labels, predictions))
        precision, recall = (
            right / predicted if predicted else 0.0,
            right / actual if actual else 0.0,
        )
        both = precision + recall
        f1 = 2 * precision * recall / both if both else 0.0
        measures.append((f"{label:g}", actual, f"{precision:.4f}", f"{recall:.4f}", f"{f1:.4f}"))
    yield from _table("Confusion matrix", ("label", *(f"as {label:g}" for label in classes)), rows)
    header = ("class", "samples", "precision", "recall (accuracy of the class)", "F1")
    yield from _table("By class", header, measures)
    yield f"<p>Accuracy: {float(np.mean(labels == predictions)):.4f}</p>"


def _error_by_label(labels: Any, predictions: Any) -> Iterable[str]:
    edges = np.linspace(labels.min(), labels.max(), 11)
    bins = np.clip(np.searchsorted(edges, labels, side="right") - 1, 0, 9)
    rows = [
        (
            f"{edges[at]:.4g} to {edges[at + 1]:.4g}",
            int(np.count_nonzero(bins == at)),
            f"{float(np.sqrt(np.mean(np.square(labels - predictions)[bins == at]))):.4g}",
        )
        for at in range(10)
        if (bins == at).any()
    ]
    yield from _table("Error by label", ("labels", "samples", "RMSE"), rows)


def roc(positive: Any, scores: Any) -> tuple[list[float], list[float], float]:
    """Return the rates of false and true positives by falling threshold, and the area under the curve."""
    order = np.argsort(-scores, kind="stable")
    positive, scores = positive[order], scores[order]
    last = np.flatnonzero(np.append(np.diff(scores) != 0, True))  # of each score
    true, false = np.cumsum(positive)[last], np.cumsum(~positive)[last]
    true_rate = np.concatenate([[0.0], true / max(true[-1], 1)])
    false_rate = np.concatenate([[0.0], false / max(false[-1], 1)])
    area = float(np.sum(np.diff(false_rate) * (true_rate[1:] + true_rate[:-1]) / 2))
    return false_rate.tolist(), true_rate.tolist(), area


# Drawing


def histogram(values: Any) -> str:
    """Return a histogram of the finite values."""
    values = values[np.isfinite(values)]
    if not values.size:
        return "<p>no finite values</p>"
    counts, edges = np.histogram(values, bins=20)
    return bar_chart([(f"{edges[at]:.4g}", int(count)) for at, count in enumerate(counts)])


def bar_chart(bars: Sequence[tuple[str, float]]) -> str:
    """Return a chart of bars with their names and numbers."""
    most = max((value for _, value in bars), default=0) or 1
    parts = []
    for at, (name, value) in enumerate(bars[:_MOST_BARS]):
        y, width = 18 * at + 4, max(0.0, 380 * value / most)
        parts.append(
            f'<text x="150" y="{y + 11}" text-anchor="end" font-size="11">{_text(name)[:60]}</text>'
            f'<rect x="156" y="{y}" width="{width:.1f}" height="14" fill="{_COLOURS[0]}"/>'
            f'<text x="{160 + width:.1f}" y="{y + 11}" font-size="11">{value:.6g}</text>'
        )
    height = 18 * min(len(bars), _MOST_BARS) + 8
    return f'<svg width="{_WIDTH}" height="{height}">{"".join(parts)}</svg>'


def line_chart(lines: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Return a chart of lines, with the limits written at the axes."""
    finite = {
        name: [(x, y) for x, y in series if np.isfinite(x) and np.isfinite(y)]
        for name, series in lines.items()
    }
    points = [point for series in finite.values() for point in series]
    if not points:
        return "<p>no finite values</p>"
    (left, right), (low, high) = (
        (min(p[axis] for p in points), max(p[axis] for p in points)) for axis in (0, 1)
    )
    parts = []
    for at, (name, series) in enumerate(finite.items()):
        colour = _COLOURS[at % len(_COLOURS)]
        every = max(1, len(series) // _MOST_POINTS)
        shown = series[::every] + (series[-1:] if len(series) % every != 1 % every else [])
        drawn = " ".join(
            f"{_LEFT + (_WIDTH - _LEFT - 10) * _part(x, left, right):.1f},"
            f"{10 + (_HEIGHT - _BOTTOM - 10) * (1 - _part(y, low, high)):.1f}"
            for x, y in shown
        )
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(
            f'<text x="{_WIDTH - 12}" y="{22 + 14 * at}" text-anchor="end" font-size="11" '
            f'fill="{colour}">{_text(name)}</text>'
        )
    for x, y, anchor, value in (
        (_LEFT - 4, 18, "end", high),
        (_LEFT - 4, _HEIGHT - _BOTTOM, "end", low),
        (_LEFT, _HEIGHT - 10, "start", left),
        (_WIDTH - 10, _HEIGHT - 10, "end", right),
    ):
        parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="11">{value:.4g}</text>')
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}">{"".join(parts)}</svg>'


def _part(value: float, least: float, most: float) -> float:
    return 0.5 if most == least else (value - least) / (most - least)


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterable[str]:
    rows = list(rows)
    if not rows:
        return
    head = "".join(f"<th>{_text(title)}</th>" for title in header)
    body = "".join("<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row) + "</tr>" for row in rows)
    yield f"<h2>{_text(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _text(value: Any) -> str:
    return html.escape(str(value))
