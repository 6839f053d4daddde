"""The quota of the account, for which `make deploy` sets the stack."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from infra.account import quota as account_quota
from infra.settings import Settings

ROOT = Path(__file__).parents[3]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Stubber:
    """An account whose client answers as it is told; the session that asked is noted."""
    client = boto3.client("lambda", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    stubber = Stubber(client)

    class Session:
        def __init__(self, **of_session: Any):
            stubber.session = of_session

        def client(self, service: str) -> Any:
            assert service == "lambda"
            return client

    monkeypatch.setattr(boto3, "Session", Session)
    return stubber


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    monkeypatch.setattr("sys.argv", ["account_quota", *arguments])
    account_quota.main()
    return capsys.readouterr()


def answer(quota: int) -> dict[str, Any]:
    return {"AccountLimit": {"ConcurrentExecutions": quota}, "AccountUsage": {}}


@pytest.mark.parametrize(("quota", "deployed"), [(1000, 1000), (10, 10), (5, 10)])
def test_a_stack_is_deployed_for_the_quota_of_the_account(account, monkeypatch, capsys, quota, deployed):
    account.add_response("get_account_settings", answer(quota))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with account:
        said = printed(monkeypatch, capsys, "--profile", "team", "-c", "alert_emails=a@b.org")
    name, _, value = said.out.removeprefix("-c ").strip().partition("=")
    assert Settings.from_context({name: value}).account_concurrency == deployed
    assert f"{quota:,} functions at once" in said.err
    assert account.session == {"profile_name": "team", "region_name": "eu-west-1"}


def test_a_setting_that_is_given_is_left_alone(account, monkeypatch, capsys):
    with account:  # which answers nothing
        said = printed(monkeypatch, capsys, "-c", "account_concurrency=500")
    assert (said.out, said.err) == ("", "")


def test_an_account_that_does_not_say_is_taken_for_the_smallest_one(account, monkeypatch, capsys):
    account.add_client_error("get_account_settings", "AccessDeniedException", "not for you")
    with account:
        said = printed(monkeypatch, capsys)
    assert said.out == ""
    assert "not for you" in said.err
    assert "deployed for 10. Name yours with -c account_concurrency=N" in said.err


def test_make_hands_the_setting_to_the_cdk(tmp_path: Path):
    """The words that the CDK gets; its own command and the one that asks are replaced by echoes."""
    for name, says in {"npx": 'echo "npx $*"', "bin/python": "echo -c account_concurrency=70"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [
            "make",
            "--no-print-directory",
            "-C",
            ROOT,
            "deploy",
            "READY=",
            f"BIN={tmp_path}/bin",
            "ARGS=-c stack=other",
        ],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    asked, ran = done.stdout.splitlines()
    assert asked.startswith("npx --yes aws-cdk@")
    assert ran.endswith("deploy -c account_concurrency=70 -c stack=other")
