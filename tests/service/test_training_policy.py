"""The policy of a training's role allows what a hook does, below its folder and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.client
import numpy as np
import pytest

import smdebug
from local_aws.permissions.calls import Permission, Request, permissions_for
from local_aws.permissions.policies import Statement
from smdebug.exceptions import SMDebugValueError
from smdebug.saving.place.finished import place_for_another_run
from smdebug.service.training_policy import TAKEN_BY, training_policy, trust_policy
from tests.support.looking import each
from tests.support.mocked_aws import mocked_aws

FOLDER = "s3://runs/teams/vision/"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1a2b-3c"


class Requests(list[Permission]):
    """What the requests of this process need, as IAM names it."""

    def note(self, request: Any, **_: Any) -> None:
        parts = urlsplit(request.url)
        bucket = parts.netloc.partition(".s3.")[0] if ".s3." in parts.netloc else ""
        path = f"/{bucket}{parts.path}" if bucket else parts.path
        self += permissions_for(Request("s3", request.method, path, parts.query, "", b""))

    def note_missing(self, http_response: Any, **_: Any) -> None:
        """S3 answers 404 only to those who may list the bucket, without a prefix; others get 403."""
        if http_response.status_code == 404:
            self.append(Permission("s3:ListBucket", "arn:aws:s3:::runs"))


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Requests]:
    seen = Requests()
    make = botocore.client.ClientCreator.create_client

    def create(self: Any, *arguments: Any, **more: Any) -> Any:
        client = make(self, *arguments, **more)
        client.meta.events.register_first("before-send.s3", seen.note)
        client.meta.events.register("after-call.s3", seen.note_missing)
        return client

    with mocked_aws():
        boto3.client("s3").create_bucket(Bucket="runs")
        monkeypatch.setattr(botocore.client.ClientCreator, "create_client", create)
        yield seen


def save(run: str) -> None:
    with smdebug.Hook(run, save_all=True) as hook:
        for _ in range(2):
            with hook.step():
                hook.record("loss", 1.0)
                hook.record("w", np.ones(4))


def is_allowed(permission: Permission, policy: dict[str, Any]) -> bool:
    statements = map(Statement.parse, (dict(s, Sid=s["Sid"]) for s in policy["Statement"]))
    return any(statement.applies_to(permission, permission.context, ()) for statement in statements)


def test_a_hook_does_nothing_that_the_policy_refuses(requests: Requests):
    save(f"{FOLDER}run")
    assert {"s3:PutObject", "s3:GetObject", "s3:ListBucket"} <= {p.action for p in requests}
    policy = training_policy(FOLDER)
    assert [permission for permission in requests if not is_allowed(permission, policy)] == []


@pytest.mark.parametrize("if_finished", ["overwrite", "resume"])
def test_removing_and_continuing_needs_overwrite(requests: Requests, if_finished: str):
    save(f"{FOLDER}run")
    save(place_for_another_run(f"{FOLDER}run", if_finished=if_finished))
    refused = [p for p in requests if not is_allowed(p, training_policy(FOLDER))]
    assert {permission.action for permission in refused} == {"s3:DeleteObject"}
    assert not [p for p in requests if not is_allowed(p, training_policy(FOLDER, overwrite=True))]


def test_a_run_beside_the_folder_is_refused(requests: Requests):
    save("s3://runs/teams/vision-secret/run")
    policy = training_policy(FOLDER)
    on_objects = [permission for permission in requests if permission.action != "s3:ListBucket"]
    assert not [permission for permission in each(on_objects, at_least=5) if is_allowed(permission, policy)]


def test_wildcards_in_a_folder_are_literal():
    policy = training_policy("s3://runs/te?m*/$x/")
    assert policy["Statement"][0]["Resource"] == "arn:aws:s3:::runs/te${?}m${*}/${$}x/*"


def test_a_key_is_used_through_s3_alone():
    policy = training_policy(FOLDER, key=KEY)
    key = policy["Statement"][-1]
    assert key["Resource"] == KEY
    assert key["Condition"] == {"StringLike": {"kms:ViaService": "s3.*"}}
    assert "kms" not in json.dumps(training_policy(FOLDER))


def test_the_partition_is_that_of_the_bucket():
    assert "arn:aws:" not in json.dumps(training_policy(FOLDER, partition="aws-cn"))


@pytest.mark.parametrize("where", TAKEN_BY)
def test_each_service_takes_the_role(where: str):
    (statement,) = trust_policy(where)["Statement"]
    assert statement["Principal"] == {"Service": TAKEN_BY[where][0]}
    assert "Condition" not in statement
    if where != "ec2":
        (narrow,) = trust_policy(where, account="123456789012")["Statement"]
        assert narrow["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}


def test_a_pod_needs_tags_of_its_session():
    assert trust_policy("eks")["Statement"][0]["Action"] == ["sts:AssumeRole", "sts:TagSession"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: training_policy("s3://runs"), "write s3://bucket/folder/"),
        (lambda: training_policy("s3://runs/"), "keeps no runs apart"),
        (lambda: training_policy("runs/vision/"), "is not a folder of a bucket"),
        (lambda: training_policy("s3://Runs/vision/"), "is not a folder of a bucket"),
        (lambda: training_policy("s3://runs/a/../b/"), "takes literally"),
        (lambda: training_policy(FOLDER, key="alias/mine"), "and not an alias"),
        (lambda: trust_policy("sagemaker", account="12"), "has 12 digits"),
        (lambda: trust_policy("ec2", account="123456789012"), "leave the account out"),
    ],
)
def test_what_is_no_folder_key_or_account_is_refused(call, message):
    with pytest.raises(SMDebugValueError, match=message):
        call()
