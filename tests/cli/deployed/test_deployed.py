"""runs, status, findings, attach, detach, stop, logs, import-sagemaker: over AWS's interfaces."""

from __future__ import annotations

import copy
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from functions.adapters.dynamodb import DynamoItems
from smdebug.service.records import RuleStatus, RunState
from tests.cli.conftest import failing_run
from tests.reports.reading import answer_in
from tests.service.stocked import BEGUN, LOSS, RUN, VANISHING, Stock, failing, rule
from tests.service.test_client_on_aws import OUTPUTS, RESOURCES

JOB = {
    "TrainingJobName": "resnet-2023",
    "DebugHookConfig": {
        "S3OutputPath": "s3://old-bucket/debug",
        "HookParameters": {"save_interval": "100"},
        "CollectionConfigurations": [
            {"CollectionName": "gradients", "CollectionParameters": {"save_interval": "10"}}
        ],
    },
    "DebugRuleConfigurations": [
        {
            "RuleConfigurationName": "vanishing",
            "RuleEvaluatorImage": "123.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest",
            "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "1e-6"},
        },
        {
            "RuleConfigurationName": "odd",
            "RuleEvaluatorImage": "image",
            "RuleParameters": {"rule_to_invoke": "NoSuchRule"},
        },
    ],
    "ProfilerConfig": {"S3OutputPath": "s3://old-bucket/profile"},
}


@pytest.fixture
def stock(aws: None) -> Stock:
    template = {"Resources": RESOURCES, "Outputs": OUTPUTS}
    boto3.client("cloudformation").create_stack(StackName="smdebug", TemplateBody=json.dumps(template))
    stock = Stock(DynamoItems("smdebug-steps", boto3.client("dynamodb")))
    stock.begin(first_seen=BEGUN)
    stock.group(failing(VANISHING, 3), rule(LOSS, last_good=3), cursor=3)
    stock.wrote(3)
    for step in range(3):
        stock.found(VANISHING, step)
    return stock


def test_the_runs_of_a_stack_are_listed(ask, stock):
    assert RUN in ask("runs").out
    (run,) = ask("runs", "--watched", "--json").json
    assert (run["run"], run["state"], run["open_issues"]) == (RUN, "Running", 1)


def test_the_exit_code_of_status_shows_whether_a_problem_was_detected(ask, stock):
    answer = ask("status", "teams/resnet")
    assert answer.code == 1
    assert "IssuesFound" in answer.out
    payload = ask("status", RUN, "--json").json
    assert [status["name"] for status in payload["statuses"]] == ["fc", "loss"]


def test_a_run_whose_rules_are_content_ends_with_0(ask, stock):
    stock.group(rule(VANISHING), rule(LOSS), cursor=3)
    assert ask("status", RUN).code == 0
    stock.group(rule(VANISHING, status=RuleStatus.ERROR, reason="it failed"), rule(LOSS), cursor=3)
    assert ask("status", RUN).code == 3


@pytest.mark.parametrize(("verdict", "code"), [("NoIssuesFound", 0), ("Incomplete", 3), ("NotChecked", 3)])
def test_a_finished_run_without_evidence_has_not_passed(ask, stock, verdict, code):
    stock.group(rule(VANISHING, status=RuleStatus.NO_ISSUES_FOUND), rule(LOSS), cursor=3)
    record = stock.index.run(RUN)
    stock.index.change_run(record, replace(record, state=RunState.FINISHED, verdict=verdict))
    answer = ask("status", RUN)
    assert (answer.code, f"Finished ({verdict})" in answer.out) == (code, True)
    (run,) = ask("runs", "--watched", "--json").json
    assert run["verdict"] == verdict


def test_watching_prints_news_line_by_line_until_the_end(ask, stock):
    stock.become(RunState.FINISHED)
    answer = ask("status", RUN, "--watch", "--json")
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert answer.code == 1
    assert {line["what"] for line in lines} == {"state", "status"}
    assert ask("status", RUN, "--watch", "--until", "found").code == 1
    assert ask("status", RUN, "--watch", "--until", "3").code == 1
    assert ask("status", RUN, "--watch", "--until", "whenever").code == 2


def test_waiting_has_an_end(ask, stock):
    answer = ask("status", RUN, "--watch", "--timeout", "0")
    assert (answer.code, "waited 0 s" in answer.err) == (3, True)


def test_findings_are_reported_in_the_order_of_steps(ask, stock):
    answer = ask("findings", RUN, "--rule", "fc", "--since", "1", "--json")
    assert (answer.code, [item["step"] for item in answer.json]) == (1, [1, 2])
    assert "gradient/fc" in ask("findings", RUN, "--last", "1").out
    assert ask("findings", RUN, "--since", "99").code == 0


def test_rules_are_attached_and_detached(ask, stock, tmp_path):
    (tmp_path / "rules.json").write_text(json.dumps({"version": 1, "rules": ["AllZero"]}))
    names = [item["name"] for item in ask("attach", RUN, tmp_path / "rules.json", "--json").json]
    assert names == ["fc", "loss", "AllZero"]
    assert "ExplodingTensor" in ask("attach", RUN, "explodingtensor").out
    assert [item["name"] for item in ask("detach", RUN, "loss", "fc", "--json").json] == [
        "AllZero",
        "ExplodingTensor",
    ]
    wrong = ask("detach", RUN, "loss")
    assert (wrong.code, "smdebug status" in wrong.err) == (2, True)
    assert [item["name"] for item in ask("attach", RUN, "AllZero", "--replace", "--json").json] == ["AllZero"]


def test_an_invalid_rules_file_names_the_entry(ask, stock, tmp_path):
    (tmp_path / "rules.json").write_text('{"version": 1, "rules": [{"rule": "a b"}]}')
    answer = ask("attach", RUN, tmp_path / "rules.json")
    assert (answer.code, "rules[0]" in answer.err) == (2, True)
    assert ask("attach", RUN, tmp_path / "none.json").code == 2


def test_a_rule_or_parameter_that_is_misspelt_is_reported_when_it_is_attached(ask, stock, tmp_path):
    wanted = [{"rule": "VanishingGradint"}, {"rule": "AllZero", "parameters": {"treshold": "1"}}]
    (tmp_path / "rules.json").write_text(json.dumps({"version": 1, "rules": wanted}))
    answer = ask("attach", RUN, tmp_path / "rules.json", "--json")
    assert (answer.code, len(answer.json)) == (0, 4)  # the stack may have rules of its own
    assert "Did you mean VanishingGradient?" in answer.err
    assert "AllZero takes no parameter 'treshold'" in answer.err
    assert ask("attach", RUN, "AllZero").err == ""


def test_a_training_is_asked_to_stop(ask, stock):
    payload = ask("stop", RUN, "--reason", "NaN", "--at-step", "50", "--yes", "--json").json
    assert payload == {
        "run": f"s3://{RUN}",
        "reason": "NaN",
        "finding_id": None,
        "stop_at_step": 50,
    }
    kept = boto3.client("s3").get_object(Bucket="my-bucket", Key="teams/resnet/control/stop")
    assert json.loads(kept["Body"].read())["stop_at_step"] == 50
    stock.become(RunState.ENDED)
    assert ask("stop", RUN, "--yes").code == 3


def test_logs_of_a_rule_are_reported(ask, stock):
    logs = boto3.client("logs")
    logs.create_log_stream(logGroupName="evaluate", logStreamName="one")
    line = {"run": RUN, "rule": "fc", "level": "ERROR", "step": 7, "message": "it is\nodd"}
    event = {"timestamp": int((time.time() - 7200) * 1000), "message": json.dumps(line)}
    logs.put_log_events(logGroupName="evaluate", logStreamName="one", logEvents=[event])
    (payload,) = ask("logs", RUN, "fc", "--json").json
    assert (payload["step"], payload["level"]) == (7, "ERROR")
    assert "step 7  it is odd" in ask("logs", RUN, "fc").out
    assert "No log lines of fc." in ask("logs", RUN, "fc", "--since", "1h").out
    assert ask("logs", RUN, "fc", "--since", "soon").code == 2


def test_a_run_a_rule_and_a_stack_that_are_not_known_are_reported_with_the_nearest(ask, stock):
    answer = ask("status", "teams/resnat")
    assert (answer.code, "Did you mean" in answer.err) == (3, True)
    stock.begin("my-bucket/bert", first_seen=BEGUN)
    answer = ask("status", "brt")
    assert (answer.code, "Did you mean my-bucket/bert?" in answer.err) == (3, True)
    assert "Did you mean" not in ask("status", "something-else").err
    answer = ask("logs", RUN, "los")
    assert (answer.code, "Did you mean loss?" in answer.err) == (2, True)
    assert ask("runs", "--stack", "nope").code == 3


def test_a_job_of_sagemaker_becomes_our_files(ask, tmp_path):
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    answer = ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path / "out", "--json")
    assert answer.code == 0
    hook = json.loads((tmp_path / "out" / "debughookconfig.json").read_text())
    assert hook["LocalPath"] == "s3://old-bucket/debug/resnet-2023/debug-output"
    assert hook["CollectionConfigurations"] == JOB["DebugHookConfig"]["CollectionConfigurations"]
    rules = json.loads((tmp_path / "out" / "rules.json").read_text())["rules"]
    assert rules[0] == {
        "name": "vanishing",
        "rule": "VanishingGradient",
        "parameters": {"threshold": "1e-6"},
    }
    assert any("NoSuchRule" in note for note in answer.json["notes"])
    assert any("profiler" in note for note in answer.json["notes"])
    again = ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path / "out")
    assert (again.code, "--force" in again.err) == (2, True)
    assert ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path / "out", "--force").code == 0


def test_the_imported_files_are_read_by_the_hook_and_the_rules(ask, tmp_path, monkeypatch):
    from smdebug.config.json_config import create_hook_from_json_config
    from smdebug.saving.hooks.loop_hook import Hook

    job = {**JOB, "DebugHookConfig": {**JOB["DebugHookConfig"]}}
    job["DebugHookConfig"].pop("S3OutputPath")
    job["DebugHookConfig"]["LocalPath"] = str(tmp_path / "run")
    (tmp_path / "job.json").write_text(json.dumps(job))
    ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path)
    with (
        create_hook_from_json_config(Hook, str(tmp_path / "debughookconfig.json")) as hook,
        hook.step(),
    ):
        hook.record("gradient/fc", 1.0)
    (payload,) = ask("inspect", tmp_path / "run", "--json").json["tensors"]
    assert payload["name"] == "gradient/fc"


HOOK, FIRST_RULE = "DebugHookConfig", "DebugRuleConfigurations[0]"
COLLECTION = f"{HOOK}.CollectionConfigurations[0]"


def put(job: dict, place: str, value: object) -> None:
    """At a place such as `DebugHookConfig.CollectionConfigurations[0].CollectionName`."""
    *outer, last = re.findall(r"[^.\[\]]+", place)
    inside: Any = job
    for key in outer:
        inside = inside[int(key) if key.isdigit() else key]
    inside[int(last) if last.isdigit() else last] = value


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (HOOK, [], "must be an object, not a list: []"),
        (f"{HOOK}.S3OutputPath", 5, "must be a string, not a number: 5"),
        (f"{HOOK}.HookParameters", "x", "must be an object, not a string: 'x'"),
        (f"{HOOK}.HookParameters.save_interval", "abc", "must be a whole number, not 'abc'"),
        (f"{HOOK}.HookParameters.save_interval", 100, "must be a string, not a number: 100"),
        (f"{HOOK}.HookParameters.save_interval", "0", "must be at least 1, not 0"),
        (f"{HOOK}.HookParameters.eval.save_steps", "1,b", "must be a whole number, not 'b'"),
        (f"{HOOK}.HookParameters.include_regex", "(", "include"),
        (f"{HOOK}.CollectionConfigurations", {}, "must be a list, not an object: {}"),
        (COLLECTION, "losses", "must be an object, not a string: 'losses'"),
        (f"{COLLECTION}.CollectionName", None, "is missing: it must be a string"),
        (f"{COLLECTION}.CollectionParameters.reductions", "mann", "'mann' is not a reduction"),
        (f"{COLLECTION}.CollectionParameters.save_histogram", "x", "must be True or False"),
        ("DebugRuleConfigurations", {}, "must be a list, not an object"),
        (f"{FIRST_RULE}.RuleParameters", [], "must be an object, not a list"),
        (f"{FIRST_RULE}.RuleParameters.threshold", 1e-6, "must be a string, not a number: 1e-06"),
        (f"{FIRST_RULE}.RuleParameters.threshold", True, "not true or false: True"),
        (f"{FIRST_RULE}.RuleConfigurationName", ["x"], "must be a string, not a list: ['x']"),
        ("TensorBoardOutputConfig", {"LocalPath": 1}, "LocalPath must be a string, not a number"),
        ("TrainingJobName", 7, "must be a string, not a number: 7"),
    ],
)
def test_a_job_that_the_hook_would_refuse_is_refused_by_its_place(ask, tmp_path, place, value, why):
    job = copy.deepcopy(JOB)
    if place.endswith("eval.save_steps"):
        job[HOOK]["HookParameters"]["eval.save_steps"] = value
    else:
        put(job, place, value)
    (tmp_path / "job.json").write_text(json.dumps(job))
    answer = ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path / "out")
    assert (answer.code, answer.out, (tmp_path / "out").exists()) == (2, "", False)
    assert (answer.err.startswith(f"error: {place}"), answer.err.count("\n")) == (True, 1)
    if why != "include":
        assert why in answer.err


def test_a_job_as_sagemaker_describes_it_is_imported(ask, tmp_path):
    """With all that DescribeTrainingJob answers beside it, every value a text."""
    job = copy.deepcopy(JOB)
    job["DebugHookConfig"]["HookParameters"] |= {
        "train.save_steps": "[1, 2]",
        "export_tensorboard": "True",
        "include_regex": "relu,tanh",
        "include_workers": "all",
        "reductions": "min,abs_mean",
    }
    job["DebugRuleConfigurations"][0] |= {"VolumeSizeInGB": 0, "InstanceType": "ml.t3.medium"}
    job["DebugRuleConfigurations"][0]["RuleParameters"] |= {"start-step": "5", "other": ""}
    job |= {"CreationTime": 1684.5, "Tags": [], "ResourceConfig": {"InstanceCount": 1}}
    job["TensorBoardOutputConfig"] = {"S3OutputPath": "s3://b/tb", "LocalPath": "/opt/tb"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    answer = ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path / "out", "--json")
    assert (answer.code, len(answer.json["files"]), answer.json["rules"]) == (
        0,
        3,
        ["vanishing", "odd"],
    )


def test_a_job_is_looked_up_by_its_name(ask, aws, tmp_path):
    client = boto3.client("sagemaker")
    client.create_training_job(
        TrainingJobName="resnet-2023",
        AlgorithmSpecification={"TrainingImage": "image", "TrainingInputMode": "File"},
        RoleArn="arn:aws:iam::123456789012:role/FakeRole",
        OutputDataConfig={"S3OutputPath": "s3://old-bucket/out"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 60},
        DebugHookConfig=JOB["DebugHookConfig"],
        DebugRuleConfigurations=JOB["DebugRuleConfigurations"],
    )
    answer = ask("import-sagemaker", "resnet-2023", "-o", tmp_path, "--json")
    assert answer.json["rules"] == ["vanishing", "odd"]
    missing = ask("import-sagemaker", "resnet-2024", "-o", tmp_path)
    assert (missing.code, "resnet-2024" in missing.err) == (3, True)


def test_an_output_folder_that_is_a_file_is_an_error(ask, tmp_path):
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    for place, hint in (("job.json", "must be a folder"), ("job.json/x", "Part of that path")):
        answer = ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path / place)
        assert (answer.code, hint in answer.err) == (3, True)


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "[" * 100_000])
def test_a_file_without_a_job_is_an_error(ask, tmp_path, text):
    (Path(tmp_path) / "job.json").write_text(text)
    answer = ask("import-sagemaker", tmp_path / "job.json", "-o", tmp_path)
    assert (answer.code, "job.json" in answer.err) == (2, True)


def test_a_report_contains_the_findings_of_the_deployed_debugger(ask, stock, tmp_path):
    failing_run(f"s3://{RUN}", steps=4)
    times = {"saved": "2026-11-21T12:00:00Z", "published": "2026-11-21T12:00:02.5Z"}
    stock.found(VANISHING, 30, times=times)
    answer = ask("report", "teams/resnet", "--deployed", "-o", tmp_path / "r.html", "--json")
    assert answer.code == 1
    verdicts = {verdict["name"]: verdict for verdict in answer.json["verdicts"]}
    assert verdicts["fc"]["steps_found"] == [0, 1, 2, 30]
    assert verdicts["loss"]["status"] == "InProgress"
    page = (tmp_path / "r.html").read_text()
    assert "fc detected a problem at steps 0 to 30." in page
    about = answer_in(page, "about")
    assert {"stage": "saved → published", "median": 2.5, "p99": 2.5} in about["latency"]
    assert re.search(r"Evaluating 4 saved steps of 1 worker has cost about \$0\.0+\d+", about["cost"])
    assert "gradient/fc" in page
