"""The processor time that boto3 itself takes for a call, measured on this machine without a network."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse

_CALLS = 300
_KEYS = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
_ITEM = b'{"Item": {"pk": {"S": "runs/a"}, "sk": {"S": "step#1"}, "f": {"SS": ["e0", "i0"]}}}'


class _Raw(io.BytesIO):
    """A body as urllib3 returns it."""

    def stream(self, *_: Any, **__: Any) -> Any:
        yield self.read()


def seconds_of_table_call() -> float:
    """An update of a small item: signing, sending, parsing."""
    client = _answering("dynamodb", _ITEM, "application/x-amz-json-1.0")
    return _timed(
        lambda: client.update_item(
            TableName="t",
            Key={"pk": {"S": "runs/a"}, "sk": {"S": "step#1"}},
            UpdateExpression="ADD f :f SET expires = :e",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":f": {"SS": ["e1"]}, ":e": {"N": "1800000000"}},
        )
    )


def seconds_of_s3_call() -> float:
    """A GET of a small object."""
    client = _answering("s3", b"{}", "application/json")
    return _timed(lambda: client.get_object(Bucket="b", Key="k")["Body"].read())


def seconds_of_invoking() -> float:
    """A call of a function whose answer has 32 files of a step, compressed."""
    request = json.dumps({"files": [[f"index/000000000/{n:012}_worker_{n}.json", 0] for n in range(32)]})
    client = _answering("lambda", json.dumps({"content": "x" * 20_000}).encode(), "application/json")
    return _timed(lambda: client.invoke(FunctionName="f", Payload=request)["Payload"].read())


def seconds_of_query(page: bytes) -> float:
    """A query with this answer: the AWS adapter's reader parses the same."""
    client = _answering("dynamodb", page, "application/x-amz-json-1.0")
    return _timed(lambda: client.query(TableName="t", KeyConditionExpression="pk = :p"), 20)


def seconds_of_listing(page: bytes) -> float:
    """A page of a listing with this answer."""
    client = _answering("s3", page, "application/xml")
    return _timed(lambda: client.list_objects_v2(Bucket="b"), 20)


def _answering(service: str, body: bytes, kind: str) -> Any:
    """A client whose calls are answered before they are sent."""
    client: Any = boto3.client(service, **_KEYS)  # type: ignore[call-overload]

    def answer(request: Any, **_: Any) -> AWSResponse:
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        return AWSResponse(request.url, 200, headers, _Raw(body))

    client.meta.events.register("before-send", answer)
    return client


def _timed(call: Callable[[], object], calls: int = _CALLS) -> float:
    for _ in range(calls // 10):
        call()
    begin = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - begin) / calls


if __name__ == "__main__":
    print(f"table call: {seconds_of_table_call() * 1000:.2f} ms of a core")
    print(f"S3 call:    {seconds_of_s3_call() * 1000:.2f} ms of a core")
