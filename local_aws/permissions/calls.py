"""The IAM permissions that a request to AWS needs: which actions on which resources."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from local_aws.errors import Unsupported
from local_aws.template import ACCOUNT, REGION

_HERE = f"{REGION}:{ACCOUNT}"


@dataclass(frozen=True)
class Permission:
    """One action on one resource, with the condition keys of the call."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A request as it arrives over HTTP."""

    service: str  # as named in the signature
    method: str
    path: str
    query: str
    target: str  # the header X-Amz-Target
    body: bytes
    copied_from: str = ""
    is_asynchronous: bool = False  # an invocation that nobody waits for

    @property
    def is_invocation(self) -> bool:
        """Whether it calls a function."""
        return self.service == "lambda" and bool(self.called)

    @property
    def called(self) -> str:
        """The function that it calls, by its name or its ARN; empty if it calls none."""
        match = re.fullmatch(r"/2015-03-31/functions/([^/]+)/invocations", self.path)
        return unquote(match[1]) if match else ""

    @property
    def protocol(self) -> str:
        """The protocol in which the client expects errors."""
        if self.service == "s3":
            return "rest-xml"
        if self.service in ("sns", "sts", "iam"):
            return "query"
        return "json" if self.target else "rest-json"


def permissions_for(request: Request) -> list[Permission]:
    """Return what the caller must be allowed to do. An unknown call raises: it would go unchecked."""
    readers = {
        "s3": _s3,
        "dynamodb": _dynamodb,
        "sqs": _sqs,
        "states": _states,
        "events": _events,
        "sns": _query,
        "sts": _query,
        "scheduler": _scheduler,
        "lambda": _lambda,
        "sagemaker": _sagemaker,
        "batch": _batch,
        "secretsmanager": _secretsmanager,
        "ssm": _ssm,
    }
    if request.service not in readers:
        raise Unsupported(
            f"A handler called {request.service}, for which the local stack cannot check permissions"
        )
    permissions = readers[request.service](request)
    if not permissions:
        raise Unsupported(
            f"A handler made a call to {request.service} whose permissions the local stack cannot "
            f"check: {request.method} {request.path} {request.target}"
        )
    return permissions


def queue_arn(url: str) -> str:
    """The ARN of a queue, from its URL."""
    return f"arn:aws:sqs:{_HERE}:{url.rsplit('/', 1)[-1]}"


def table_arn(name: str) -> str:
    return name if name.startswith("arn:") else f"arn:aws:dynamodb:{_HERE}:table/{name}"


def bus_arn(name: str) -> str:
    return f"arn:aws:events:{_HERE}:event-bus/{name}"


def _s3(request: Request) -> list[Permission]:
    bucket, _, key = unquote(request.path).lstrip("/").partition("/")
    query = parse_qs(request.query, keep_blank_values=True)
    bucket_arn = f"arn:aws:s3:::{bucket}"
    if not key:
        if request.method in ("GET", "HEAD") and not set(query) & {"notification", "policy"}:
            prefix = query.get("prefix", [""])[0]
            return [Permission("s3:ListBucket", bucket_arn, {"s3:prefix": prefix})]
        return []
    arn = f"{bucket_arn}/{key}"
    if request.method in ("GET", "HEAD"):
        return [Permission("s3:GetObject", arn)]
    if request.method in ("PUT", "POST"):
        source = unquote(request.copied_from).lstrip("/")
        copied = [Permission("s3:GetObject", f"arn:aws:s3:::{source}")] if source else []
        return [Permission("s3:PutObject", arn), *copied]
    if request.method == "DELETE":
        action = "s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject"
        return [Permission(action, arn)]
    return []


_TRANSACTED = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


def _dynamodb(request: Request) -> list[Permission]:
    action, payload = _json(request)
    if action in ("TransactWriteItems", "TransactGetItems"):
        return [
            Permission(f"dynamodb:{_TRANSACTED[kind]}", table_arn(part["TableName"]))
            for item in payload["TransactItems"]
            for kind, part in item.items()
        ]
    if action in ("BatchGetItem", "BatchWriteItem"):
        return [Permission(f"dynamodb:{action}", table_arn(name)) for name in payload["RequestItems"]]
    table = table_arn(payload["TableName"])
    if payload.get("IndexName"):
        table += f"/index/{payload['IndexName']}"
    return [Permission(f"dynamodb:{action}", table)]


def _sqs(request: Request) -> list[Permission]:
    action, payload = _json(request)
    single = {
        "SendMessageBatch": "SendMessage",
        "DeleteMessageBatch": "DeleteMessage",
        "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    }
    return [Permission(f"sqs:{single.get(action, action)}", queue_arn(payload["QueueUrl"]))]


def _states(request: Request) -> list[Permission]:
    action, payload = _json(request)
    arn = payload.get("stateMachineArn") or payload.get("executionArn")
    return [Permission(f"states:{action}", arn)] if arn else []


def _events(request: Request) -> list[Permission]:
    action, payload = _json(request)
    if action != "PutEvents":
        return []
    buses = {entry.get("EventBusName", "default") for entry in payload["Entries"]}
    return [
        Permission("events:PutEvents", bus if bus.startswith("arn:") else bus_arn(bus))
        for bus in sorted(buses)
    ]


def _query(request: Request) -> list[Permission]:
    payload = {key: values[0] for key, values in parse_qs(request.body.decode()).items()}
    action = payload.get("Action", "")
    resource = {
        "Publish": payload.get("TopicArn"),
        "AssumeRole": payload.get("RoleArn"),
        "GetCallerIdentity": "*",
    }.get(action)
    return [Permission(f"{request.service}:{action}", resource)] if resource else []


def _scheduler(request: Request) -> list[Permission]:
    match = re.fullmatch(r"/schedules/([^/]+)", request.path)
    actions = {"POST": "CreateSchedule", "PUT": "UpdateSchedule"}
    if not match or request.method not in actions:
        return []
    payload = json.loads(request.body)
    name = f"{payload.get('GroupName', 'default')}/{unquote(match[1])}"
    passed = Permission(
        "iam:PassRole",
        payload["Target"]["RoleArn"],
        {"iam:PassedToService": "scheduler.amazonaws.com"},
    )
    arn = f"arn:aws:scheduler:{_HERE}:schedule/{name}"
    return [Permission(f"scheduler:{actions[request.method]}", arn), passed]


def _lambda(request: Request) -> list[Permission]:
    name = request.called
    if not name or request.method != "POST":
        return []
    arn = name if name.startswith("arn:") else f"arn:aws:lambda:{_HERE}:function:{name}"
    return [Permission("lambda:InvokeFunction", arn)]


def _batch(request: Request) -> list[Permission]:
    match request.path.rpartition("/")[2]:
        case "terminatejob":
            job = json.loads(request.body)["jobId"]
            return [Permission("batch:TerminateJob", f"arn:aws:batch:{_HERE}:job/{job}")]
        case "listjobs":
            return [Permission("batch:ListJobs", "*")]
        case "describejobs":
            return [Permission("batch:DescribeJobs", "*")]
    return []


def _sagemaker(request: Request) -> list[Permission]:
    action, payload = _json(request)
    job = f"arn:aws:sagemaker:{_HERE}:training-job/{payload.get('TrainingJobName')}"
    return [Permission(f"sagemaker:{action}", job)]


def _secretsmanager(request: Request) -> list[Permission]:
    action, payload = _json(request)
    # The six characters are those of AWS's choice; here they are always the same.
    arn = f"arn:aws:secretsmanager:{_HERE}:secret:{payload.get('SecretId')}-abcdef"
    return [Permission(f"secretsmanager:{action}", arn)]


def _ssm(request: Request) -> list[Permission]:
    action, payload = _json(request)
    name = str(payload.get("Name")).lstrip("/")
    return [Permission(f"ssm:{action}", f"arn:aws:ssm:{_HERE}:parameter/{name}")]


def _json(request: Request) -> tuple[str, dict[str, Any]]:
    payload: dict[str, Any] = json.loads(request.body or b"{}")
    return request.target.rsplit(".", 1)[-1], payload
