"""The entry of one run in the list of runs, from a few of its files."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.plain_text import escaped
from smdebug.runs.left_out import unread_in_words
from smdebug.runs.metrics import last_metrics
from smdebug.runs.opening import open_run
from smdebug.runs.requests.annotating import Annotated
from smdebug.runs.training_loss import LossReader, TrainingLoss
from smdebug.secrets.texts import redacted_line
from smdebug.trials import Trial
from smdebug.ui.finding.times import clock_note, duration_of

CURVE = 48
"""Values of the loss in the list."""
_SAMPLED_STEPS = 48
_MOST_PARAMETERS = 200
_LONGEST = 200
_WRITTEN = ("tags", "note", "pinned")
_COMMIT = 12
INDEX_FILES = 1000
"""Index files of a run that are read at a time, so that a long run does not keep the others waiting."""
MOST_FOLLOWED = 128
"""Runs that have not ended, of which the list of steps is kept."""
_CONFIGURATIONS: WeakKeyDictionary[Trial, dict[str, Any]] = WeakKeyDictionary()
_METRICS: WeakKeyDictionary[Trial, tuple[int, dict[str, float | None]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Glance:
    """One run in the list."""

    state: str = "unknown"
    """`training`, `ended`, `waiting`, `reading`, `unreadable`, `gone`."""
    error: str = ""
    steps: int = 0
    last_step: int | None = None
    training_step: int | None = None
    """The last step of the training that has a loss: evaluations are not counted. None if it is not known."""
    first_saved: float | None = None
    last_saved: float | None = None
    duration: float | None = None
    note: str = ""
    """What is wrong with the times above."""
    workers: int = 0
    loss_name: str = ""
    loss: float | None = None
    curve: tuple[float | None, ...] = ()
    """The loss at steps that are spread evenly; None where it is not finite."""
    issues: int | None = None
    """How many problems the rules have detected; None if they have not been evaluated."""
    issue: str = ""
    """The first problem in one line."""
    since: int | None = None
    checked: int = 0
    """How many saved steps the rules have evaluated."""
    passed: int | None = None
    """How many rules had what they check and detected nothing; None if that is not known."""
    missing: str = ""
    """Which steps are missing, in words; "" if none are."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """The last value of each number that was logged, and of the learning rate."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "curve": list(self.curve)}

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Glance:
        """Return what `to_dict` wrote; raise `TypeError` for anything else."""
        return cls(**{**payload, "curve": tuple(payload.get("curve", ()))})


class Glancer:
    """Summarises runs. Of a run that has not ended, only what is new is read the next time."""

    def __init__(self, most: int = MOST_FOLLOWED):
        self._most = most
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    def at(self, path: str) -> Glance:
        """Return what the list of runs shows of a run."""
        followed = self._followed.pop(path, None)
        try:
            if followed is None:
                followed = _Followed(open_run(path, index_files=INDEX_FILES))
            found = followed.glance()
        except MissingCollectionFiles:
            return Glance(state="waiting")
        except SMDebugError as error:
            return Glance(state="unreadable", error=escaped(redacted_line(error)))
        if found.state != "ended":
            self._followed[path] = followed
            while len(self._followed) > self._most:
                self._followed.popitem(last=False)
        return found

    def take(self, path: str) -> Trial | None:
        """Return the open run, which is no longer followed here; None if it is not open."""
        followed = self._followed.pop(path, None)
        return None if followed is None else followed.trial


class _Followed:
    """A run with what was read of it for its summary."""

    def __init__(self, trial: Trial):
        self.trial = trial
        self._losses = LossReader(trial, most=_SAMPLED_STEPS, samples_series=True)

    def glance(self) -> Glance:
        trial = self.trial
        steps = trial.steps()
        ended = trial.loaded_all_steps
        if ended:  # steps may have come before the end and after the question
            steps = trial.steps()
        with trial.refreshing(False):
            loss = None if trial.has_more_files else self._read_loss()
            missing = "" if trial.has_more_files else escaped(unread_in_words(trial))
        return replace(
            timed(Glance(), trial, steps),
            state=state_of(trial, steps, ended=ended),
            workers=trial.num_workers,
            missing=missing,
            loss_name=self._losses.name,
            loss=None if loss is None else finite(loss.last),
            training_step=None if loss is None else loss.last_training_step,
            curve=() if loss is None else curve_of(loss.values.tolist()),
            configuration=configuration_of(trial),
            metrics={} if trial.has_more_files else metrics_of(trial),
        )

    def _read_loss(self) -> TrainingLoss | None:
        try:
            return self._losses.read()
        except SMDebugError:  # the rest of the run can be shown
            return None


def state_of(trial: Trial, steps: Sequence[int], *, ended: bool) -> str:
    """Return the state of a run: while it is `reading`, there are more steps than those."""
    if trial.has_more_files:
        return "reading"
    if ended or not steps:
        return "ended" if ended else "waiting"
    return "failed" if trial.state == "failed" else "training"


def timed(glance: Glance, trial: Trial, steps: Sequence[int]) -> Glance:
    """Return the summary with the steps of a run, and their times."""
    with trial.refreshing(False):
        first, last = (trial.saved_at(steps[at]) if steps else None for at in (0, -1))
    return replace(
        glance,
        steps=len(steps),
        last_step=steps[-1] if steps else None,
        first_saved=first,
        last_saved=last,
        duration=duration_of(first, last),
        note=clock_note(first, last, time.time()),
    )


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

    They are read once for each trial that has them: what a training or another server adds later shows when
    its run is opened again.
    """
    known = _CONFIGURATIONS.get(trial)
    if known is None:
        known = _configuration_in(trial)
        if known:
            _CONFIGURATIONS[trial] = known
    return dict(known)


def metrics_of(trial: Trial) -> dict[str, float | None]:
    """Return the last value of each number that was logged, and of the learning rate.

    Those of a run that has no new steps are not read again.
    """
    steps = trial.steps()
    count, known = _METRICS.get(trial, (-1, {}))
    if count != len(steps):
        try:
            found = last_metrics(trial)
        except SMDebugError:  # the rest of the run can be shown
            found = {}
        named = list(found.items())[:_MOST_PARAMETERS]
        known = {escaped(name)[:_LONGEST]: finite(value) for name, value in named}
        _METRICS[trial] = len(steps), known
    return dict(known)


def _configuration_in(trial: Trial) -> dict[str, Any]:
    try:
        origin = trial.origin
    except SMDebugError:  # a damaged file costs no row of the list
        return {}
    if origin is None:
        return {}
    config = list(origin.config.items())[:_MOST_PARAMETERS]
    found = {escaped(name)[:_LONGEST]: _plain(value) for name, value in config}
    commit = origin.commit[:_COMMIT] + (", changed" if origin.dirty else "")
    return {
        **found,
        **({"commit": escaped(commit)} if commit else {}),
        **_written(origin.tags, origin.note, origin.pinned),
    }


def annotated(glance: Glance, found: Annotated) -> Glance:
    """Return the summary with the tags, the note, the pin and the group that the run has now."""
    rest = {name: value for name, value in glance.configuration.items() if name not in (*_WRITTEN, "group")}
    rest |= {} if found.group is None else {"group": escaped(found.group)}
    return replace(glance, configuration={**rest, **_written(found.tags, found.note, found.pinned)})


def forget_configuration(trial: Trial) -> None:
    """Have the configuration of an open run read again."""
    _CONFIGURATIONS.pop(trial, None)


def _written(tags: Sequence[str], note: str, pinned: bool) -> dict[str, Any]:
    written = {
        "tags": escaped(", ".join(tags)),
        "note": escaped(note, "\n"),
        "pinned": pinned,
    }
    return {name: value for name, value in written.items() if value}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value if not isinstance(value, str) else escaped(value)[:_LONGEST]
    return finite(value) if isinstance(value, float) else escaped(str(value))[:_LONGEST]
