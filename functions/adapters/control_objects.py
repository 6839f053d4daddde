"""The objects beside a run that request something of its hook."""

from __future__ import annotations

from functions.adapters.asking import Client, ask
from smdebug.files.names import STOP_KEY, ZOOM_KEY


class ControlObjectsInS3:
    """Control objects of any run whose bucket this function may write to."""

    def __init__(self, client: Client):
        self._client = client

    def write_stop(self, run: str, body: bytes) -> None:
        self._write(run, STOP_KEY, body)

    def write_zoom(self, run: str, body: bytes) -> None:
        self._write(run, ZOOM_KEY, body)

    def _write(self, run: str, below: str, body: bytes) -> None:
        bucket, _, prefix = run.partition("/")
        key = f"{prefix}/{below}" if prefix else below
        ask(
            self._client,
            "put_object",
            Bucket=bucket,
            Key=key,
            Body=body,
            ContentType="application/json",
        )
