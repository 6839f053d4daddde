"""The object beside a run that requests its hook to stop."""

from __future__ import annotations

from functions.adapters.asking import Client, ask
from smdebug.files.names import STOP_KEY


class ControlObjectsInS3:
    """Control objects of any run whose bucket this function may write to."""

    def __init__(self, client: Client):
        self._client = client

    def write_stop(self, run: str, body: bytes) -> None:
        bucket, _, prefix = run.partition("/")
        key = f"{prefix}/{STOP_KEY}" if prefix else STOP_KEY
        ask(
            self._client,
            "put_object",
            Bucket=bucket,
            Key=key,
            Body=body,
            ContentType="application/json",
        )
