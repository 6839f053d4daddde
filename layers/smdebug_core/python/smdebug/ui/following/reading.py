"""A run that is read step by step: its series, statistics, facts and problems so far.

    reader = RunReader(path)
    while reader.advance(seconds=0.05):
        ...

Each file is read once; in a folder, files that the rules reach later than the charts are read for them
again, so that the charts need not wait. One thread advances; others may hold `lock` and query.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from smdebug.diagnosis import Issue
from smdebug.exceptions import SMDebugError
from smdebug.plain_text import escaped
from smdebug.runs.evaluation.following import Following
from smdebug.runs.verdicts import of_result
from smdebug.secrets.texts import redacted
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial
from smdebug.ui.answer_types import VerdictAnswer
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.matrices import Statistics
from smdebug.ui.drawing.pyramid import Pyramid
from smdebug.ui.following.kept_runs import Kept
from smdebug.ui.following.reading_ahead import ALIGNED, ReadingAhead
from smdebug.ui.following.reopening import Opening, attempt_of
from smdebug.ui.following.unread_parts import UnreadParts
from smdebug.ui.following.verdict_answers import NO_VERDICT, verdict_answer

_STEPS_AT_A_TIME = 16


class RunReader:
    """What was read of a run so far."""

    def __init__(
        self,
        path: str,
        rules: Sequence[RequestedRule] | None = None,
        *,
        trial: Trial | None = None,
        kept: Kept | None = None,
        clock: Callable[[], float] = time.perf_counter,
        is_alone: bool = False,
    ):
        self.path = path
        self.lock = threading.RLock()
        self.version = 0
        """A number that changes with what was read."""
        self.error = ""
        self.trial: Trial | None = None
        self.charts = Charts()
        self.steps: list[int] = []
        self.has_ended = False
        self.notes: dict[str, str] = {}
        """Further notes for the reader of the page, by subject."""
        self.following: Following | None = None
        self._verdict_holds = True
        """Whether the run's rules are those of the verdict that was kept."""
        self._opening = Opening(path, trial, kept)
        self._ahead = ReadingAhead(path, is_allowed=not is_alone)
        self._rules = rules
        self._clock = clock
        self.unread = UnreadParts("" if kept is None else kept.missing)
        self.read_through = -1
        """The last step that the charts have."""
        self.attempt: Any = None
        self.kept = kept
        """What an earlier process has read; None once the rules are evaluated again."""
        if kept is not None:
            self._take_over(kept)

    # What was read

    @property
    def steps_read(self) -> int:
        """How many steps were read for the charts."""
        return self.read_through + 1 if not self.steps else self._count_through(self.read_through)

    @property
    def steps_checked(self) -> int:
        """How many steps the rules have evaluated."""
        following = self.following
        if following is None:
            return 0 if self.kept is None else self.kept.checked
        return self._count_through(following.last_step)

    @property
    def is_behind(self) -> bool:
        """Whether saved steps wait to be read or to be checked."""
        if self.trial is None:
            return self._opening.is_under_way
        if self.steps_read < len(self.steps) or self.is_listing:
            return True
        following = self.following
        if following is None:
            return False
        ending = self.has_ended and not following.has_ended
        return ending or self.steps_checked < len(self.steps)

    @property
    def is_listing(self) -> bool:
        """Whether index files wait to be read: there are more steps than are known."""
        return self.trial is not None and self.trial.has_more_files

    @property
    def issues(self) -> tuple[Issue, ...]:
        if self.following is None:
            return () if self.kept is None else self.kept.issues
        return self.following.issues

    @property
    def verdict(self) -> VerdictAnswer:
        """The results of the rules and their log, as they are now or as they were kept."""
        if self.following is None:
            return NO_VERDICT if self.kept is None else self.kept.verdict
        verdicts = [of_result(result) for result in self.following.results]
        has_checked = self.steps_checked > 0
        return verdict_answer(verdicts, has_checked=has_checked)

    @property
    def is_known(self) -> bool:
        """Whether there is anything to show: the run is open, or an earlier process has read it."""
        return self.trial is not None or self.kept is not None

    @property
    def series(self) -> dict[str, Pyramid]:
        return self.charts.series

    @property
    def kinds(self) -> dict[str, Statistics]:
        return self.charts.kinds

    @property
    def missing(self) -> str:
        return self.unread.words

    @property
    def damaged(self) -> dict[str, str]:
        return self.charts.damaged

    @property
    def nbytes(self) -> int:
        """About how much memory the charts take."""
        return self.charts.nbytes

    @property
    def is_read(self) -> bool:
        """Whether the run has ended, and the charts have all of it."""
        is_known = self.has_ended and bool(self.steps) and not self.is_listing
        return is_known and self.steps_read >= len(self.steps) and not self.error

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended, and all of it was read and checked."""
        is_behind = self.trial is not None and self.is_behind
        return self.is_read and self.steps_checked >= len(self.steps) and not is_behind

    def order(self, kind: str) -> list[int]:
        """Return the places of a kind's tensors in the order of the network."""
        return self.charts.order(kind, self.trial, self.read_through)

    @property
    def workers(self) -> list[str]:
        if self.trial is None:
            return [] if self.kept is None else self.kept.workers
        return [escaped(name) for name in self.trial.workers()]

    def note(self, subject: str, text: str) -> None:
        """Show a sentence on the page of the run; "" removes the one about that subject."""
        text = escaped(redacted(" ".join(text.split())))
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
            if self.trial is None and not self._open():
                self._set_error("")
                return True
            if not self.is_listing:
                self._ahead.wait(seconds)
            with self.lock:
                self._advance(self._clock() + seconds)
                self._set_error("")
        except SMDebugError as error:  # no storage now, or a damaged or missing run
            self._set_error(str(error))
            return False
        return self.is_behind

    def _set_error(self, text: str) -> None:
        text = escaped(redacted(" ".join(text.split())))
        if text != self.error:
            self.error = text
            self.version += 1

    def _open(self) -> bool:
        """Open the run; return whether it is open, which a long one that was kept is after several calls."""
        opened = self._opening.advance()  # without the lock, as storage may take its time
        if opened is None:
            return False
        with self.lock:
            self.trial, kept = opened.trial, self.kept
            if kept is not None and not opened.is_kept:
                self._forget()
            elif opened.went_on:
                self.has_ended = False
            is_same = opened.is_kept and not opened.went_on and opened.trial.loaded_all_steps
            if is_same and kept is not None and kept.is_complete and self._verdict_holds:
                self.version += 1
            else:
                self.use_rules()
        return True

    def _take_over(self, kept: Kept) -> None:
        self.steps, self.read_through = kept.steps, kept.read_through
        self.has_ended = kept.has_ended
        self.attempt = tuple(kept.attempt)
        self.charts = kept.charts()
        self.version += 1

    def _forget(self) -> None:
        """Begin again: another run, or another attempt, has replaced what was read."""
        self.kept = None
        self._ahead.end()
        self.charts = Charts()
        self.steps, self.read_through, self.has_ended = [], -1, False

    def use_rules(self) -> None:
        """Evaluate the run's rules from the first step on, as they are now."""
        with self.lock:
            if self.trial is None:
                self._verdict_holds = False
                return
            self.charts.damaged.pop("rules", None)
            self.kept = None
            try:
                self.following = Following(self.trial, self._rules)
            except SMDebugError as error:  # a damaged rules.json: the charts can be shown
                self.following = None
                self.charts.damaged["rules"] = str(error)
            self.version += 1

    def _advance(self, until: float) -> None:
        trial = self.trial
        assert trial is not None
        known, had_ended = len(self.steps), self.has_ended
        if not self.has_ended:
            with trial.refreshing(True):
                self.steps = trial.steps()
                if trial.loaded_all_steps:  # others may have come since the question
                    self.steps = trial.steps()
                    self.has_ended = True
        self._notice_another_attempt(trial)
        if len(self.steps) != known or self.has_ended != had_ended:
            self.version += 1
        self._read_steps(trial, until)
        if self.steps_read >= len(self.steps) and not trial.has_more_files:
            self._check_steps(until)
        self.version += self.unread.look(trial, self.steps, self.has_ended, self.steps_checked)

    def _notice_another_attempt(self, trial: Trial) -> None:
        """Read everything again if the training was started again, which may have replaced any step."""
        attempt = attempt_of(trial)
        if attempt == self.attempt:
            return
        if self.attempt is not None:
            steps, ended = self.steps, self.has_ended
            self._forget()
            self.steps, self.has_ended = steps, ended
            self.use_rules()
            self.note("attempt", "The training was started again: this is the newest attempt.")
        self.attempt = attempt

    def _read_steps(self, trial: Trial, until: float) -> None:
        before, ahead = self.read_through, self._ahead
        self.read_through, is_read_ahead = ahead.read(
            trial, self.steps, before, self.charts, is_all=not trial.has_more_files
        )
        if self.read_through != before:
            self.version += 1
        at = self._count_through(self.read_through)
        while at < len(self.steps) and not is_read_ahead:
            for step in self.steps[at : at + _STEPS_AT_A_TIME - at % _STEPS_AT_A_TIME]:
                self.charts.read(trial, step)
                self.read_through = step
                at += 1
            self.charts.settle()
            self.version += 1
            is_read_ahead = ahead.is_ready and at % ALIGNED == 0
            if trial.storage.concurrency > 1:  # a second request for the same bytes costs more
                self._check_what_was_read()
            if self._clock() >= until and not ahead.is_ready:
                break

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

    def _check_what_was_read(self) -> None:
        """Let the rules catch up with the charts."""
        following = self.following
        while following is not None and self.steps_checked < self.steps_read:
            most = min(_STEPS_AT_A_TIME, self.steps_read - self.steps_checked)
            before = following.last_step
            following.advance(most_steps=most)
            if following.last_step == before:
                return

    def _count_through(self, step: int) -> int:
        return bisect_right(self.steps, step)
