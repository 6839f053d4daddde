"""What the client asks of AWS: which stack is there, what its table holds, what its functions said.

The only clients of this room. They are made when they are first needed, and what AWS answers is told in
our words: `StackUnknown`, `AccessDenied` with the right that is lacking, `StorageUnavailable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from smdebug.exceptions import (
    AccessDenied,
    SMDebugCustomerError,
    SMDebugError,
    SMDebugRuntimeError,
    StackUnknown,
    StorageUnavailable,
)
from smdebug.service.attributes import as_attributes, item_in, page_by_page, range_request
from smdebug.service.items import Item
from smdebug.service.reading import LogLine, log_line

if TYPE_CHECKING:
    from smdebug.storage import Storage

Clients = Callable[[str], Any]  # from the name of a service to a client of it

# The outputs of a stack, by either of their names.
_TABLE = ("StepIndex", "Table")
_BUCKET = ("Bucket",)
_LOG = ("Log", "Logs", "LogGroup", "LogGroups")  # at the end of the name
_LONGEST_PATTERN = 1024
_GONE = frozenset(("ResourceNotFoundException", "ResourceNotFound"))
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
    """Where one deployed debugger keeps what it knows."""

    table: str
    bucket: str = ""
    stack: str = ""
    log_groups: tuple[str, ...] = ()
    outputs: Mapping[str, str] | None = None  # all that the stack tells: WorkflowArn, TopicArn, …

    def __str__(self) -> str:
        return f"stack {self.stack}" if self.stack else f"table {self.table}"


def find_deployment(stack: str, clients: Clients) -> Deployment:
    """The debugger that this stack has deployed, by the stack's outputs."""
    client = clients("cloudformation")
    place = f"The stack {stack} in {client.meta.region_name}"
    with speaking_of(place, "cloudformation:DescribeStacks", missing="there is none of that name"):
        (found,) = client.describe_stacks(StackName=stack)["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    table = output_of(outputs, *_TABLE)
    if table is None:
        told = ", ".join(outputs) or "nothing"
        raise StackUnknown(place, f"it is no debugger: its outputs name no {_TABLE[0]}, but {told}")
    return Deployment(
        table=table,
        bucket=output_of(outputs, *_BUCKET) or "",
        stack=stack,
        log_groups=_log_groups(outputs),
        outputs=outputs,
    )


def output_of(outputs: Mapping[str, str], *names: str) -> str | None:
    """The output of one of these names; in a stack of somebody's own, CDK adds a path before and a digest."""
    for name in names:
        like = [key for key in outputs if _name_in(key).endswith(name)]
        if name in outputs or len(like) == 1:
            return outputs[name if name in outputs else like[0]]
    return None


def _log_groups(outputs: Mapping[str, str]) -> tuple[str, ...]:
    told = (outputs[key] for key in sorted(outputs) if _name_in(key).endswith(_LOG))
    return tuple(one.strip() for groups in told for one in groups.split(",") if one.strip())


def _name_in(key: str) -> str:
    return re.sub(r"[0-9A-F]{8}$", "", key)


class Table:
    """The step index, to be read."""

    def __init__(self, name: str, clients: Clients):
        self._name = name
        self._clients = clients

    def get(self, pk: str, sk: str) -> Item | None:
        """The item, or None."""
        key = as_attributes({"pk": pk, "sk": sk})
        answer = self._ask("get_item", "dynamodb:GetItem", Key=key, ConsistentRead=True)
        return item_in(answer["Item"]) if "Item" in answer else None

    def query(
        self,
        pk: str,
        *,
        first: str = "",
        last: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Item]:
        """The items whose sort keys lie from `first` to `last`, both included, in their order."""
        request = range_request(pk, first=first, last=last, newest_first=newest_first)
        return page_by_page(
            lambda **page: self._ask("query", "dynamodb:Query", **page), request, limit
        )

    def _ask(self, what: str, right: str, **request: Any) -> Any:
        client = self._clients("dynamodb")
        place = f"The table {self._name} in {client.meta.region_name}"
        with speaking_of(place, right, missing="there is none of that name"):
            return getattr(client, what)(TableName=self._name, **request)


class Logs:
    """What the functions said, from their log groups."""

    def __init__(self, groups: Sequence[str], clients: Clients):
        self._groups = tuple(groups)
        self._clients = clients

    def lines(self, run: str, rules: Sequence[str], since: float | None) -> Iterator[LogLine]:
        """The lines of JSON that name the run and one of the rules, group by group, each in order."""
        for group in self._groups:
            yield from self._lines_of(group, run, rules, since)

    def _lines_of(
        self, group: str, run: str, rules: Sequence[str], since: float | None
    ) -> Iterator[LogLine]:
        client = self._clients("logs")
        request: dict[str, Any] = {"logGroupName": group}
        if pattern := filter_pattern(run, rules):
            request["filterPattern"] = pattern
        if since is not None:
            request["startTime"] = int(since * 1000)
        place = f"The log group {group} in {client.meta.region_name}"
        while True:
            with speaking_of(place, "logs:FilterLogEvents", missing="there is none of that name"):
                answer = client.filter_log_events(**request)
            for event in answer["events"]:
                told = _json_of(event["message"])
                if told.get("run") == run and told.get("rule") in rules:
                    yield log_line(told, event["timestamp"])
            if "nextToken" not in answer:
                return
            request["nextToken"] = answer["nextToken"]


def filter_pattern(run: str, rules: Sequence[str]) -> str:
    """What CloudWatch is to look for; empty if that is more than it takes."""
    named = " || ".join(f"$.rule = {_quoted(rule)}" for rule in rules)
    pattern = f"{{ ($.run = {_quoted(run)}) && ({named}) }}"
    return pattern if len(pattern) <= _LONGEST_PATTERN else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _json_of(message: str) -> Mapping[str, Any]:
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def run_storage(run: str, clients: Clients) -> Storage:
    """The place of a run: `bucket/prefix`."""
    from smdebug.storage.s3 import S3Storage

    return S3Storage.at(run, clients("s3"))


@cache
def default_clients() -> Clients:
    """Clients with the credentials and the region that boto3 finds by itself."""
    try:
        from boto3.session import Session
        from botocore.config import Config
    except ImportError as error:
        raise SMDebugCustomerError(
            "Asking a deployed debugger needs boto3: pip install 'smdebug-serverless[aws]'"
        ) from error
    patient = Config(
        retries={"mode": "standard", "max_attempts": 6}, connect_timeout=10, read_timeout=60
    )
    session: Any = Session()

    def client(service: str) -> Any:
        with speaking_of(f"AWS ({service})", f"{service}:*"):
            return session.client(service, config=patient)

    return client


class speaking_of:  # noqa: N801 - reads as a sentence: with speaking_of(place, right): ...
    """Turns what botocore raises into our words about `place`, for which one needs the `right`."""

    def __init__(self, place: str, right: str, *, missing: str = "it is not there"):
        self._place = place
        self._right = right
        self._missing = missing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and (typed := self._typed(error)) is not None:
            raise typed from error

    def _typed(self, error: BaseException) -> SMDebugError | None:
        from botocore import exceptions as aws

        if isinstance(error, aws.ClientError):
            return self._answer(error.response.get("Error", {}))
        if isinstance(
            error,
            aws.NoCredentialsError | aws.PartialCredentialsError | aws.CredentialRetrievalError,
        ):
            problem = f"no AWS credentials were found ({error}); run `aws configure` or set a role"
            return AccessDenied(self._place, problem)
        if isinstance(error, aws.NoRegionError):
            problem = "no AWS region is set: set AWS_REGION, or run `aws configure`"
            return StackUnknown(self._place, problem)
        if isinstance(error, aws.HTTPClientError | aws.ConnectionError):
            return StorageUnavailable(self._place, f"AWS cannot be reached: {error}")
        if isinstance(error, aws.BotoCoreError):
            return SMDebugRuntimeError(f"{self._place}: this cannot be asked: {error}")
        return None

    def _answer(self, said: Mapping[str, Any]) -> SMDebugError:
        code = str(said.get("Code", ""))
        text = f"{code}: {said.get('Message', '')}".rstrip(": ")
        does_not_exist = code in ("ValidationError", "ValidationException") and (
            "does not exist" in text or "not found" in text
        )
        if code in _GONE or does_not_exist:
            problem = f"{self._missing}; check its name, the region and the account"
            return StackUnknown(self._place, problem)
        if code in _DENIED:
            return AccessDenied(
                self._place, f"the credentials lack {self._right} on it. AWS says {text}"
            )
        if code in _BAD_CREDENTIALS:
            problem = f"the credentials are not accepted; renew them. AWS says {text}"
            return AccessDenied(self._place, problem)
        if code in _LATER:
            return StorageUnavailable(self._place, f"AWS asks to try again later: {text}")
        return SMDebugRuntimeError(f"{self._place}: AWS refuses {self._right}: {text}")
