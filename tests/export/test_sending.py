"""A saved run sent to a sink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from smdebug.exceptions import SinkUnavailable, SMDebugValueError
from smdebug.export.selection import Selection
from smdebug.export.sending import send_run
from smdebug.sinks.records import DiagnosisRecord, IssueRecord, NumbersRecord, Record, ReportRecord, RunRecord
from tests.sinks.made import failing_run


class Kept:
    """A sink that keeps what it gets."""

    place = "kept"

    def __init__(self, error: Exception | None = None):
        self.notes: list[str] = []
        self.runs: list[RunRecord] = []
        self.received: list[Record] = []
        self.ends: list[bool] = []
        self._error = error

    def begin(self, run: RunRecord) -> None:
        self.runs.append(run)

    def send(self, records: Sequence[Record]) -> None:
        if self._error is not None:
            raise self._error
        self.received += records

    def end(self, *, is_complete: bool = True) -> None:
        self.ends.append(is_complete)

    def of(self, kind: type) -> list:
        return [record for record in self.received if isinstance(record, kind)]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return failing_run(tmp_path_factory.mktemp("sending") / "run")


def test_the_problem_the_diagnosis_and_the_report_follow_the_numbers(run):
    sink = Kept()
    sent = send_run(run, sink)
    assert [record.path for record in sink.runs] == [str(run)]
    assert sink.ends == [True]
    (opened, *others) = sink.of(IssueRecord)
    assert opened.state == "opened"
    assert others == []
    assert opened.issue.since == opened.step
    assert "NaN" in opened.title
    assert opened.first_advice
    (diagnosis,) = sink.of(DiagnosisRecord)
    assert diagnosis.issues == (opened.issue,)
    assert diagnosis.open == 1
    (report,) = sink.of(ReportRecord)
    assert report.html.startswith("<!")
    assert opened.issue.what in report.html
    assert sent.problems == 1
    assert sent.numbers == sum(len(record) for record in sink.of(NumbersRecord)) > 40
    kinds = [type(record) for record in sink.received]
    assert kinds[-3:] == [IssueRecord, DiagnosisRecord, ReportRecord]
    assert {*kinds[:-3]} == {NumbersRecord}


def test_without_rules_numbers_alone_are_sent(run):
    sink = Kept()
    assert send_run(run, sink, with_rules=False).problems == 0
    assert {type(record) for record in sink.received} == {NumbersRecord}


def test_a_sink_that_fails_is_ended_as_incomplete_and_its_error_reaches_the_caller(run):
    sink = Kept(SinkUnavailable("kept", "it cannot be reached"))
    with pytest.raises(SinkUnavailable, match="kept: it cannot be reached"):
        send_run(run, sink)
    assert sink.ends == [False]


def test_nothing_selected_is_an_error_before_the_tool_is_asked(run):
    sink = Kept()
    with pytest.raises(SMDebugValueError, match="nothing to export"):
        send_run(run, sink, Selection(regex="^nothing$"))
    assert sink.runs == []
