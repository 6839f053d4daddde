"""Every command, called as a script would call it: one JSON document and a code, for good and for bad."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest

from smdebug.cli.commands import COMMANDS
from tests.cli.conftest import failing_run
from tests.cli.deployed.test_deployed import JOB, stock
from tests.service.stocked import RUN

__all__ = ["stock"]  # a fixture of both files

# What each is called with; `{}` is a folder with an failing run, its twin, a rules.json and a job.json.
PASSED = {
    "inspect": ("{}/failing",),
    "tensor": ("{}/failing", "loss"),
    "evaluate": ("{}/failing", "--rule", "VanishingGradient"),
    "watch": ("{}/failing", "--once", "--rule", "ExplodingTensor"),
    "rules": (),
    "compare": ("{}/failing", "{}/twin"),
    "verify": ("{}/failing",),
    "report": ("{}/failing", "-o", "{}/report.html", "--rule", "VanishingGradient"),
    "plot": ("{}/failing", "--tensor", "loss", "-o", "{}/loss.png"),
    "export": ("npz", "{}/failing", "-o", "{}/values.npz"),
    "import": ("{}/log.csv", "{}/imported"),
    "zoom": ("{}/open", "--tensor", "loss"),
    "runs": (),
    "tag": ("{}/failing", "--add", "a"),
    "gate": ("{}/failing", "--rule", "VanishingGradient"),
    "backtest": ("{}/failing", "--rule", "VanishingGradient", "--journal", "{}/journal.jsonl"),
    "replay": ("{}/failing", "--at", "20", "--rule", "ExplodingTensor"),
    "status": (RUN,),
    "findings": (RUN,),
    "attach": (RUN, "{}/rules.json"),
    "detach": (RUN, "loss"),
    "stop": (RUN, "--yes"),
    "logs": (RUN, "fc"),
    "policy": ("s3://runs/vision/", "--for", "sagemaker"),
    "import-sagemaker": ("{}/job.json", "-o", "{}/config"),
    "migrate": ("{}", "-o", "{}/config"),
    "doctor": ("--offline",),
    "completion": ("bash",),
}
FINDS_SOMETHING = {"evaluate", "gate", "report", "status", "findings"}
BAD = {
    "inspect": (3, ("{}/nowhere",)),
    "tensor": (2, ("{}/failing", "no_such_tensor")),
    "evaluate": (2, ("{}/failing", "--rule", "NoSuchRule")),
    "watch": (2, ("{}/failing", "--once", "--rule", "NoSuchRule")),
    "rules": (2, ("NoSuchRule",)),
    "compare": (3, ("{}/failing", "{}/nowhere")),
    "verify": (3, ("{}/nowhere",)),
    "report": (3, ("{}/failing", "-o", "{}/rules.json/report.html")),
    "plot": (2, ("{}/failing", "--tensor", "no_such_tensor", "-o", "{}/x.png")),
    "export": (3, ("npz", "{}/nowhere", "-o", "{}/x.npz")),
    "import": (2, ("{}/rules.json", "{}/imported")),
    "zoom": (3, ("{}/failing", "--tensor", "loss")),
    "tag": (3, ("{}/nowhere", "--add", "a")),
    "runs": (3, ("--stack", "nope")),
    "gate": (2, ("{}/failing", "--max-age", "soon")),
    "backtest": (2, ("{}/failing", "--rule", "NoSuchRule")),
    "replay": (2, ("{}/failing", "--at", "7", "--rule", "VanishingGradient")),
    "status": (3, ("no-such-run",)),
    "findings": (3, ("no-such-run",)),
    "attach": (2, (RUN, "{}/none.json")),
    "detach": (2, (RUN, "no-such-rule")),
    "stop": (3, ("no-such-run", "--yes")),
    "logs": (2, (RUN, "no-such-rule")),
    "policy": (2, ("s3://runs/", "--for", "sagemaker")),
    "import-sagemaker": (2, ("{}/rules.json", "-o", "{}/config")),
    "migrate": (2, ("{}/nowhere.py",)),
    "doctor": (2, ("--no-such-option",)),
    "completion": (2, ("no-such-shell",)),
    "demo": (2, ("--no-such-option",)),
    "local": (2, ("--port", "100000")),
    "ui": (2, ("--port", "100000")),
    "mcp": (2, ("--port", "1")),
}
# Whole stacks and servers, which other tests start: tests/e2e/test_demo.py, tests/local_aws, tests/ui.
# And a user's own script.
STARTED_ELSEWHERE = {"demo", "local", "mcp", "run", "ui"}


@pytest.fixture
def folder(stock, tmp_path: Path) -> Path:
    failing_run(tmp_path / "failing")
    failing_run(tmp_path / "twin")
    failing_run(tmp_path / "open")
    (tmp_path / "open/training_job_end.ts").unlink()
    (tmp_path / "rules.json").write_text(json.dumps({"version": 1, "rules": ["AllZero"]}))
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    (tmp_path / "log.csv").write_text("epoch,loss\n0,2.0\n1,1.0\n")
    boto3.client("logs").create_log_stream(logGroupName="evaluate", logStreamName="one")
    return tmp_path


def filled(words: tuple[str, ...], folder: Path) -> list[str]:
    return [word.replace("{}", str(folder)) for word in words]


NAMING_FILES = {
    "evaluate --rules": ("evaluate", "{}/failing", "--rules"),
    "evaluate --rule-file": ("evaluate", "{}/failing", "--rule-file"),
    "report --rules": ("report", "{}/failing", "--rules"),
    "attach": ("attach", RUN),
    "import-sagemaker": ("import-sagemaker",),
}


@pytest.mark.parametrize("what", sorted(NAMING_FILES))
@pytest.mark.parametrize("file", ["{}/none.json", "{}/failing", ""])
def test_a_file_that_is_named_and_is_none_is_a_mistake_of_the_command_line(ask, folder, what, file):
    answer = ask(*filled((*NAMING_FILES[what], file), folder))
    (named,) = filled((file,), folder)
    assert (answer.code, (named or "''") in answer.err) == (2, True)
    wanted = "is a folder" if file == "{}/failing" else "There is no file"
    assert wanted in answer.err


def test_there_is_none_that_is_not_called_here():
    assert set(PASSED) == set(COMMANDS) - STARTED_ELSEWHERE
    assert set(BAD) == set(COMMANDS) - {"run"}


@pytest.mark.parametrize("name", sorted(PASSED))
def test_it_answers_with_one_document(ask, folder, name):
    answer = ask(name, *filled(PASSED[name], folder), "--json")
    assert (answer.code, answer.err) == (1 if name in FINDS_SOMETHING else 0, "")
    assert answer.json is not None


@pytest.mark.parametrize("name", sorted(BAD))
def test_what_is_wrong_is_reported_on_the_other_channel_with_a_code(ask, folder, name):
    code, words = BAD[name]
    answer = ask(name, *filled(words, folder), "--json")
    assert (answer.code, answer.out) == (code, "")
    payload = json.loads(answer.err)
    assert (payload["exit_code"], payload["error"] != "") == (code, True)


@pytest.mark.parametrize(
    "words",
    [("watch", "runs", "--interval"), ("status", "run", "--watch", "--timeout")],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_a_time_that_is_none_is_refused(ask, words, number):
    answer = ask(*words, number)
    assert answer.code == 2
    assert number in answer.err
