"""The whole demo, as a program runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from smdebug.rules.rule_sets import default_rules
from tests.local_aws.test_local_aws import ROOT, environment
from tests.support.answers import check_answer


def test_it_prints_one_document_and_keeps_the_runs_in_the_folder(tmp_path):
    kept = tmp_path / "kept"
    done = subprocess.run(
        [sys.executable, "-m", "smdebug", "demo", "--json", "--keep", str(kept)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    check_answer(["demo", "--json"], done.stdout)
    results = json.loads(done.stdout)
    assert results["as_it_should_be"] is True
    failing, healthy = results["runs"]

    assert failing["ended"] == "stopped"
    assert [(action["action"], action["rule"]) for action in failing["stopped_by"]] == [
        ("stoptraining", "GradientFlow")
    ]
    assert 0 < len(failing["steps"]) < failing["steps_planned"] / 20
    statuses = {rule["name"]: rule["status"] for rule in failing["rules"]}
    assert {name for name, status in statuses.items() if status == "IssuesFound"} == {"GradientFlow"}
    assert statuses["BoostingProgress"] == "NotChecked", "the training has no trees"
    assert set(statuses.values()) == {"IssuesFound", "NoIssuesFound", "NotChecked"}
    assert set(statuses) == set(default_rules())
    (finding,) = failing["findings"]
    assert set(finding["seconds_after_upload"]) == {"indexed", "evaluated", "published"}
    assert "layer00_weight" in finding["messages"][0]
    diagnosis = finding["diagnosis"]
    assert (diagnosis["role"], diagnosis["cause"]) == ("cause", "vanishing gradient")
    assert diagnosis["try"]
    (alert,) = [alert for alert in failing["alerts"] if "finding" in alert]
    assert (alert["finding"], alert["step"]) == (finding["id"], finding["step"])
    assert alert["seconds_after_upload"] > 0

    assert (healthy["ended"], healthy["findings"], healthy["alerts"]) == ("finished", [], [])
    assert healthy["steps"][-1] == 299
    for run in results["runs"]:
        assert "<html" in Path(run["report"]).read_text(encoding="utf-8")
        assert any((kept / run["name"] / "events").iterdir())
    assert "GradientFlow" in Path(results["summary"]).read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_that_is_not_writable_is_reported_before_the_demo_begins(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("a file", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), "--json", "--keep", str(taken)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (3, "")
    error = json.loads(done.stderr)
    assert (error["exit_code"], str(taken) in error["error"]) == (3, True)
