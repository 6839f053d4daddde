"""The ports for the queue, the workflow, the schedules and the objects, on AWS."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from functions.ports import LARGEST_OBJECT, too_large
from smdebug.exceptions import AccessDenied, ObjectMissing, StorageUnavailable

Client = Callable[[], Any]


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()


class Workflows:
    """The state machine that evaluates steps."""

    def __init__(self, arn: str, client: Client):
        self._arn = arn
        self._client = client

    def start(self, name: str, request: Mapping[str, Any]) -> None:
        client = self._client()
        # One of that name is running or has run; the check that was left covers the rest.
        with suppress(client.exceptions.ExecutionAlreadyExists):
            client.start_execution(stateMachineArn=self._arn, name=name, input=json.dumps(request))


class CheckQueueInSqs:
    """The queue of messages to ourselves."""

    def __init__(self, url: str, client: Client):
        self._url = url
        self._client = client

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        self._client().send_message(
            QueueUrl=self._url, MessageBody=json.dumps(message), DelaySeconds=after_seconds
        )


_SOONEST = 2
"""Seconds. A time that is past when the request arrives is accepted, but nothing says that it fires."""


class OneShotSchedules:
    """EventBridge schedules that fire once: one per run for its silence, and others for its checks."""

    def __init__(self, *, group: str, role: str, target: str, client: Client):
        self._group = group
        self._role = role
        self._target = target
        self._client = client

    def wake(self, run: str, *, at: float) -> None:
        client = self._client()
        schedule = self._schedule(run, at, {"run": run})
        try:
            client.create_schedule(**schedule)
        except client.exceptions.ConflictException:
            client.update_schedule(**schedule)

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        """Leave a message for the watch handler.

        It does not return to the queue that caused it: after about 16 times, Lambda ends such a loop.
        """
        client = self._client()
        at = math.ceil(time.time() + max(after_seconds, _SOONEST))
        ((kind, run),) = ((key, message[key]) for key in ("check", "finish", "list") if key in message)
        # One of that name is the same message at the same second.
        with suppress(client.exceptions.ConflictException):
            client.create_schedule(**self._schedule(run, at, message, f"-{kind}-{at}"))

    def _schedule(self, run: str, at: float, message: Mapping[str, Any], suffix: str = "") -> dict[str, Any]:
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return {
            "Name": f"run-{sha256(run.encode()).hexdigest()[:40]}{suffix}",
            "GroupName": self._group,
            "ScheduleExpression": f"at({moment})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": {
                "Arn": self._target,
                "RoleArn": self._role,
                "Input": json.dumps(message),
            },
        }


class CredentialsOfRole:
    """A role whose credentials are lent, each time limited by a session policy."""

    def __init__(self, role: str, client: Client):
        self._role = role
        self._client = client

    def lend(self, name: str, policy: Mapping[str, Any], *, seconds: int) -> Mapping[str, str]:
        answer = self._client().assume_role(
            RoleArn=self._role,
            RoleSessionName=name,
            Policy=json.dumps(policy, separators=(",", ":")),
            DurationSeconds=seconds,
        )
        credentials = answer["Credentials"]
        names = {
            "AWS_ACCESS_KEY_ID": "AccessKeyId",
            "AWS_SECRET_ACCESS_KEY": "SecretAccessKey",
            "AWS_SESSION_TOKEN": "SessionToken",
        }
        return {name: str(credentials[its]) for name, its in names.items()}


class S3Object(NamedTuple):
    """An object in a listing."""

    key: str
    modified: float


class ObjectsInS3:
    """Whole objects, and listings."""

    def __init__(self, client: Client):
        self._client = client

    def read(self, bucket: str, key: str) -> bytes:
        place = f"s3://{bucket}/{key}"
        try:
            found = self._client().get_object(Bucket=bucket, Key=key)
            if found["ContentLength"] <= LARGEST_OBJECT:
                body: bytes = found["Body"].read()
                return body
            found["Body"].close()
        except Exception as error:
            raise _spoken(error, place) from error
        raise too_large(place, found["ContentLength"])

    def modified(self, bucket: str, key: str) -> float | None:
        place = f"s3://{bucket}/{key}"
        try:
            found = self._client().head_object(Bucket=bucket, Key=key)
        except Exception as error:
            spoken = _spoken(error, place)
            if isinstance(spoken, ObjectMissing):
                return None
            raise spoken from error
        return float(found["LastModified"].timestamp())

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterator[S3Object]:
        request = {"Bucket": bucket, "Prefix": prefix, **({"StartAfter": after} if after else {})}
        try:
            for page in self._client().get_paginator("list_objects_v2").paginate(**request):
                for found in page.get("Contents", ()):
                    yield S3Object(found["Key"], found["LastModified"].timestamp())
        except Exception as error:
            raise _spoken(error, f"s3://{bucket}/{prefix}") from error


def _spoken(error: Exception, place: str) -> Exception:
    """Translate the errors of S3 to those of our storage."""
    code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
    if code in ("NoSuchKey", "404", "NoSuchBucket"):
        return ObjectMissing(place)
    if code in ("AccessDenied", "403"):
        return AccessDenied(place, f"this function's role does not allow to read it ({error})")
    return StorageUnavailable(place, str(error))
