"""Records are values that survive their line of JSON, NaN and infinity included."""

from __future__ import annotations

import json
import math

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.sinks.records import DiagnosisRecord, NumbersRecord, as_line, from_line
from tests.sinks.made import DIAGNOSIS, ISSUE, NUMBERS, OPENED, REPORT, RESOLVED, RUN


@pytest.mark.parametrize("record", [RUN, OPENED, RESOLVED, DIAGNOSIS, REPORT], ids=lambda r: type(r).__name__)
def test_a_record_survives_its_line(record):
    assert from_line(as_line(record)) == record


def test_numbers_that_json_lacks_survive_as_text():
    line = as_line(NUMBERS)
    assert json.loads(line, parse_constant=pytest.fail)["values"] == {
        "loss": 0.25,
        "worst": "NaN",
        "most": "Infinity",
    }
    read = from_line(line)
    assert isinstance(read, NumbersRecord)
    assert math.isnan(read.values["worst"])
    assert read.values["most"] == math.inf
    assert (read.step, read.mode, read.time, read.statistics) == (
        40,
        "training",
        1700000000.5,
        NUMBERS.statistics,
    )


@pytest.mark.parametrize(
    "line", ["", "{}", "[1]", "null", '{"record":"other"}', '{"record":"numbers"}', b"\xff"]
)
def test_another_line_is_no_record(line):
    with pytest.raises(SMDebugValueError, match="not a record"):
        from_line(line)


def test_a_problem_has_one_identity_and_says_when_it_was_resolved():
    assert OPENED.key == RESOLVED.key == "vanishing"
    assert OPENED.title == "Gradients vanish, since step 40"
    assert RESOLVED.title == "Resolved at step 80: Gradients vanish, since step 40"
    assert OPENED.first_advice == "Add a residual connection"


def test_the_summary_never_calls_an_unchecked_run_fine():
    assert "1 problem" in DIAGNOSIS.summary
    assert DiagnosisRecord(9, passed=("A", "B")).summary == "No problem detected: 2 rules passed."
    assert DiagnosisRecord(9, not_checked=("A",)).summary == "Nothing was checked."
    assert DiagnosisRecord(9, (ISSUE,), passed=("A",)).summary.startswith("1 problem")
