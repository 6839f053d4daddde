"""What a page may do to a run, and what it may not."""

from __future__ import annotations

import json

import pytest

from tests.ui.written_runs import WrittenRun

RULE = """
from smdebug.rules import Finding, Rule

class High(Rule):
    def __init__(self, base_trial, limit=10):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        if step > self.limit:
            self.findings.append(Finding("loss", message=f"step {step}"))
        return bool(self.findings)
"""


@pytest.fixture
def live(serve, tmp_path):
    """A server on a run that trains."""
    WrittenRun(tmp_path / "a").write(5)
    file = tmp_path / "rules.py"
    file.write_text(RULE)
    client = serve(tmp_path / "a", rule_file=str(file))
    client.folder = tmp_path / "a"
    return client


def test_a_zoom_is_requested(live):
    status, answer = live.post(f"/api/run/{live.run()}/zoom", {"tensors": ["weight"], "steps": 3})
    assert status == 200
    assert answer["count"] == 4
    request = json.loads((live.folder / "control" / "zoom").read_text())
    assert (request["tensors"], request["steps"]) == (["weight"], 3)


def test_a_stop_is_requested_and_refused_once_the_run_has_ended(live):
    run_id = live.run()
    assert live.post(f"/api/run/{run_id}/stop", {"reason": "it diverges"})[0] == 200
    assert json.loads((live.folder / "control" / "stop").read_text())["reason"] == "it diverges"
    (live.folder / "training_job_end.ts").touch()
    status, answer = live.post(f"/api/run/{run_id}/stop", {})
    assert status in (400, 409)
    assert "has ended" in answer["error"]


def test_rules_are_attached_changed_and_detached(live):
    run_id = live.run()
    rule = {"name": "v", "rule": "VanishingGradient", "parameters": {"threshold": 1}}
    status, answer = live.post(f"/api/run/{run_id}/attach", {"rules": [rule]})
    assert status == 200
    assert answer["attached"][-1]["name"] == "v"
    live.run()
    names = [rule["name"] for rule in live.get(f"/api/run/{run_id}")["rules"]]
    assert "v" in names
    status, answer = live.post(f"/api/run/{run_id}/detach", {"rules": ["v"]})
    assert "v" not in [rule["name"] for rule in answer["attached"]]
    status, answer = live.post(f"/api/run/{run_id}/detach", {"rules": ["unknown"]})
    assert status in (400, 409)
    assert "unknown" in answer["error"]


def test_a_rule_of_the_named_file_is_evaluated(live):
    run_id = live.run()
    body = {"rule": "High", "parameters": {"limit": 2}}
    status, answer = live.post(f"/api/run/{run_id}/evaluate", body)
    assert status == 200
    assert answer["rule"]["steps_found"] == [3, 4]
    assert answer["log"]["lines"][0]["message"] == "step 3"


@pytest.mark.parametrize(
    ("action", "body", "word"),
    [
        ("zoom", {"tensors": "weight"}, "list"),
        ("zoom", {"tensors": ["("]}, "("),
        ("zoom", {"tensors": ["w"], "steps": "many"}, "whole number"),
        ("stop", {"reason": 7}, "reason"),
        ("attach", {"rules": []}, "list"),
        ("attach", {"rules": ["NoSuchRule!"]}, "NoSuchRule!"),
        ("evaluate", {"rule": 1}, "name"),
        ("evaluate", {"rule": "/etc/passwd"}, "passwd"),
    ],
)
def test_wrong_requests_change_nothing_and_are_explained(live, action, body, word):
    run_id = live.run()
    before = sorted(path.name for path in live.folder.rglob("*"))
    status, answer = live.post(f"/api/run/{run_id}/{action}", body)
    assert status in (400, 409)
    assert word in answer["error"]
    assert sorted(path.name for path in live.folder.rglob("*")) == before


def test_tags_note_and_pin_are_written_and_on_every_page_at_once(live):
    run_id = live.run()
    known = live.get(f"/api/run/{run_id}/annotations")
    body = {"version": known["version"], "tags": ["x"], "note": "a\nb", "pinned": True}
    status, answer = live.post(f"/api/run/{run_id}/annotate", body)
    assert (status, answer["tags"], answer["pinned"]) == (200, ["x"], True)
    shown = {"tags": "x", "note": "a\nb", "pinned": True}
    listed = live.get("/api/runs")["runs"][0]["configuration"]
    assert {name: listed[name] for name in shown} == shown
    opened = live.get(f"/api/run/{run_id}")["configuration"]
    assert {name: opened[name] for name in shown} == shown
    status, answer = live.post(f"/api/run/{run_id}/annotate", {**body, "note": "theirs"})
    assert status == 409
    assert "changed meanwhile" in answer["error"]
    assert json.loads((live.folder / "annotations.json").read_text())["note"] == "a\nb"


@pytest.mark.parametrize(
    ("groups", "shown"), [(["rates"], "rates"), (["rates", "sizes"], "sizes"), (["rates", ""], None)]
)
def test_a_group_is_written_changed_and_taken_back(live, groups, shown):
    run_id = live.run()
    for group in groups:
        version = live.get(f"/api/run/{run_id}/annotations")["version"]
        assert live.post(f"/api/run/{run_id}/annotate", {"version": version, "group": group})[0] == 200
    assert live.get("/api/runs")["runs"][0]["configuration"].get("group") == shown
    assert live.get(f"/api/run/{run_id}")["configuration"].get("group") == shown
    assert live.get(f"/api/run/{run_id}/annotations")["group"] == shown


def test_a_note_is_refused_without_the_token_or_the_header_of_a_page(live):
    run_id = live.run()
    body = {"version": "", "note": "theirs"}
    path = f"/api/run/{run_id}/annotate"
    token = {"x-smdebug-token": live.server.token}
    for headers in ({}, token, {**token, "x-smdebug": "1", "origin": "https://elsewhere.example"}):
        assert live.ask(path, method="POST", body=body, headers=headers)[0] == 403
    assert not (live.folder / "annotations.json").exists()
    assert live.post(path, {"note": "without a version"})[0] == 400
