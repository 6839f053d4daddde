"""No planted secret is found in any file of a run, in the log, or in what the commands print."""

from __future__ import annotations

import errno
import json
import logging
import sys

import numpy as np
import pytest

import smdebug
from smdebug.companion.alerts import Alerts
from smdebug.config.hyperparameters import flat_config
from smdebug.exceptions import SMDebugValueError
from smdebug.files.collections_file import LostSteps
from smdebug.files.names import ORIGIN, STOP_KEY
from smdebug.files.notes.origin import Origin
from smdebug.files.observations import ObservationLayout
from smdebug.files.zoom_request import ZoomRequest
from smdebug.launching.scripts import main
from smdebug.logger import SafeFormatter, get_logger
from smdebug.notebook.tables import run_html
from smdebug.rules.asking import error_sentence
from smdebug.runs.requests.stopping import request_stop
from smdebug.saving.process.training_arguments import plain_arguments
from smdebug.secrets.values import LEFT_OUT
from smdebug.service.log_lines import log_line
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from smdebug.ui.web.routes import problem
from tests.cli.conftest import ask  # noqa: F401 - a fixture
from tests.secrets.planted import cores_in, planted, planted_arguments

PLANTED = [text for text, _ in planted()]
IN_CONFIG = 900  # values of one run
IN_TAGS, IN_ARGUMENTS = 40, 150


def trained(place, **options):
    with smdebug.Hook(place, **options) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("loss", np.float32(1))
    return hook


def cores_in_files(folder):
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 5
    return set().union(*(cores_in(file.read_bytes()) for file in files))


def planted_run(place, number, monkeypatch):
    """A run with secrets in its configuration, tags, note and command line."""
    texts = PLANTED[number * IN_CONFIG : (number + 1) * IN_CONFIG]
    arguments = [
        word for words, _ in list(planted_arguments())[number * 100 : (number + 1) * 100] for word in words
    ]
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", *arguments, *texts][:IN_ARGUMENTS])
    config = {f"text.{at}": text for at, text in enumerate(texts)}
    return trained(
        place,
        config={**config, "env": texts[:20], "nested": {"deep": {"password": texts[0]}}, texts[1]: 1},
        tags=texts[:IN_TAGS],
        note="\n".join(texts[:30]),
    )


def test_no_file_of_a_run_and_no_output_has_a_planted_secret(tmp_path, monkeypatch, capsys, ask):  # noqa: F811
    runs = -(-len(PLANTED) // IN_CONFIG)
    assert runs * IN_CONFIG >= len(PLANTED) > 2000
    for number in range(runs):
        planted_run(tmp_path / f"run-{number}", number, monkeypatch)
    assert cores_in_files(tmp_path) == set()
    logged = capsys.readouterr()
    assert "Saving to" in logged.out
    assert cores_in(logged.out + logged.err) == set()
    first, other = tmp_path / "run-0", tmp_path / "run-1"
    for words in (
        ["runs", tmp_path],
        ["inspect", first],
        ["compare", first, other],
        ["verify", first],
        [first],
    ):
        for form in ([], ["--json"]):
            answer = ask(*words, *form)
            assert LEFT_OUT in answer.out or words[0] not in ("runs", "inspect", "compare")
            assert cores_in(answer.out + answer.err) == set()


def test_hyperparameters_of_a_job_and_those_added_later_have_no_secret(tmp_path, monkeypatch):
    texts = PLANTED[:200]
    monkeypatch.setenv("SM_HPS", json.dumps({f"text{at}": text for at, text in enumerate(texts)}))
    trained(tmp_path / "job")
    with smdebug.Hook(str(tmp_path / "added")) as hook, hook.step():
        hook.add_config({"later": texts, "token": "qZ00001Xk9v"})
        hook.record("loss", 1.0)
    assert create_trial(str(tmp_path / "job")).origin.config
    assert create_trial(str(tmp_path / "added")).origin.config["token"] == LEFT_OUT
    assert cores_in_files(tmp_path) == set()


@pytest.fixture
def old_run(tmp_path):
    """A run of a version that wrote secrets down."""
    trained(tmp_path / "run")
    content = {
        "version": 1,
        "command": ["python", "t.py", "--api-key", "-qZ00001Xk9v"],
        "config": {
            "text": PLANTED[0],
            "hub_token": "qZ00002Xk9v",
            "list": PLANTED[:50],
            PLANTED[2]: 1,
            "lr": 0.1,
        },
        "tags": PLANTED[50:90],
        "note": "\n".join(PLANTED[90:100]),
        "git": {"commit": "4f2c81aa03bd", "branch": "token=qZ00003Xk9v"},
    }
    (tmp_path / "run" / ORIGIN).write_text(json.dumps(content))
    return tmp_path / "run"


def test_secrets_that_an_older_version_has_written_are_not_shown(old_run, tmp_path, ask):  # noqa: F811
    assert cores_in((old_run / ORIGIN).read_bytes())
    origin = create_trial(str(old_run)).origin
    assert origin.config["lr"] == 0.1
    assert cores_in(repr(origin)) == set()
    trained(tmp_path / "other", config={"lr": 1})
    report = tmp_path / "report.html"
    for words in (
        ["inspect", old_run],
        ["inspect", old_run, "--json"],
        ["runs", tmp_path],
        ["runs", tmp_path, "--json"],
        ["compare", old_run, tmp_path / "other"],
        ["report", old_run, "--output", report],
    ):
        answer = ask(*words)
        assert answer.code in (0, 1), answer.err
        assert cores_in(answer.out + answer.err) == set()
    assert cores_in(report.read_bytes()) == set()


def test_a_notebook_shows_no_secret_of_an_older_version(old_run):
    shown = run_html(create_trial(str(old_run)))
    assert LEFT_OUT in shown
    assert cores_in(shown) == set()


def test_the_log_has_no_secret(capfd):
    for text in PLANTED[:100]:
        get_logger().warning("The training said %s", text)
    printed = capfd.readouterr().out
    assert printed.count("The training said") >= 100
    assert cores_in(printed) == set()


def test_the_trace_of_an_error_in_the_log_has_no_secret():
    formed = SafeFormatter()
    try:
        raise ValueError("password=qZ00001Xk9v in https://qZ00002Xk9v@host")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "a.py", 1, "failed", (), sys.exc_info())
    assert "ValueError" in formed.format(record)
    assert cores_in(formed.format(record)) == set()


def test_an_error_of_a_command_has_no_secret(ask):  # noqa: F811
    for words in (
        ["inspect", "./token=qZ00001Xk9v"],
        ["compare", "https://me:qZ00002Xk9v@host/run", "./b"],
        ["inspect", "./run", "token=qZ00003Xk9v"],
    ):
        answer = ask(*words)
        assert answer.code not in (0, 1)
        assert answer.err
        assert cores_in(answer.err + answer.out) == set()


def test_an_error_of_a_launch_has_no_secret(capsys):
    with pytest.raises(SystemExit):
        main(["--config", "./api_key=qZ00004Xk9v.json", "train.py"])
    printed = capsys.readouterr()
    assert "error: " in printed.err
    assert cores_in(printed.err + printed.out) == set()


def test_the_failure_of_a_rule_has_no_secret():
    error = RuntimeError("GET https://host/?token=qZ00001Xk9v failed: Authorization: Bearer qZ00002Xk9v")
    assert cores_in(error_sentence(error)) == set()
    assert cores_in(error_sentence(SMDebugValueError("password: qZ00003Xk9v"))) == set()
    assert error_sentence(error).startswith("RuntimeError: GET https://host/?token=***")


def test_an_alert_has_no_secret():
    sent = []

    class Target:
        def notify(self, title, body):
            sent.extend([title, body])
            return True

    alerts = Alerts([], sent.append)
    alerts._targets.append(("json", Target()))
    alerts.send("a run failed: token=qZ00001Xk9v", "\n".join(PLANTED[:100]))
    assert len(sent) == 2
    assert cores_in("".join(sent)) == set()


def test_the_arguments_of_a_trainer_have_no_secret():
    plain = plain_arguments({"hub_token": "qZ00001Xk9v", "lr": 0.1, "resume": PLANTED[0], "token": True})
    assert plain["lr"] == 0.1
    assert plain["token"] is True
    assert cores_in(str(plain)) == set()


def test_lines_of_deployed_rules_have_no_secret():
    line = log_line({"message": "password=qZ00001Xk9v", "trace": "https://qZ00002Xk9v@host", "step": 3}, 0)
    assert line.step == 3
    assert cores_in(repr(line)) == set()


def test_a_message_of_the_application_has_no_secret(capsys):
    from functions import telemetry
    from functions.decisions import alerts
    from functions.decisions.posting import posts

    detail = {
        "run": "a",
        "rule": "r",
        "status": "Error",
        "reason": "401 of https://host/?sig=qZ00001Xk9v: Authorization: Bearer qZ00002Xk9v",
        "parameters": {"api_key": "qZ00003Xk9v"},
        "location": "s3://bucket/runs/a",
        "text": "401 of https://host/?sig=qZ00001Xk9v",
        "times": {"published": "2026-11-28T12:00:00+00:00"},
    }
    event = {"detail-type": "Rule Evaluation Condition Met", "detail": detail}
    for form in posts.Form:
        body = posts.body_of(form, event).decode()
        assert "sig=***" in body
        assert cores_in(body) == set()
    kind = "Rule Evaluation Status Change"
    for compose in (alerts.email, alerts.line, alerts.sms, alerts.subject):
        assert compose(kind, detail)
        assert cores_in(compose(kind, detail)) == set()
    telemetry.log_problem(
        "failed", RuntimeError("token=qZ00004Xk9v"), key="runs/x9Q/index/000/0_worker_0.json"
    )
    line = json.loads(capsys.readouterr().out)
    assert line["key"] == "runs/x9Q/index/000/0_worker_0.json"
    assert "token=***" in line["problem"]
    assert cores_in(str(line)) == set()


def test_an_origin_is_written_without_secrets_whatever_it_was_made_of():
    origin = Origin(
        command=("python", "--token", "qZ00001Xk9v"),
        host="https://qZ00002Xk9v@host",
        platform="Linux token=qZ00003Xk9v",
        commit="4f2c81aa03bd",
        branch="fix/password=qZ00004Xk9v",
        config={"hub_token": "qZ00005Xk9v", "https://qZ00006Xk9v@host": 1},
        tags=("pw=qZ00007Xk9v",),
        note="password: qZ00008Xk9v",
    )
    assert len(cores_in(repr(origin))) == 8
    assert cores_in(origin.encode()) == set()


def test_names_of_a_configuration_have_no_secret():
    flat = flat_config({"https://me:qZ00001Xk9v@host": {"lr": 1}})
    assert flat == {"https://***@host.lr": 1}


def test_facts_that_an_older_version_has_written_have_no_secret():
    facts = {
        "arguments": {"hub_token": "qZ00001Xk9v", "learning_rate": 0.1, "max_depth": 6},
        "training": True,
    }
    layout = ObservationLayout.from_array(ObservationLayout({}, facts).to_array(), "facts")
    assert layout.facts["arguments"] == {"hub_token": LEFT_OUT, "learning_rate": 0.1, "max_depth": 6}
    assert layout.facts["training"] is True


def test_the_reason_of_a_requested_stop_has_no_secret(tmp_path):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        hook.flush()
        _, request = request_stop(str(tmp_path / "run"), "it leaked token=qZ00001Xk9v")
        assert request["reason"] == "it leaked token=***"
        assert cores_in((tmp_path / "run" / STOP_KEY).read_bytes()) == set()


def test_the_doctor_shows_no_secret_of_the_environment(ask, monkeypatch):  # noqa: F811
    monkeypatch.setenv("SMDEBUG_API_KEY", "qZ00001Xk9v")
    monkeypatch.setenv("SMDEBUG_LOG_PATH", "https://qZ00002Xk9v@host")
    answer = ask("doctor")
    assert "SMDEBUG_API_KEY" in answer.out
    assert cores_in(answer.out + answer.err) == set()


def test_the_answer_of_the_page_to_a_wrong_request_has_no_secret():
    body = problem("There is no run at https://qZ00001Xk9v@host", 404).body
    assert b"https://***@host" in body


def test_the_log_of_a_command_and_the_trace_of_its_error_have_no_secret(ask):  # noqa: F811
    answer = ask("inspect", "./token=qZ00001Xk9v", "--debug")
    assert "Traceback" in answer.err
    assert cores_in(answer.err) == set()


def test_the_lines_that_migrate_shows_have_no_secret(tmp_path, ask):  # noqa: F811
    (tmp_path / "old.py").write_text(
        'import smdebug.pytorch as smd\nhook = smd.Hook("out", tensorboard_dir="https://me:qZ00001Xk9v@host/tb")\n'
        'config = DebuggerHookConfig(hook_parameters={"token": "qZ00002Xk9v"})\n'
    )
    shown = [
        ask("migrate", tmp_path / "old.py", "--output", tmp_path / "new", "--force", *form)
        for form in ([], ["--json"])
    ]
    assert "old.py" in shown[0].out
    assert LEFT_OUT in shown[0].out
    assert cores_in("".join(answer.out + answer.err for answer in shown)) == set()


def test_the_reason_of_lost_steps_has_no_secret():
    class Refusing(MemoryStorage):
        def create(self, key):
            if "000000000001" in key:
                raise OSError(errno.EIO, "PUT https://b/k?X-Amz-Signature=qZ00001Xk9v: Bearer qZ00002Xk9v")
            return super().create(key)

    place = Refusing()
    trained(place, save_config=smdebug.SaveConfig(save_interval=1))
    files = [place.read(key) for key in place.list("")]
    assert sum(b"X-Amz-Signature=***" in content for content in files) == 2
    assert cores_in(b"".join(files)) == set()
    said = str(create_trial(place).missing_steps)
    assert "1 step is missing (first: 1): OSError" in said
    assert cores_in(said) == set()


def test_the_reason_of_lost_steps_that_an_older_version_has_written_has_no_secret():
    lost = LostSteps.named_in({"lost_steps": {"count": 1, "reason": "token=qZ00001Xk9v"}})
    assert lost is not None
    assert lost.reason == "token=***"


def test_a_request_to_zoom_has_no_secret():
    content = ZoomRequest(("fc",), reason="after token=qZ00001Xk9v").encode()
    assert b"token=***" in content
    assert cores_in(content) == set()


def test_an_imported_log_has_no_secret(tmp_path, ask):  # noqa: F811
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "metrics.csv").write_text("step,loss\n" + "".join(f"{n},0.5\n" for n in range(9)))
    (folder / "hparams.yaml").write_text(
        'lr: 0.1\nhub_token: qZ00002Xk9v\nnote: \'{"api_key": "qZ00003Xk9v"}\'\n'
        "args: [--token, qZ00004Xk9v]\n"
    )
    answer = ask("import", folder, tmp_path / "run")
    assert answer.code == 0, answer.err
    config = create_trial(str(tmp_path / "run")).origin.config
    assert config["lr"] == 0.1
    assert config["hub_token"] == LEFT_OUT
    assert cores_in((tmp_path / "run" / ORIGIN).read_bytes()) == set()
    assert cores_in(answer.out + answer.err) == set()
