"""A bucket with any number of runs, of which nothing is kept: S3's answers to listings are computed."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.awsrequest import AWSResponse

from smdebug.storage import Storage
from smdebug.storage.s3 import S3Storage


class ListedRuns:
    """The answers of S3 for a bucket with so many runs, each of one file, from the requests alone."""

    def __init__(self, runs: int, on_a_page: int):
        self._runs = runs
        self._on_a_page = on_a_page

    def storage(self) -> Storage:
        session = boto3.session.Session("testing", "testing", region_name="us-east-1")
        client = session.client("s3")
        client.meta.events.register("before-send.s3", self._answer)
        return S3Storage("runs", client=client)

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}
        text = self._folders(asked) if "delimiter" in asked else self._file(asked.get("prefix", ""))
        body = f"<ListBucketResult>{text}</ListBucketResult>".encode()
        return AWSResponse(request.url, 200, {"Content-Type": "application/xml"}, _Raw(body))

    def _folders(self, asked: dict[str, str]) -> str:
        start = int(asked.get("continuation-token", "0"))
        end = min(start + self._on_a_page, self._runs)
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < self._runs else ""
        names = range(start, end)
        folders = (f"<CommonPrefixes><Prefix>run-{at:07}/</Prefix></CommonPrefixes>" for at in names)
        return f"<IsTruncated>{str(end < self._runs).lower()}</IsTruncated>{more}{''.join(folders)}"

    def _file(self, prefix: str) -> str:
        if not prefix.startswith("run-"):
            return "<IsTruncated>false</IsTruncated>"
        key = f"{prefix}worker_0_collections.json"
        return f"<IsTruncated>false</IsTruncated><Contents><Key>{key}</Key><Size>1</Size></Contents>"


class _Raw(io.BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.read()
