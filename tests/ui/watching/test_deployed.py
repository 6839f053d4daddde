"""The runs of a deployed debugger: its table, its rules, and a caller who may not read all of it."""

from __future__ import annotations

import json

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from functions.adapters.dynamodb import DynamoItems
from smdebug.service import connect
from smdebug.service.records import RunState, RunVerdict
from tests.service.stocked import BEGUN, LOSS, VANISHING, Stock, failing, rule
from tests.service.test_client_on_aws import TABLE
from tests.ui.browsing import LOADED, accessible, until
from tests.ui.buckets import an_s3, copy_run
from tests.ui.written_runs import WrittenRun

RUN, DONE = "runs/exp/a", "runs/exp/b"


class Deployment:
    """A table and a bucket with a run that trains and one that has finished."""

    def __init__(self, s3, folder):
        boto3.client("dynamodb").create_table(**TABLE["Properties"])
        self.s3, self.folder = s3, folder
        self.stock = Stock(DynamoItems("smdebug-steps", boto3.client("dynamodb")))
        self.debugger = connect(table="smdebug-steps", bucket="runs")
        self.run = WrittenRun(folder / "a").write(4)
        WrittenRun(folder / "b").write(3, end=True)
        for name in ("a", "b"):
            copy_run(s3, folder / name, "runs", f"exp/{name}")
            self.stock.begin(f"runs/exp/{name}", first_seen=BEGUN)
            for step in range(4 if name == "a" else 3):
                self.stock.wrote(step, run=f"runs/exp/{name}")
        self.stock.group(failing(VANISHING, 2), rule(LOSS, last_good=3), run=RUN, cursor=3)
        self.stock.group(rule(VANISHING, last_good=2), rule(LOSS), run=DONE, cursor=2)
        verdict = RunVerdict.NO_ISSUES_FOUND.value
        self.stock.become(RunState.FINISHED, DONE, verdict=verdict, ended_at=BEGUN + 9)
        watched = next(each for each in self.stock.index.watched_runs() if each.run == DONE)
        assert self.stock.index.unlist_run(watched)


@pytest.fixture
def deployment(tmp_path):
    with an_s3() as s3:
        yield Deployment(s3, tmp_path)


@pytest.fixture
def page(deployment, serve):
    client = serve(debugger=deployment.debugger)
    board = client.server.board
    while board.work([]) == 0:
        pass
    return client


def rows(client):
    return {row["name"]: row for row in client.get("/api/runs")["runs"]}


def test_the_list_has_state_verdict_progress_and_cost_of_the_table(page):
    found = rows(page)
    training, finished = found["exp/a"], found["exp/b"]
    assert training["state"] == "training"
    assert training["deployed"]["state"] == "Running"
    assert training["deployed"]["rules"] == {"IssuesFound": 1, "InProgress": 1}
    assert training["deployed"]["evaluated_through"] == 3
    assert training["issues"] == 1
    assert training["since"] == 2
    assert training["issue"] == "fc (VanishingGradient), since step 2"
    assert finished["state"] == "ended"
    assert finished["deployed"]["verdict"] == "NoIssuesFound"
    assert finished["issues"] == 0
    assert training["curve"]
    assert training["cost"] > finished["cost"] > 0
    assert "evaluation of 4 steps" in training["cost_title"]


def test_a_run_has_the_status_of_each_rule(page):
    run = page.get(f"/api/run/{page.run('exp/a')}")
    first, second = run["deployed"]["statuses"]
    assert (first["name"], first["status"], first["issue_since"]) == ("fc", "IssuesFound", 2)
    assert first["parameters"] == {"threshold": "1e-6"}
    assert (second["rule"], second["status"]) == ("LossNotDecreasing", "InProgress")
    assert [rule["name"] for rule in run["rules"]] == ["fc", "loss"]  # evaluated here, too


def test_a_new_step_is_read_once_the_table_has_it(deployment, page):
    board = page.server.board
    run_id = page.run("exp/a")
    board._advance(run_id)
    deployment.run.write(1)
    copy_run(deployment.s3, deployment.folder / "a", "runs", "exp/a")
    board._looked_at.clear()
    board._advance(run_id)
    assert page.get(f"/api/run/{run_id}")["last_step"] == 3  # the files alone are not polled
    deployment.stock.wrote(4, run=RUN)
    board._looked_at.clear()
    before = page.get(f"/api/run/{run_id}")["version"]
    board._advance(run_id)
    after = page.get(f"/api/run/{run_id}")
    assert after["last_step"] == 4
    assert after["version"] > before


def test_rules_are_added_to_those_of_the_stack(deployment, page):
    run_id = page.run("exp/a")
    attached = page.get(f"/api/run/{run_id}/rules")["attached"]
    assert [rule["name"] for rule in attached] == ["fc", "loss"]
    status, answer = page.post(f"/api/run/{run_id}/attach", {"rules": ["ExplodingTensor"]})
    assert status == 200
    assert len(answer["attached"]) == 3
    status, answer = page.post(f"/api/run/{run_id}/detach", {"rules": ["fc"]})
    assert answer["attached"][0]["name"] == "loss"
    written = deployment.s3.get_object(Bucket="runs", Key="exp/a/rules.json")["Body"].read()
    assert b"ExplodingTensor" in written


def test_a_stop_and_a_zoom_are_requested_of_a_training_and_refused_for_a_finished_run(deployment, page):
    run_id = page.run("exp/a")
    assert page.post(f"/api/run/{run_id}/stop", {"reason": "it diverges"})[0] == 200
    control = deployment.s3.get_object(Bucket="runs", Key="exp/a/control/stop")["Body"].read()
    assert json.loads(control)["reason"] == "it diverges"
    assert page.post(f"/api/run/{run_id}/zoom", {"tensors": ["weight"], "steps": 3})[0] == 200
    status, answer = page.post(f"/api/run/{page.run('exp/b')}/stop", {})
    assert status == 409
    assert "no training is left to stop" in answer["error"]


def deny(monkeypatch, *operations):
    """Make AWS refuse these operations to the caller."""
    call = BaseClient._make_api_call

    def refusing(self, operation, request):
        if operation in operations:
            response = {
                "Error": {"Code": "AccessDeniedException", "Message": "not authorized"},
                "ResponseMetadata": {"HTTPStatusCode": 403},
            }
            if self.meta.service_model.service_name == "s3":
                response["Error"]["Code"] = "AccessDenied"
            raise ClientError(response, operation)
        return call(self, operation, request)

    monkeypatch.setattr(BaseClient, "_make_api_call", refusing)


def test_a_caller_who_may_not_read_the_table_is_told_the_action(deployment, serve, monkeypatch):
    deny(monkeypatch, "Query", "GetItem")
    answer = serve(debugger=deployment.debugger).get("/api/runs")
    assert answer["runs"] == []
    (error,) = answer["errors"]
    assert "dynamodb:Query" in error
    assert "smdebug-steps" in error


def test_a_caller_who_may_read_the_table_alone_sees_its_verdicts(deployment, serve, monkeypatch):
    deny(monkeypatch, "ListObjectsV2", "GetObject", "HeadObject")
    client = serve(debugger=deployment.debugger)
    board = client.server.board
    while board.work([]) == 0:
        pass
    row = rows(client)["exp/a"]
    assert (row["state"], row["issues"]) == ("training", 1)
    assert "s3:" in row["error"]
    run_id = row["id"]
    board._advance(run_id)
    run = client.get(f"/api/run/{run_id}")
    assert "s3:" in run["error"]
    assert run["deployed"]["statuses"][0]["status"] == "IssuesFound"


def test_a_caller_who_may_not_write_is_told_the_action(page, monkeypatch):
    run_id = page.run("exp/a")
    deny(monkeypatch, "PutObject")
    for action, body in (("stop", {}), ("attach", {"rules": ["ExplodingTensor"]})):
        status, answer = page.post(f"/api/run/{run_id}/{action}", body)
        assert status == 409
        assert "s3:PutObject" in answer["error"]


def test_finished_runs_are_read_once(deployment, page, monkeypatch):
    deployed = page.server.board.deployed
    asked = []
    snapshots = deployment.debugger.snapshots
    monkeypatch.setattr(
        deployment.debugger, "snapshots", lambda names: (asked.append(names), snapshots(names))[1]
    )
    assert [run.name for run in deployed.find()] == ["exp/a", "exp/b"]
    assert asked == [[RUN]]


@pytest.mark.browser
def test_the_page_of_a_run_lists_the_statuses_of_its_rules(page, chromium):
    run_id = rows(page)["exp/b"]["id"]
    chromium.renew(f"{page.server.address}#/run/{run_id}")
    until(chromium, LOADED)
    for words in ("Deployed debugger", "evaluated through step 2", "no issues found"):
        until(chromium, f"document.body.innerText.includes({words!r})")
    assert accessible(chromium) == []
    assert chromium.complaints == []
