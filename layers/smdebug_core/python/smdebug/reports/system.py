"""The system metrics of a run, as curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.reports.curves import MOST_POINTS, Curve, with_extremes
from smdebug.trials import Trial

_MEGABYTE = 1e6
_MOST_GPUS = 8
_METRICS = (
    ("step_seconds", "seconds per step", 1.0),
    ("waiting_seconds", "seconds per step waiting for data", 1.0),
    ("cpu_percent", "CPU of the process, percent of a core", 1.0),
    ("memory_bytes", "memory of the process, MB", _MEGABYTE),
    ("machine_memory_percent", "memory of the machine, percent", 1.0),
)


def system_curves(trial: Trial) -> tuple[Curve, ...]:
    """Return time per step, waiting, CPU, memory and GPUs over the saved steps, as far as they were kept."""
    try:
        measured = trial.system_metrics()
    except SMDebugError:  # damage is listed elsewhere
        return ()
    points: dict[str, list[tuple[int, float]]] = {}
    for step, metrics in sorted(measured.items()):
        for name, value in _named(metrics):
            points.setdefault(name, []).append((step, value))
    curves = []
    for name, of_metric in sorted(points.items(), key=lambda item: _place(item[0])):
        kept = with_extremes(of_metric, MOST_POINTS)
        steps, values = zip(*kept, strict=True)
        curves.append(Curve(name, "GLOBAL", steps, values, len(of_metric)))
    return tuple(curves)


def waiting_share(trial: Trial) -> float | None:
    """Return the share of the time that the training waited for data; None if that is not known."""
    try:
        measured = trial.system_metrics().values()
    except SMDebugError:
        return None
    taken = [
        (float(metrics["step_seconds"]), float(metrics["waiting_seconds"]))
        for metrics in measured
        if _is_number(metrics.get("step_seconds")) and _is_number(metrics.get("waiting_seconds"))
    ]
    total = sum(seconds for seconds, _ in taken)
    return sum(waited for _, waited in taken) / total if total > 0 else None


def _place(name: str) -> int:
    """Return the position of a metric on the page: time first, GPUs last."""
    return next((at for at, (_, known, _) in enumerate(_METRICS) if known == name), len(_METRICS))


def _named(metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the names and values of a step's metrics as the page shows them."""
    for key, name, unit in _METRICS:
        if _is_number(metrics.get(key)):
            yield name, metrics[key] / unit
    gpus = metrics.get("gpus")
    for at, gpu in enumerate(gpus[:_MOST_GPUS] if isinstance(gpus, list) else ()):
        if not isinstance(gpu, dict):
            continue
        if _is_number(gpu.get("utilisation_percent")):
            yield f"GPU {at} utilisation, percent", gpu["utilisation_percent"]
        if _is_number(gpu.get("memory_bytes")):
            yield f"GPU {at} memory, MB", gpu["memory_bytes"] / _MEGABYTE


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
