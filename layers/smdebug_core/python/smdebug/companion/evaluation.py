"""What the process beside a training does: evaluate new steps, report problems, request a stop."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from smdebug.companion.alerts import Alerts
from smdebug.companion.hanging import PATIENCE, HangWatch
from smdebug.companion.pipe import TrainingPipe
from smdebug.diagnosis.wording import as_text, headline
from smdebug.exceptions import SMDebugError
from smdebug.files.names import STOP_KEY
from smdebug.plain_text import escaped
from smdebug.rules.loading import rules_in_file
from smdebug.runs.evaluation.following import ChangeKind, IssueChange
from smdebug.runs.live_run import LiveRun
from smdebug.secrets.texts import redacted
from smdebug.service.records import STOP_TRAINING
from smdebug.storage import open_storage
from smdebug.storage.intervals import IN_BUCKET, IN_FOLDER

if TYPE_CHECKING:
    from smdebug.companion.sinks import SinkFeed


class Companion:
    """Follows one run. What it reports goes to stderr, and once per problem to the alerts."""

    def __init__(
        self,
        place: str,
        alerts: Sequence[str] = (),
        rule_file: str | None = None,
        sinks: Sequence[Mapping[str, str]] = (),
    ):
        self._storage = open_storage(place)
        self._rule_file = _loadable(rule_file)
        self._run = LiveRun(place, rule_file=self._rule_file)
        self._alerts = Alerts(alerts, report)
        self._feed = _feed_of(sinks)
        self._is_stop_requested = False
        self._reported_error = ""
        self._watch: HangWatch | None = None
        self._interval = IN_BUCKET if self._storage.concurrency > 1 else IN_FOLDER

    def follow(self, pipe: TrainingPipe, patience: float = PATIENCE) -> None:
        """Evaluate what is new until the training has ended, and then the rest.

        If that makes no progress for so many seconds after the end, the process ends.
        """
        self._watch = HangWatch(pipe, self._give_up, patience)
        while pipe.is_open_after(0 if self._run.is_behind else self._interval):
            self._advance()
        self._advance()  # a training writes its last files before it closes the pipe
        while self._run.is_behind:
            self._advance()
        self._summarise()
        if self._feed is not None:
            self._feed.finish(self._run.following)

    def _advance(self) -> None:
        changes = self._run.advance()
        if self._watch is not None:
            self._watch.note_progress()
        self._report_error()
        if self._feed is not None:
            self._feed.advance(self._run.following, changes)
        for change in changes:
            if change.kind is ChangeKind.OPENED:
                self._report(change)
            else:
                report(f"smdebug: resolved at step {change.step:,}: {headline(change.issue)}")

    def _report_error(self) -> None:
        """Report once why the run cannot be evaluated, and again only if the reason is another."""
        error = self._run.error
        if error and error != self._reported_error:
            self._reported_error = error
            report(f"smdebug: {self._run.path} cannot be evaluated now: {error}")

    def _report(self, change: IssueChange) -> None:
        lines = as_text(change.issue)
        report(f"smdebug: {self._run.path}: {lines[0]}", *lines[1:])
        self._alerts.send(f"{self._run.path}: {lines[0]}", "\n".join(lines[1:]))
        if self._wants_stop(change) and not self._is_stop_requested:
            self._is_stop_requested = True
            self._request_stop(headline(change.issue))

    def _wants_stop(self, change: IssueChange) -> bool:
        following = self._run.following
        return following is not None and any(
            action.get("name") == STOP_TRAINING
            for rule in following.rules
            if rule.name in change.issue.all_rules
            for action in rule.actions
        )

    def _request_stop(self, reason: str) -> None:
        try:
            self._storage.write(STOP_KEY, json.dumps({"reason": redacted(reason)}).encode())
            report(f"smdebug: stop requested: {reason}")
        except SMDebugError as error:
            report(f"smdebug: the stop could not be requested: {error}")

    def _give_up(self, place: str) -> None:
        report(
            f"smdebug: {self._run.path}: the evaluation makes no progress, at {place}, and is given up. "
            f"Again: {self._command()}"
        )
        os._exit(1)  # the thread that hangs cannot be ended

    def _summarise(self) -> None:
        following = self._run.following
        if following is None:
            return
        for name, error in following.failed.items():
            report(f"smdebug: {name} failed: {error}")
        report(
            f"smdebug: {self._run.path}: {self._run.outcome} in {self._run.steps_saved:,} saved steps. "
            f"Again: {self._command()}"
        )

    def _command(self) -> str:
        """Return the command that evaluates the run again."""
        words = ["smdebug", "evaluate", self._run.path]
        if self._rule_file is not None:
            words += ["--rule-file", self._rule_file]
        return shlex.join(words)


def _feed_of(sinks: Sequence[Mapping[str, str]]) -> SinkFeed | None:
    if not sinks:
        return None
    from smdebug.companion.sinks import SinkFeed  # most trainings have no sinks, and start faster without

    return SinkFeed(sinks, report)


def _loadable(file: str | None) -> str | None:
    """Return the file; None if its rules cannot be loaded, which is reported."""
    try:
        if file is not None:
            rules_in_file(file)
        return file
    except SMDebugError as error:
        report(f"smdebug: {error}. The other rules are evaluated without it.")
        return None


def report(*lines: str) -> None:
    """Print lines on stderr, where the training's own output stays readable; without secrets."""
    shown = (escaped(redacted(line)) for line in lines)
    print("\n".join(shown), file=sys.stderr, flush=True)
