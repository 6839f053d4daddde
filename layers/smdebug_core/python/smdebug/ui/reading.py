"""A run that is read step by step: its series, statistics, facts and problems so far.

    reader = RunReader(path)
    while reader.advance(seconds=0.05):
        ...

Each file is read once, except those that the rules reach later than the charts. One thread advances;
others may hold `lock` and query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smdebug.diagnosis import Issue
from smdebug.exceptions import MissingCollectionFiles, SMDebugError
from smdebug.files.names import OBSERVATIONS
from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import escaped
from smdebug.runs.following import Following
from smdebug.runs.opening import open_run
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial
from smdebug.ui.matrices import BUDGET, Statistics
from smdebug.ui.pyramid import Pyramid
from smdebug.ui.saved_values import SavedValues

MOST_FACTS = 2000  # changes of facts that are kept
MOST_KINDS = 12
_LONGEST_FACT = 200
_STEPS_AT_A_TIME = 16
_NOT_SHOWN = frozenset({"layout", "modules", "optimizers", "loss", "frozen"})
"""Facts that are no line of text."""


class RunReader:
    """What was read of a run so far."""

    def __init__(
        self,
        path: str,
        rules: Sequence[RequestedRule] | None = None,
        *,
        trial: Trial | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.path = path
        self.lock = threading.RLock()
        self.version = 0
        """A number that changes with what was read."""
        self.error = ""
        self.trial: Trial | None = None
        self.series: dict[str, Pyramid] = {}
        self.kinds: dict[str, Statistics] = {}
        self.steps: list[int] = []
        self.modes: list[tuple[int, int, str]] = []
        """Stretches of steps of one mode: first, last, name."""
        self.facts: list[tuple[int, str, Any]] = []
        """Changes of facts: step, name, value."""
        self.damaged: dict[str, str] = {}
        self.has_ended = False
        self.notes: dict[str, str] = {}
        """What else a reader of the page must know, by its subject."""
        self.following: Following | None = None
        self._given = trial
        self._rules = rules
        self._clock = clock
        self._read_through = -1
        self._attempt: Any = None
        self._last_facts: dict[str, Any] = {}
        self._saved: SavedValues | None = None

    # What was read

    @property
    def steps_read(self) -> int:
        """How many steps were read for the charts."""
        return self._read_through + 1 if not self.steps else self._count_through(self._read_through)

    @property
    def steps_checked(self) -> int:
        """How many steps the rules have evaluated."""
        following = self.following
        return 0 if following is None else self._count_through(following.last_step)

    @property
    def is_behind(self) -> bool:
        """Whether saved steps wait to be read or to be checked."""
        if self.trial is None or self.steps_read < len(self.steps):
            return self.trial is not None
        following = self.following
        if following is None:
            return False
        ending = self.has_ended and not following.has_ended
        return ending or self.steps_checked < len(self.steps)

    @property
    def issues(self) -> tuple[Issue, ...]:
        return () if self.following is None else self.following.issues

    @property
    def nbytes(self) -> int:
        """About how much memory the charts take."""
        series = sum(each.nbytes for each in self.series.values())
        return series + sum(each.nbytes for each in self.kinds.values())

    def note(self, subject: str, text: str) -> None:
        """Show a sentence on the page of the run; "" takes back the one about that subject."""
        text = escaped(" ".join(text.split()))
        with self.lock:
            if self.notes.get(subject, "") == text:
                return
            self.notes.pop(subject, None)
            if text:
                self.notes[subject] = text
            self.version += 1

    def touch(self) -> None:
        """Tell the pages that something has changed."""
        with self.lock:
            self.version += 1

    # Reading

    def advance(self, seconds: float) -> bool:
        """Read new steps for about `seconds`; return whether there is more."""
        try:
            if self.trial is None:
                self._open()
            with self.lock:
                self._advance(self._clock() + seconds)
                self._set_error("")
        except MissingCollectionFiles as error:
            self._set_error(str(error))
            return False
        except SMDebugError as error:  # storage that cannot be reached now, or a damaged run
            self._set_error(str(error))
            return False
        return self.is_behind

    def _set_error(self, text: str) -> None:
        text = escaped(" ".join(text.split()))
        if text != self.error:
            self.error = text
            self.version += 1

    def _open(self) -> None:
        trial = self._given or open_run(self.path)  # seconds for a long run, so without the lock
        self._given = None
        with self.lock:
            self.trial = trial
            self.use_rules()

    def use_rules(self) -> None:
        """Evaluate the run's rules from the first step on, as they are now."""
        with self.lock:
            if self.trial is None:
                return
            self.damaged.pop("rules", None)
            try:
                self.following = Following(self.trial, self._rules)
            except SMDebugError as error:  # a damaged rules.json: the charts can be shown
                self.following = None
                self.damaged["rules"] = str(error)
            self.version += 1

    def _advance(self, until: float) -> None:
        trial = self.trial
        assert trial is not None
        known, had_ended = len(self.steps), self.has_ended
        if not self.has_ended:
            self.steps = trial.steps()
            if trial.loaded_all_steps:  # steps may have come before the end and after the question
                self.steps = trial.steps()
                self.has_ended = True
        self._notice_another_attempt(trial)
        if len(self.steps) != known or self.has_ended != had_ended:
            self.version += 1
        self._read_steps(trial, until)
        if self.steps_read >= len(self.steps):
            self._check_steps(until)

    def _notice_another_attempt(self, trial: Trial) -> None:
        """Read everything again if the training was started again, which may have replaced any step."""
        meta = trial.collection_manager.meta
        attempt = meta.get("run_id"), meta.get("training_run")
        if attempt == self._attempt:
            return
        if self._attempt is not None:
            self.series, self.kinds, self.modes, self.facts = {}, {}, [], []
            self.damaged, self._last_facts, self._saved = {}, {}, None
            self._read_through = -1
            self.use_rules()
            self.note("attempt", "The training was started again: this is the newest attempt.")
        self._attempt = attempt

    def _read_steps(self, trial: Trial, until: float) -> None:
        at = self._count_through(self._read_through)
        is_observed = trial.observations.exist
        if not is_observed and self._saved is None and self.steps:
            self._saved = SavedValues(trial)
        while at < len(self.steps):
            for step in self.steps[at : at + _STEPS_AT_A_TIME]:
                self._note_mode(step, trial.mode(step) or ModeKeys.GLOBAL)
                try:
                    if is_observed:
                        self._read_observations(trial, step)
                    elif self._saved is not None:
                        self._read_saved(self._saved, step)
                except SMDebugError as error:
                    self.damaged[f"step {step}"] = str(error)
                self._read_through = step
            at += _STEPS_AT_A_TIME
            self.version += 1
            if self._clock() >= until:
                break

    def _read_observations(self, trial: Trial, step: int) -> None:
        seen = trial.observations.at(step)
        for name in seen.series_names:
            self._append_series(name, seen.series(name))
        layout = seen.layout
        for kind in () if layout is None else layout.tensors:
            matrix = seen.statistics(kind)
            if matrix is not None and len(matrix):
                self._kind(kind).append(step, matrix.names, matrix.values)
        self._note_facts(step, seen.facts)
        for what, why in seen.damaged.items():
            self.damaged[f"{what} at step {step}"] = why

    def _read_saved(self, saved: SavedValues, step: int) -> None:
        for name, value in saved.scalars(step).items():
            self._pyramid(name).append(np.array([step]), np.array([value], np.float64))
        for kind, (names, values) in saved.statistics(step).items():
            self._kind(kind).append(step, names, values)

    def _append_series(self, name: str, rows: Any) -> None:
        if not len(rows):
            return
        # A step may have several values, such as after gradients were accumulated: the last one counts.
        steps = rows[:, 0].astype(np.int64)
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], rows[order, 3]
        is_last = np.append(steps[1:] != steps[:-1], True)
        self._pyramid(name).append(steps[is_last], values[is_last])

    def _pyramid(self, name: str) -> Pyramid:
        return self.series.setdefault(name, Pyramid())

    def _kind(self, kind: str) -> Statistics:
        if kind not in self.kinds:
            self.kinds[kind] = Statistics(BUDGET // max(1, min(MOST_KINDS, len(self.kinds))))
        return self.kinds[kind]

    def _note_mode(self, step: int, mode: ModeKeys) -> None:
        if self.modes and self.modes[-1][2] == mode.name:
            self.modes[-1] = (self.modes[-1][0], step, mode.name)
        else:
            self.modes.append((step, step, mode.name))

    def _note_facts(self, step: int, facts: Any) -> None:
        for name, value in facts.items():
            if name in _NOT_SHOWN or self._last_facts.get(name, self) == value:
                continue
            self._last_facts[name] = value
            if len(self.facts) < MOST_FACTS:
                self.facts.append((step, name, _shortened(value)))

    def _check_steps(self, until: float) -> None:
        following = self.following
        if following is None:
            return
        while self._clock() < until:
            before = following.last_step, following.has_ended
            following.advance(most_steps=_STEPS_AT_A_TIME)
            if (following.last_step, following.has_ended) == before:
                return
            self.version += 1

    def _count_through(self, step: int) -> int:
        return int(np.searchsorted(self.steps, step, side="right")) if self.steps else 0


def is_of_observations(name: str) -> bool:
    """Return whether a tensor holds observations of others."""
    return name.startswith(OBSERVATIONS)


def _shortened(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_FACT else f"{text[: _LONGEST_FACT - 1]}…"
