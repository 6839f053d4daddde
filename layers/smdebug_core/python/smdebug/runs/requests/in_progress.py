"""A training in progress, of which something is requested by a file beside its run."""

from __future__ import annotations

from typing import NamedTuple

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.files.names import END_MARKER
from smdebug.trials import Trial


class RequestedAttempt(NamedTuple):
    """Which attempt at a run a request is for, as far as its files say."""

    run_id: str | None
    training_run: int | None


def attempt_in_progress(trial: Trial, what: str) -> RequestedAttempt:
    """Return the attempt that saves to the run; raise `SMDebugRuntimeError` if it has ended.

    The error says that no training is left to do `what`.
    """
    if trial.storage.exists(END_MARKER):
        raise SMDebugRuntimeError(
            f"The run at {trial.path} has ended: no training is left to {what}. See what it saved with "
            f"smdebug inspect {trial.path}"
        )
    meta = trial.collection_manager.meta
    run_id, training_run = meta.get("run_id"), meta.get("training_run")
    return RequestedAttempt(
        run_id if isinstance(run_id, str) else None,
        training_run if isinstance(training_run, int) else None,
    )
