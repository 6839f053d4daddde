"""The functions that read shards, on AWS."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class ReadersInLambda:
    """A function that is called for each shard; a call that fails has no answer and is not repeated."""

    def __init__(self, function: str, at_once: int, client: Callable[[], Any]):
        self.at_once = at_once
        self._function = function
        self._client = client

    def ask(self, requests: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any] | None]:
        with ThreadPoolExecutor(self.at_once, "smdebug-ask") as threads:
            return list(threads.map(self._answer, requests))

    def _answer(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        try:
            response = self._client().invoke(
                FunctionName=self._function, Payload=json.dumps(request).encode()
            )
            answer = json.loads(response["Payload"].read())
        except Exception:  # noqa: BLE001 - throttled, timed out, refused: the files are read without it
            return None
        is_answer = "FunctionError" not in response and isinstance(answer, dict)
        return answer if is_answer else None
