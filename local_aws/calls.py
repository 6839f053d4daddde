"""What a request to AWS asks for, in the words of IAM: which actions on which resources."""

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
class Asked:
    """One permission that a call needs."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A request as it comes over the wire."""

    service: str  # as it is signed for
    method: str
    path: str
    query: str
    target: str  # the header X-Amz-Target
    body: bytes
    copied_from: str = ""

    @property
    def protocol(self) -> str:
        """How an error has to be worded for the client to understand it."""
        if self.service == "s3":
            return "rest-xml"
        if self.service in ("sns", "sts", "iam"):
            return "query"
        return "json" if self.target else "rest-json"


def asked_by(request: Request) -> list[Asked]:
    """What the caller has to be allowed. A call that is not known here raises: it would go unchecked."""
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
    }
    if request.service not in readers:
        raise Unsupported(f"A handler called {request.service}, which nobody here knows to check")
    asked = readers[request.service](request)
    if not asked:
        raise Unsupported(
            f"A handler made a call to {request.service} that nobody here knows to check: "
            f"{request.method} {request.path} {request.target}"
        )
    return asked


def queue_arn(url: str) -> str:
    """The ARN of a queue, from its URL."""
    return f"arn:aws:sqs:{_HERE}:{url.rsplit('/', 1)[-1]}"


def table_arn(name: str) -> str:
    return name if name.startswith("arn:") else f"arn:aws:dynamodb:{_HERE}:table/{name}"


def _s3(request: Request) -> list[Asked]:
    bucket, _, key = unquote(request.path).lstrip("/").partition("/")
    query = parse_qs(request.query, keep_blank_values=True)
    arn = f"arn:aws:s3:::{bucket}"
    if not key:
        if request.method in ("GET", "HEAD") and not set(query) & {"notification", "policy"}:
            prefix = query.get("prefix", [""])[0]
            return [Asked("s3:ListBucket", arn, {"s3:prefix": prefix})]
        return []
    there = f"{arn}/{key}"
    if request.method in ("GET", "HEAD"):
        return [Asked("s3:GetObject", there)]
    if request.method in ("PUT", "POST"):
        source = unquote(request.copied_from).lstrip("/")
        copied = [Asked("s3:GetObject", f"arn:aws:s3:::{source}")] if source else []
        return [Asked("s3:PutObject", there), *copied]
    if request.method == "DELETE":
        what = "s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject"
        return [Asked(what, there)]
    return []


_TRANSACTED = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Get": "GetItem",
}


def _dynamodb(request: Request) -> list[Asked]:
    action, told = _json(request)
    if action in ("TransactWriteItems", "TransactGetItems"):
        return [
            Asked(f"dynamodb:{_TRANSACTED[kind]}", table_arn(what["TableName"]))
            for item in told["TransactItems"]
            for kind, what in item.items()
        ]
    if action in ("BatchGetItem", "BatchWriteItem"):
        return [Asked(f"dynamodb:{action}", table_arn(name)) for name in told["RequestItems"]]
    table = table_arn(told["TableName"])
    if told.get("IndexName"):
        table += f"/index/{told['IndexName']}"
    return [Asked(f"dynamodb:{action}", table)]


def _sqs(request: Request) -> list[Asked]:
    action, told = _json(request)
    single = {
        "SendMessageBatch": "SendMessage",
        "DeleteMessageBatch": "DeleteMessage",
        "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    }
    return [Asked(f"sqs:{single.get(action, action)}", queue_arn(told["QueueUrl"]))]


def _states(request: Request) -> list[Asked]:
    action, told = _json(request)
    arn = told.get("stateMachineArn") or told.get("executionArn")
    return [Asked(f"states:{action}", arn)] if arn else []


def _events(request: Request) -> list[Asked]:
    action, told = _json(request)
    if action != "PutEvents":
        return []
    buses = {entry.get("EventBusName", "default") for entry in told["Entries"]}
    return [
        Asked("events:PutEvents", bus if bus.startswith("arn:") else bus_arn(bus))
        for bus in sorted(buses)
    ]


def bus_arn(name: str) -> str:
    return f"arn:aws:events:{_HERE}:event-bus/{name}"


def _query(request: Request) -> list[Asked]:
    told = {key: values[0] for key, values in parse_qs(request.body.decode()).items()}
    action = told.get("Action", "")
    resource = {
        "Publish": told.get("TopicArn"),
        "AssumeRole": told.get("RoleArn"),
        "GetCallerIdentity": "*",
    }.get(action)
    return [Asked(f"{request.service}:{action}", resource)] if resource else []


def _scheduler(request: Request) -> list[Asked]:
    found = re.fullmatch(r"/schedules/([^/]+)", request.path)
    actions = {"POST": "CreateSchedule", "PUT": "UpdateSchedule"}
    if not found or request.method not in actions:
        return []
    told = json.loads(request.body)
    name = f"{told.get('GroupName', 'default')}/{unquote(found[1])}"
    passed = Asked(
        "iam:PassRole",
        told["Target"]["RoleArn"],
        {"iam:PassedToService": "scheduler.amazonaws.com"},
    )
    arn = f"arn:aws:scheduler:{_HERE}:schedule/{name}"
    return [Asked(f"scheduler:{actions[request.method]}", arn), passed]


def _lambda(request: Request) -> list[Asked]:
    found = re.fullmatch(r"/2015-03-31/functions/([^/]+)/invocations", request.path)
    if not found or request.method != "POST":
        return []
    name = unquote(found[1])
    arn = name if name.startswith("arn:") else f"arn:aws:lambda:{_HERE}:function:{name}"
    return [Asked("lambda:InvokeFunction", arn)]


def _sagemaker(request: Request) -> list[Asked]:
    action, told = _json(request)
    name = told.get("TrainingJobName")
    return [Asked(f"sagemaker:{action}", f"arn:aws:sagemaker:{_HERE}:training-job/{name}")]


def _json(request: Request) -> tuple[str, dict[str, Any]]:
    told: dict[str, Any] = json.loads(request.body or b"{}")
    return request.target.rsplit(".", 1)[-1], told
