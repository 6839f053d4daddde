"""Requesting that a training stops, by a control file beside its run."""

from __future__ import annotations

import json
from typing import Any

from smdebug.files.names import STOP_KEY
from smdebug.runs.opening import open_run
from smdebug.runs.requests.in_progress import attempt_in_progress
from smdebug.secrets.texts import redacted


def request_stop(place: str, reason: str, *, stop_at_step: int | None = None) -> tuple[str, dict[str, Any]]:
    """Write the request beside the run at `place`; return the run's path and the request.

    Raise `SMDebugRuntimeError` if the run has ended.
    """
    trial = open_run(place)
    attempt = attempt_in_progress(trial, "stop")
    request: dict[str, Any] = {"reason": redacted(reason), "finding_id": None, "stop_at_step": stop_at_step}
    request |= {key: value for key, value in attempt._asdict().items() if value is not None}
    trial.storage.write(STOP_KEY, json.dumps(request, ensure_ascii=False).encode())
    return trial.path, request
