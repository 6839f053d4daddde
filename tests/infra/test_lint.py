"""cfn-lint and cdk-nag's AwsSolutions report nothing that is not acknowledged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_nag import AwsSolutionsChecks

from infra import app
from infra.app import NAME, app_with
from infra.packaging.assets import ROOT
from infra.settings import Settings
from tests.infra.conftest import CONTEXT, UNBUNDLED, Stack


def violations(settings: Settings, folder: Path, *, unacknowledged: bool = False) -> list[str]:
    synthesized = app_with(
        settings, context=UNBUNDLED, outdir=str(folder), builtin_cloud_formation_validation=False
    )
    cdk.Validations.of(synthesized).add_plugins(AwsSolutionsChecks(synthesized))
    if unacknowledged:
        cdk.aws_sqs.CfnQueue(synthesized.node.find_child(NAME), "Unacknowledged")
    with suppress(RuntimeError):  # the report has the reason of the failure
        synthesized.synth()
    report = json.loads((folder / "validation-report.json").read_text(encoding="utf-8"))
    return [
        f"{violation['ruleName']} {where['constructPath']}"
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for where in violation["violatingConstructs"]
    ]


@pytest.mark.parametrize("which", ["", "everything", "zone_settings", "joined_settings"])
def test_cdk_nag_reports_nothing_unacknowledged(which: str, request: pytest.FixtureRequest, tmp_path: Path):
    settings = request.getfixturevalue(which) if which else Settings()
    assert violations(settings, tmp_path) == []


def test_cdk_nag_reports_an_unacknowledged_violation(tmp_path: Path):
    found = violations(Settings(), tmp_path, unacknowledged=True)
    assert found
    assert all("Unacknowledged" in violation for violation in found)


def test_cfn_lint_reports_nothing(
    request: pytest.FixtureRequest, synthesize: Callable[..., Stack], tmp_path: Path
):
    kept = synthesize(Settings(table="smdebug-kept", gradual_deployment=True))
    files = []
    names = ("default_stack", "full_stack", "zone_stack", "joined_stack")
    stacks = {name: request.getfixturevalue(name) for name in names}
    for name, stack in (*stacks.items(), ("kept_table", kept)):
        files.append(tmp_path / f"{name}.json")
        # cfn-lint knows the integrations of Step Functions in the commercial partition only.
        text = json.dumps(stack.template).replace("arn:${Partition}:states:::", "arn:aws:states:::")
        files[-1].write_text(text.replace('"Partition": {"Ref": "AWS::Partition"}, ', ""), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from cfnlint.runner import main; main()", "--", *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0


def test_the_app_synthesizes_in_a_process(tmp_path: Path, default_stack: Stack):
    """As in `cdk deploy`, but without building the layer, which `make synth` does."""
    program = (
        "import sys; from infra.app import app_with; "
        "app_with(outdir=sys.argv[1], context={'aws:cdk:bundling-stacks': []}, "
        "builtin_cloud_formation_validation=False).synth()"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=True, timeout=120)
    written = json.loads((tmp_path / f"{NAME}.template.json").read_text(encoding="utf-8"))
    assert written["Resources"].keys() == default_stack.resources.keys()


def test_make_synth_writes_the_template_into_cdk_out(tmp_path: Path, default_stack: Stack):
    done = subprocess.run(
        [sys.executable, "-m", "infra.app"],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "CDK_CONTEXT_JSON": json.dumps(UNBUNDLED),
        },
        check=True,
        timeout=300,
        stdout=subprocess.PIPE,
        text=True,
    )
    printed = Path(done.stdout.strip().splitlines()[-1])
    assert printed.samefile(tmp_path / "cdk.out" / f"{NAME}.template.json")
    written = json.loads(printed.read_text("utf-8"))
    assert written["Resources"].keys() == default_stack.resources.keys()


def test_without_the_cdk_cli_the_context_is_that_of_cdk_json():
    assert app._options_without_cli({}) == {"outdir": "cdk.out", "context": CONTEXT}
    assert app._options_without_cli({"CDK_OUTDIR": "x", "CDK_CONTEXT_JSON": "{}"}) == {}


def test_an_invalid_setting_ends_the_app_with_one_sentence(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "infra.app"],
        cwd=ROOT,
        env={"CDK_CONTEXT_JSON": '{"alert_email": "me"}', "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "There is no setting 'alert_email'; did you mean 'alert_emails'?"
