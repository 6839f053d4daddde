"""The entry of one run in the list of runs, from a few of its files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.plain_text import escaped
from smdebug.runs.opening import open_run
from smdebug.runs.overview import thinned
from smdebug.trials import Trial

CURVE = 48
"""Values of the loss in the list."""
_SAMPLED_STEPS = 48
_MOST_PARAMETERS = 200
_LONGEST = 200
_COMMIT = 12
_CONFIGURATIONS: WeakKeyDictionary[Trial, dict[str, Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Glance:
    """One run in the list."""

    state: str = "unknown"
    """`training`, `ended`, `waiting`, `unreadable`."""
    error: str = ""
    steps: int = 0
    last_step: int | None = None
    first_saved: float | None = None
    last_saved: float | None = None
    workers: int = 0
    loss_name: str = ""
    loss: float | None = None
    curve: tuple[float | None, ...] = ()
    """The loss at steps that are spread evenly; None where it is not finite."""
    issues: int | None = None
    """How many problems the rules have detected; None if they have not been evaluated."""
    issue: str = ""
    """The first problem in a line."""
    since: int | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "curve": list(self.curve)}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Glance:
        """Return what `to_dict` wrote; raise `TypeError` for anything else."""
        return cls(**{**payload, "curve": tuple(payload.get("curve", ()))})


def glance_at(path: str) -> Glance:
    """Read what the list of runs shows of a run."""
    try:
        return _of(open_run(path))
    except MissingCollectionFiles:
        return Glance(state="waiting")
    except SMDebugError as error:
        return Glance(state="unreadable", error=escaped(" ".join(str(error).split())))


def _of(trial: Trial) -> Glance:
    steps = trial.steps()
    name, losses = _losses(trial, steps)
    return Glance(
        state="ended" if trial.loaded_all_steps else "training" if steps else "waiting",
        steps=len(steps),
        last_step=steps[-1] if steps else None,
        first_saved=trial.saved_at(steps[0]) if steps else None,
        last_saved=trial.saved_at(steps[-1]) if steps else None,
        workers=trial.num_workers,
        loss_name=name,
        loss=finite(losses[-1]) if losses else None,
        curve=curve_of(losses),
        configuration=configuration_of(trial),
    )


def _losses(trial: Trial, steps: list[int]) -> tuple[str, list[float]]:
    """Return the name of the training loss and its values at some of the saved steps."""
    try:
        if trial.observations.exist:
            name = _loss_name(trial.observations.series_names())
            rows = [
                trial.observations.at(step).series(name) for step in thinned(steps, _SAMPLED_STEPS)
            ]
            return name, [float(each[-1, 3]) for each in rows if len(each)]
        names = trial.tensor_names(collection="losses")
        name = _loss_name(names)
        if not name:
            return "", []
        tensor = trial.tensor(name)
        chosen = thinned(tensor.steps(), _SAMPLED_STEPS)
        return name, [float(tensor.reduction_value(step, "mean")) for step in chosen]
    except SMDebugError:
        return "", []


def _loss_name(names: list[str]) -> str:
    lower = {name.lower(): name for name in names}
    for wanted in ("loss", "train_loss", "training_loss"):
        if wanted in lower:
            return lower[wanted]
    return next((name for name in names if "loss" in name.lower()), "")


def curve_of(losses: list[float]) -> tuple[float | None, ...]:
    """Return at most `CURVE` values, of each stretch the largest; None where any is not finite."""
    count = min(CURVE, len(losses))
    edges = [round(at * len(losses) / count) for at in range(count + 1)] if count else []
    return tuple(
        finite(max(part)) if all(map(math.isfinite, part)) else None
        for part in (losses[low:high] for low, high in pairwise(edges))
    )


def finite(value: float | None) -> float | None:
    """Return the value if JSON can hold it."""
    return value if value is not None and math.isfinite(value) else None


def configuration_of(trial: Trial) -> dict[str, Any]:
    """Return the hyperparameters, tags and commit that a run was started with, as far as they are known.

    They are read once for each trial that has them: what a training adds later shows when its run is opened
    again.
    """
    known = _CONFIGURATIONS.get(trial)
    if known is None:
        known = _configuration_in(trial)
        if known:
            _CONFIGURATIONS[trial] = known
    return dict(known)


def _configuration_in(trial: Trial) -> dict[str, Any]:
    try:
        origin = trial.origin
    except SMDebugError:  # a damaged file costs no row of the list
        return {}
    if origin is None:
        return {}
    about = {
        "tags": ", ".join(origin.tags),
        "note": origin.note,
        "commit": origin.commit[:_COMMIT] + (", changed" if origin.dirty else ""),
    }
    parts = [*origin.config.items(), *((name, text) for name, text in about.items() if text)]
    return {escaped(name)[:_LONGEST]: _plain(value) for name, value in parts[:_MOST_PARAMETERS]}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value if not isinstance(value, str) else escaped(value)[:_LONGEST]
    return finite(value) if isinstance(value, float) else escaped(str(value))[:_LONGEST]
