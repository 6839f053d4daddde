"""An alert about a problem is sent once to each place of a tool, by whatever process."""

from dataclasses import replace

import pytest

from smdebug.files.names import SENT_ALERTS
from smdebug.sinks.records import IssueRecord
from smdebug.sinks.sent_alerts import SentAlerts
from tests.sinks.made import ISSUE, OPENED


def test_an_alert_is_known_to_later_processes_of_the_same_place_alone(tmp_path):
    run = str(tmp_path)
    assert not SentAlerts(run, "W&B a").has(OPENED)
    SentAlerts(run, "W&B a").add(OPENED)
    SentAlerts(run, "trackio").add(OPENED)
    assert SentAlerts(run, "W&B a").has(OPENED)
    assert SentAlerts(run, "trackio").has(OPENED)
    assert not SentAlerts(run, "W&B b").has(OPENED)


def test_a_problem_that_comes_back_at_a_later_step_is_another_one(tmp_path):
    alerts = SentAlerts(str(tmp_path), "W&B")
    alerts.add(OPENED)
    assert not alerts.has(IssueRecord("opened", 90, replace(ISSUE, since=90)))
    assert not alerts.has(IssueRecord("opened", 40, replace(ISSUE, cause="exploding")))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"W&B": 3}', b"\xff", b'{"W&B": {"a": 1}}'])
def test_a_damaged_file_is_none_and_is_written_anew(tmp_path, content):
    (tmp_path / SENT_ALERTS).write_bytes(content)
    alerts = SentAlerts(str(tmp_path), "W&B")
    assert not alerts.has(OPENED)
    alerts.add(OPENED)
    assert alerts.has(OPENED)
    assert alerts.problem == ""


def test_a_run_that_cannot_be_written_to_is_said_and_nothing_is_raised(tmp_path):
    (tmp_path / "file").write_text("")
    alerts = SentAlerts(str(tmp_path / "file"), "W&B")
    alerts.add(OPENED)
    assert "may be sent again" in alerts.problem
