"""Listing many runs of a bucket needs no more memory than listing few."""

from __future__ import annotations

import gc
import io
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from smdebug.backtesting import finding_runs
from smdebug.backtesting.finding_runs import FoundRun, RunListing, find_runs
from smdebug.storage import Storage
from smdebug.storage.s3 import S3Storage

LISTED, ON_A_PAGE = 1800, 100
KEPT_OF_A_RUN = 50
"""Bytes, fewer than a name has."""


class ManyRuns:
    """The answers of S3 for a bucket with so many runs, each of one file, from the requests alone."""

    def __init__(self, runs: int):
        self._runs = runs

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
        end = min(start + ON_A_PAGE, self._runs)
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


@pytest.mark.parametrize("kind", [find_runs, RunListing])
def test_no_run_stays_in_memory_once_it_is_listed(
    monkeypatch: pytest.MonkeyPatch, kind: Callable[[list[str]], Iterable[FoundRun]]
):
    storage = ManyRuns(LISTED).storage()
    monkeypatch.setattr(finding_runs, "open_storage", lambda _: storage)
    few, many = 3, LISTED // ON_A_PAGE - 1
    least: dict[int, int] = {}
    tracemalloc.start()
    try:
        for number, run in enumerate(kind(["s3://runs"])):
            assert run.name == f"run-{number:07}"
            page = number // ON_A_PAGE
            if page in (few, many):
                if page not in least:
                    gc.collect()
                used = tracemalloc.get_traced_memory()[0]
                least[page] = min(used, least.get(page, used))
    finally:
        tracemalloc.stop()
    assert number == LISTED - 1
    # Requests that are under way count now and then, so that the least of a page is compared.
    assert least[many] - least[few] < KEPT_OF_A_RUN * ON_A_PAGE * (many - few)
