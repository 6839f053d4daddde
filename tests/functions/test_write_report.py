"""The report of a finished run: its contents, and its limits of time and memory."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from functions import wiring
from functions.environment import IngestEnvironment
from functions.followup.run_report import KEY
from functions.followup.run_report import write_report as written
from functions.handlers import evaluate, finish_run, ingest, write_report
from functions.lifecycle.beginning import begun
from smdebug.backtesting.bundles import bundled_run
from smdebug.storage import open_storage
from tests.functions.saver import FAILING, HEALTHY, Saver
from tests.functions.test_handlers import notifications_of
from tests.reports.reading import answer_in
from tests.support.looking import each

RUN = "runs/mnist"


@dataclass
class Context:
    milliseconds: float = 300_000
    memory_limit_in_mb: str = "1024"  # Lambda gives it as text

    def get_remaining_time_in_millis(self) -> float:
        return self.milliseconds


@pytest.fixture
def event(deployed):
    """A run with a finding in its middle, over, and the event that says so."""
    place = open_storage(f"s3://{RUN}")
    worker = Saver(place).begin()
    for step, tensors in enumerate([HEALTHY, FAILING, HEALTHY]):
        worker.save(step, {**tensors, "gradient/wide": np.ones(1000, np.float32)})
    worker.end()
    ingest.handler(notifications_of(deployed.s3, "mnist"), None)
    reminder = {
        "messageId": "r",
        "body": json.dumps({"finish": RUN}),
        "attributes": {"ApproximateReceiveCount": "1"},
    }
    ingest.handler({"Records": [reminder]}, None)
    evaluate.handler({"run": RUN, "step": 0, "group": "builtin"}, None)
    reply = finish_run.handler({"run": RUN}, None)
    (detail,) = [
        candidate
        for candidate in (json.loads(entry["Detail"]) for entry in reply["outbox"])
        if candidate.get("state") == "Finished"
    ]
    return {"detail-type": "Run State Change", "detail": detail}


def page() -> str:
    return open_storage(f"s3://{RUN}").read(KEY).decode()


def kinds() -> list[str]:
    """Return the kinds of tensors whose statistics are on the page."""
    return [kind["name"] for kind in answer_in(page())["kinds"]]


def test_it_shows_the_findings_and_draws_the_tensors(event):
    write_report.handler(event, Context())
    assert "ExplodingTensor detected a problem at step 1." in page()
    assert kinds()
    assert "Nothing of this run is drawn" not in page()


def test_a_repeated_event_writes_one_page(event, deployed):
    for _ in range(2):
        write_report.handler(event, Context())
    found = deployed.s3.list_objects_v2(Bucket="runs", Prefix="mnist/report/")["Contents"]
    assert [listed["Key"] for listed in found] == [f"mnist/{KEY}"]


def test_without_time_for_the_tensors_it_is_the_verdicts(event):
    write_report.handler(event, Context(milliseconds=1000))
    assert "ExplodingTensor detected a problem at step 1." in page()
    assert "there was no time to read its tensors" in page()
    assert not kinds()


def test_without_memory_for_the_tensors_it_is_the_verdicts(event):
    storage = open_storage(f"s3://{RUN}")
    enough = (300 << 20) + 4 * 4 * 5000
    for memory, is_drawn in ((enough, True), (enough - 4 * 4 * 2000, False)):
        written(wiring.items(), storage, RUN, has_time=lambda: True, memory=memory)
        assert ("its tensors are too large" not in page()) is is_drawn


def test_of_a_run_that_was_forgotten_nothing_is_written(deployed):
    write_report.handler({"detail": {"run": "runs/gone"}}, Context())
    assert "Contents" not in deployed.s3.list_objects_v2(Bucket="runs", Prefix="gone")


def test_a_place_that_is_refused_as_a_run_gets_no_report(deployed):
    world = wiring.world(IngestEnvironment)
    assert begun(world, "runs") is None
    opened = []
    key = written(wiring.items(), opened, "runs", has_time=lambda: True, memory=1 << 30)
    assert key is None
    assert opened == []


BUNDLES = "s3://runs/backtests/bundles"


def test_in_a_stack_with_backtests_the_run_is_bundled_with_what_was_read(event, deployed, monkeypatch):
    monkeypatch.setattr(wiring, "bundles", lambda: BUNDLES)
    monkeypatch.setattr(bundled_run, "WORTH_WRITING", 1)
    run = open_storage(f"s3://{RUN}")
    write_report.handler(event, Context())
    assert kinds()
    through = bundled_run.BundledRun(run, open_storage(BUNDLES), keeps=False)
    for folder in ("collections/", "index/", "events/"):
        for key in each(run.list(folder)):
            deployed.s3.delete_object(Bucket="runs", Key=f"mnist/{key}")
            assert through.read(key)


def test_a_bundle_that_cannot_be_written_is_logged_and_the_report_is_there(
    event, deployed, monkeypatch, capsys
):
    monkeypatch.setattr(wiring, "bundles", lambda: "s3://no-such-bucket/bundles")
    monkeypatch.setattr(bundled_run, "WORTH_WRITING", 1)
    write_report.handler(event, Context())
    assert kinds()
    assert "no-such-bucket" in capsys.readouterr().out
