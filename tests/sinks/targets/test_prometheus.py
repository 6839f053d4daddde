"""The text for Prometheus: last values, and what is open."""

from __future__ import annotations

import pytest

from smdebug.exceptions import SinkRefused
from smdebug.sinks.records import NumbersRecord, RunRecord
from smdebug.sinks.targets.prometheus import PrometheusSink
from tests.sinks.made import DIAGNOSIS, NUMBERS, OPENED, RESOLVED, RUN


def sent(*records, run=RUN) -> list[str]:
    sink = PrometheusSink("unused", whole=True)
    sink.begin(run)
    sink.send(records)
    return sink.text().splitlines()


def test_the_last_value_of_each_number_is_kept_by_mode():
    later = NumbersRecord(50, "training", 1700000001.0, {"loss": 0.125})
    validation = NumbersRecord(50, "validation", None, {"loss": 0.5})
    lines = sent(NUMBERS, later, validation)
    assert 'smdebug_step{run="run-a",mode="training"} 50.0' in lines
    assert [line for line in lines if 'name="loss"' in line] == [
        'smdebug_value{run="run-a",mode="training",name="loss"} 0.125',
        'smdebug_value{run="run-a",mode="validation",name="loss"} 0.5',
    ]
    assert 'smdebug_value{run="run-a",mode="training",name="worst"} NaN' in lines
    assert 'smdebug_value{run="run-a",mode="training",name="most"} +Inf' in lines
    tensor = 'smdebug_tensor{run="run-a",mode="training",tensor="gradient/fc.weight",statistic="rms"} 0.5'
    assert tensor in lines
    assert 'smdebug_saved_timestamp_seconds{run="run-a"} 1700000001.0' in lines


def test_a_problem_is_1_while_it_is_open_and_0_afterwards():
    labels = 'run="run-a",cause="vanishing",title="Gradients vanish",since="40"'
    assert 'smdebug_problems_open{run="run-a"} 0.0' in sent()
    assert f"smdebug_problem_open{{{labels}}} 1.0" in sent(OPENED)
    assert 'smdebug_problems_open{run="run-a"} 1.0' in sent(OPENED)
    after = sent(OPENED, RESOLVED, DIAGNOSIS)
    assert f"smdebug_problem_open{{{labels}}} 0.0" in after
    assert 'smdebug_problems_open{run="run-a"} 0.0' in after
    assert 'smdebug_rules_passed{run="run-a"} 1.0' in after
    assert 'smdebug_rules_failed{run="run-a"} 1.0' in after


def test_names_with_quotes_and_line_ends_stay_on_their_line():
    (line,) = [
        line
        for line in sent(
            NumbersRecord(0, "training", None, {'a"b\\c\nd': 1.0}), run=RunRecord('x"}', "/x", (), "1")
        )
        if line.startswith("smdebug_value")
    ]
    assert line == r'smdebug_value{run="x\"}",mode="training",name="a\"b\\c\nd"} 1.0'


def test_the_file_is_there_from_the_beginning_and_replaced_as_a_whole(tmp_path):
    file = tmp_path / "text" / "run.prom"
    sink = PrometheusSink(str(file))
    sink.begin(RUN)
    assert "smdebug_problems_open" in file.read_text()
    sink.send([NUMBERS])
    assert 'name="loss"' in file.read_text()
    sink.end()
    assert [path.name for path in file.parent.iterdir()] == ["run.prom"]


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(SinkRefused, match="it cannot be written: Is a directory"):
        PrometheusSink(str(tmp_path)).begin(RUN)
