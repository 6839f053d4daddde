"""The smallest policies of a training's role: what it may do below one prefix, and who may take the role."""

from __future__ import annotations

import re
from typing import Any

from smdebug.exceptions import SMDebugValueError

PARTITIONS = ("aws", "aws-cn", "aws-us-gov", "aws-eusc")
TAKEN_BY = {
    "sagemaker": ("sagemaker.amazonaws.com", ("sts:AssumeRole",)),
    "eks": ("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession")),
    "ec2": ("ec2.amazonaws.com", ("sts:AssumeRole",)),
    "batch": ("ecs-tasks.amazonaws.com", ("sts:AssumeRole",)),
}
"""Who takes the role of a training, by where it runs: a job, a pod (Pod Identity), an instance, a task."""
_VERSION = "2012-10-17"
_PLACE = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/([^/].*)")
_KEY = re.compile(r"arn:aws[\w-]*:kms:[\w-]+:\d{12}:key/[\w-]+", re.ASCII)


def training_policy(
    prefix: str, *, partition: str = "aws", key: str | None = None, overwrite: bool = False
) -> dict[str, Any]:
    """Return the policy of a role that saves runs below `prefix`, an `s3://bucket/folder/`.

    With `overwrite` it may also remove or continue finished runs (`if_finished`). `key` is the ARN of the
    bucket's KMS key, if it has one.
    """
    bucket, folder = _parts(prefix)
    arn = f"arn:{partition}:s3:::{bucket}"
    on_objects = ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"]
    statements: list[dict[str, Any]] = [
        {
            "Sid": "SaveRuns",
            "Effect": "Allow",
            "Action": sorted([*on_objects, *(["s3:DeleteObject"] if overwrite else [])]),
            "Resource": f"{arn}/{_literal(folder)}/*",
        },
        # On the whole bucket: with a condition on the prefix, S3 would refuse to say that an object is
        # missing, as a hook has to know of its control files.
        {"Sid": "SeeWhatIsMissing", "Effect": "Allow", "Action": "s3:ListBucket", "Resource": arn},
    ]
    if key:
        if not _KEY.fullmatch(key):
            raise SMDebugValueError(
                f"{key!r} is not the ARN of a KMS key: write arn:{partition}:kms:<region>:<account>:key/<id> "
                "and not an alias"
            )
        statements.append(
            {
                "Sid": "UseTheKeyOfTheBucket",
                "Effect": "Allow",
                "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
                "Resource": key,
                "Condition": {"StringLike": {"kms:ViaService": "s3.*"}},
            }
        )
    return {"Version": _VERSION, "Statement": statements}


def trust_policy(where: str, *, account: str | None = None) -> dict[str, Any]:
    """Return who may take the role: the service that runs the training, for this account alone if given."""
    service, actions = TAKEN_BY[where]
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": list(actions) if len(actions) > 1 else actions[0],
    }
    if account is not None:
        if not re.fullmatch(r"\d{12}", account, re.ASCII):
            raise SMDebugValueError(f"{account!r} is not the number of an account, which has 12 digits")
        if where == "ec2":
            raise SMDebugValueError(
                "EC2 does not say for which account it takes a role, so a condition on it would refuse "
                "every instance: leave the account out"
            )
        statement["Condition"] = {"StringEquals": {"aws:SourceAccount": account}}
    return {"Version": _VERSION, "Statement": [statement]}


def _parts(prefix: str) -> tuple[str, str]:
    match = _PLACE.fullmatch(prefix.rstrip("/"))
    if match is None:
        raise SMDebugValueError(
            f"{prefix!r} is not a folder of a bucket: write s3://bucket/folder/. A role that may write to a "
            "whole bucket keeps no runs apart"
        )
    folder = match[2]
    if any(part in ("", ".", "..") for part in folder.split("/")):
        raise SMDebugValueError(f"{prefix!r} has an empty folder, '.' or '..', which S3 takes literally")
    return match[1], folder


def _literal(text: str) -> str:
    """Return the text with the wildcards of policies escaped."""
    return "".join(f"${{{letter}}}" if letter in "*?$" else letter for letter in text)
