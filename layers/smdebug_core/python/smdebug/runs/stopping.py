"""Requesting that a training stops, by a control file beside its run."""

from __future__ import annotations

import json
from typing import Any

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.files.names import END_MARKER, STOP_KEY
from smdebug.runs.opening import open_run


def request_stop(
    place: str, reason: str, *, stop_at_step: int | None = None
) -> tuple[str, dict[str, Any]]:
    """Write the request beside the run at `place`; return the run's path and the request.

    Raise `SMDebugRuntimeError` if the run has ended.
    """
    trial = open_run(place)
    if trial.storage.exists(END_MARKER):
        raise SMDebugRuntimeError(
            f"The run at {trial.path} has ended: no training is left to stop."
        )
    meta = trial.collection_manager.meta
    request: dict[str, Any] = {"reason": reason, "finding_id": None, "stop_at_step": stop_at_step}
    named = {"run_id": (meta.get("run_id"), str), "training_run": (meta.get("training_run"), int)}
    request |= {key: value for key, (value, kind) in named.items() if isinstance(value, kind)}
    trial.storage.write(STOP_KEY, json.dumps(request, ensure_ascii=False).encode())
    return trial.path, request
