"""The client's calls to AWS: the stack, its table, its logs.

The only boto3 clients of this room, made on first use. Errors become our own: `StackUnknown`,
`AccessDenied` with the missing permission, `StorageUnavailable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    AccessDenied,
    SMDebugCustomerError,
    SMDebugError,
    SMDebugRuntimeError,
    StackUnknown,
    StorageUnavailable,
)
from smdebug.extras import install_command
from smdebug.service.log_lines import LogLine, log_line
from smdebug.service.step_index.attributes import as_attributes, item_in, read_pages
from smdebug.service.step_index.item_reader import Item, ItemReader, KeyRange

if TYPE_CHECKING:
    from smdebug.storage import Storage

Clients = Callable[[str], Any]  # returns the client of a service, by its name

# The names that an output of a stack may have.
_TABLE = ("StepIndex", "Table")
_BUCKET = ("Bucket",)
_LOG = ("Log", "Logs", "LogGroup", "LogGroups")  # at the end of the name
_LONGEST_PATTERN = 1024
_GONE = frozenset(("ResourceNotFoundException", "ResourceNotFound", "ParameterNotFound"))
_DENIED = frozenset(("AccessDenied", "AccessDeniedException", "UnauthorizedOperation"))
_BAD_CREDENTIALS = frozenset(
    (
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    )
)
_LATER = frozenset(
    (
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Throttling",
        "ThrottlingException",
    )
)


@dataclass(frozen=True)
class Deployment:
    """The resources of one deployed debugger."""

    table: str
    bucket: str = ""
    stack: str = ""
    log_groups: tuple[str, ...] = ()
    outputs: Mapping[str, str] | None = None  # all outputs of the stack: WorkflowArn, TopicArn, …

    def __str__(self) -> str:
        return f"stack {self.stack}" if self.stack else f"table {self.table}"


def find_deployment(stack: str, clients: Clients) -> Deployment:
    """Return the debugger that a stack has deployed, from the stack's outputs."""
    client = clients("cloudformation")
    place = f"The stack {stack} in {client.meta.region_name}"
    with aws_errors(place, "cloudformation:DescribeStacks"):
        (found,) = client.describe_stacks(StackName=stack)["Stacks"]
    outputs = {item["OutputKey"]: item["OutputValue"] for item in found.get("Outputs", ())}
    table = output_of(outputs, *_TABLE)
    if table is None:
        names = ", ".join(outputs) or "none"
        raise StackUnknown(place, f"not a debugger: no output {_TABLE[0]} among its outputs ({names})")
    return Deployment(
        table=table,
        bucket=output_of(outputs, *_BUCKET) or "",
        stack=stack,
        log_groups=_log_groups(outputs),
        outputs=outputs,
    )


def output_of(outputs: Mapping[str, str], *names: str) -> str | None:
    """The output with one of these names. In a user's own stack CDK adds a path before and a digest after."""
    for name in names:
        like = [key for key in outputs if _name_in(key).endswith(name)]
        if name in outputs or len(like) == 1:
            return outputs[name if name in outputs else like[0]]
    return None


def _log_groups(outputs: Mapping[str, str]) -> tuple[str, ...]:
    lists = (outputs[key] for key in sorted(outputs) if _name_in(key).endswith(_LOG))
    names = (name.strip() for groups in lists for name in groups.split(","))
    return tuple(filter(None, names))


def _name_in(key: str) -> str:
    return re.sub(r"[0-9A-F]{8}$", "", key)


class Table(ItemReader):
    """The step index in DynamoDB, read only."""

    def __init__(self, name: str, clients: Clients):
        self._name = name
        self._clients = clients

    def get(self, pk: str, sk: str) -> Item | None:
        key = as_attributes({"pk": pk, "sk": sk})
        answer = self._ask("get_item", "dynamodb:GetItem", Key=key, ConsistentRead=True)
        return item_in(answer["Item"]) if "Item" in answer else None

    def read_range(self, keys: KeyRange) -> list[Item]:
        return read_pages(lambda **page: self._ask("query", "dynamodb:Query", **page), keys)

    def _ask(self, operation: str, permission: str, **request: Any) -> Any:
        client = self._clients("dynamodb")
        place = f"The table {self._name} in {client.meta.region_name}"
        with aws_errors(place, permission):
            return getattr(client, operation)(TableName=self._name, **request)


class Logs:
    """The logs of the functions."""

    def __init__(self, groups: Sequence[str], clients: Clients):
        self._groups = tuple(groups)
        self._clients = clients

    def lines(self, run: str, rules: Sequence[str], since: float | None) -> Iterator[LogLine]:
        """Yield the JSON lines with that run and any of these rules, group by group, each in order."""
        for group in self._groups:
            yield from self._lines_of(group, run, rules, since)

    def _lines_of(self, group: str, run: str, rules: Sequence[str], since: float | None) -> Iterator[LogLine]:
        client = self._clients("logs")
        request: dict[str, Any] = {"logGroupName": group}
        if pattern := filter_pattern(run, rules):
            request["filterPattern"] = pattern
        if since is not None:
            request["startTime"] = int(since * 1000)
        place = f"The log group {group} in {client.meta.region_name}"
        while True:
            with aws_errors(place, "logs:FilterLogEvents"):
                answer = client.filter_log_events(**request)
            for event in answer["events"]:
                fields = _json_of(event["message"])
                if fields.get("run") == run and fields.get("rule") in rules:
                    yield log_line(fields, event["timestamp"])
            if "nextToken" not in answer:
                return
            request["nextToken"] = answer["nextToken"]


def filter_pattern(run: str, rules: Sequence[str]) -> str:
    """The filter pattern for CloudWatch; empty if it would be longer than CloudWatch allows."""
    named = " || ".join(f"$.rule = {_quoted(rule)}" for rule in rules)
    pattern = f"{{ ($.run = {_quoted(run)}) && ({named}) }}"
    return pattern if len(pattern) <= _LONGEST_PATTERN else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _json_of(message: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def run_storage(run: str, clients: Clients) -> Storage:
    """The storage of a run, named `bucket/prefix`."""
    from smdebug.storage.s3 import S3Storage

    return S3Storage.at(run, clients("s3"))


def default_clients() -> Clients:
    """Clients with the credentials and the region that boto3 finds."""
    from smdebug.storage.s3_clients import settings_of_aws

    return _clients_under(settings_of_aws())


@lru_cache(maxsize=8)
def _clients_under(settings: Hashable) -> Clients:
    try:
        from boto3.session import Session
        from botocore.config import Config
    except ImportError as error:
        raise SMDebugCustomerError(
            f"Querying a deployed debugger needs boto3: {install_command('aws')}"
        ) from error
    from smdebug.storage.s3_clients import region

    patient = Config(retries={"mode": "standard", "max_attempts": 6}, connect_timeout=10, read_timeout=60)
    session: Any = Session(region_name=region())

    def client(service: str) -> Any:
        with aws_errors(f"AWS ({service})", f"{service}:*"):
            return session.client(service, config=patient)

    return client


class aws_errors:  # noqa: N801 - a context manager: with aws_errors(place, permission): ...
    """Turn botocore's errors into our own, about `place`, which requires `permission`."""

    def __init__(self, place: str, permission: str):
        self._place = place
        self._permission = permission

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and (typed := self._typed(error)) is not None:
            raise typed from error

    def _typed(self, error: BaseException) -> SMDebugError | None:
        from botocore import exceptions as aws

        if isinstance(error, aws.ClientError):
            return self._client_error(error.response.get("Error", {}))
        if isinstance(
            error,
            aws.NoCredentialsError | aws.PartialCredentialsError | aws.CredentialRetrievalError,
        ):
            problem = f"no AWS credentials found ({error}); run `aws configure` or set a role"
            return AccessDenied(self._place, problem)
        if isinstance(error, aws.NoRegionError):
            problem = (
                "no AWS region is set: set AWS_REGION, or run `aws configure`. Without AWS: `smdebug "
                "runs FOLDER`, `smdebug evaluate RUN` and `smdebug watch RUN` read folders, and `smdebug "
                "local` starts the application on this machine"
            )
            return StackUnknown(self._place, problem)
        if isinstance(error, aws.HTTPClientError | aws.ConnectionError):
            return StorageUnavailable(self._place, f"AWS cannot be reached: {error}")
        if isinstance(error, aws.BotoCoreError):
            return SMDebugRuntimeError(f"{self._place}: invalid request: {error}")
        return None

    def _client_error(self, details: Mapping[str, Any]) -> SMDebugError:
        code = str(details.get("Code", ""))
        text = f"{code}: {details.get('Message', '')}".rstrip(": ")
        does_not_exist = code in ("ValidationError", "ValidationException") and (
            "does not exist" in text or "not found" in text
        )
        if code in _GONE or does_not_exist:
            problem = "it does not exist; check its name, the region and the account"
            return StackUnknown(self._place, problem)
        if code in _DENIED:
            return AccessDenied(self._place, f"the credentials lack {self._permission} on it. AWS: {text}")
        if code in _BAD_CREDENTIALS:
            problem = f"the credentials are not accepted; renew them. AWS: {text}"
            return AccessDenied(self._place, problem)
        if code in _LATER:
            return StorageUnavailable(self._place, f"AWS is temporarily unavailable, try again later: {text}")
        return SMDebugRuntimeError(f"{self._place}: AWS refuses {self._permission}: {text}")
