"""The sinks of a run that is followed: its new numbers and problems are delivered beside the evaluation."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.export.run_numbers import RunNumbers
from smdebug.export.run_records import diagnosis_record, issue_records, run_record
from smdebug.runs.evaluation.following import Following, IssueChange
from smdebug.secrets.texts import redacted_line
from smdebug.sinks.delivery import Delivery
from smdebug.sinks.pipe import PipeSink
from smdebug.sinks.records import Record, ReportRecord
from smdebug.sinks.sink import KINDS, RunSink, SinkChoice
from smdebug.sinks.targets import sink_for

LAST_SECONDS = 60.0
"""How long the tools may take, all together, for what is left at the end."""
_KEEP_FILES = ("mlflow", "wandb", "trackio")


class SinkFeed:
    """Delivers a run to its sinks. Nothing here waits for a tool, except at the end."""

    def __init__(self, settings: Sequence[Mapping[str, str]], report: Callable[[str], object]):
        self._settings = list(settings)
        self._report = report
        self._deliveries: list[Delivery] = []
        self._numbers: RunNumbers | None = None
        self._reported_error = ""

    def advance(self, following: Following | None, changes: Sequence[IssueChange]) -> None:
        """Deliver what is new of the run."""
        if following is None or not self._settings:
            return
        if self._numbers is None:
            self._numbers = RunNumbers(following.trial, reads_values=False)
            self._begin(following)
        records: list[Record] = []
        try:
            records += self._numbers.new(following.last_step)
        except SMDebugError as error:  # storage that cannot be reached now
            self._say(error)
        self._put([*records, *issue_records(changes)])

    def finish(self, following: Following | None, seconds: float = LAST_SECONDS) -> None:
        """Deliver the rest, the diagnosis and the report; say what did not arrive."""
        if following is None or self._numbers is None:
            return
        self._put([*self._numbers.rest(), diagnosis_record(following)])
        keeping = [
            delivery
            for setting, delivery in zip(self._settings, self._deliveries, strict=True)
            if setting["name"] in _KEEP_FILES
        ]
        report = self._report_of(following) if keeping else []
        for delivery in keeping:  # what no other tool takes cannot be lost on its way there
            delivery.put(report)
        for delivery in self._deliveries:  # all at once: no tool waits for another one
            delivery.close(is_complete=following.trial.loaded_all_steps)
        until = time.monotonic() + seconds
        for delivery in self._deliveries:
            delivery.finish(max(0.0, until - time.monotonic()), is_complete=following.trial.loaded_all_steps)

    def _begin(self, following: Following) -> None:
        run = run_record(following.trial)
        for setting in self._settings:
            choice = SinkChoice(setting["name"], setting.get("target", ""))
            again = choice.export_command(run.path, setting.get("run_id", ""))
            self._deliveries.append(Delivery(_sink_of(setting), run, self._report, again=again))

    def _put(self, records: Sequence[Record]) -> None:
        if records:
            for delivery in self._deliveries:
                delivery.put(records)

    def _report_of(self, following: Following) -> list[Record]:
        from smdebug.reports.writing import page_of_results

        try:
            return [ReportRecord(page_of_results(following.trial, following.results))]
        except Exception as error:  # noqa: BLE001 - the sinks get the rest all the same
            self._say(error)
            return []

    def _say(self, error: Exception) -> None:
        text = redacted_line(error)
        if text != self._reported_error:
            self._reported_error = text
            self._report(f"smdebug: the sinks do not get everything now: {text}")


def _sink_of(setting: Mapping[str, str]) -> RunSink:
    name = setting["name"]
    if "relayed" in setting:
        return PipeSink(os.fdopen(os.dup(sys.stdout.fileno()), "wb"), KINDS[name].tool)
    options: dict[str, Any] = {"run_id": setting["run_id"]} if "run_id" in setting else {}
    return sink_for(SinkChoice(name, setting.get("target", "")), **options)
