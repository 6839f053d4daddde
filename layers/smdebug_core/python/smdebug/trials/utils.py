"""Opening a run by its path."""

from __future__ import annotations

import os
from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError, SMDebugTypeError
from smdebug.storage import Storage, open_storage
from smdebug.storage.base import S3_SCHEME
from smdebug.trials.local_trial import LocalTrial
from smdebug.trials.s3_trial import S3Trial
from smdebug.trials.trial import Trial


def create_trial(
    path: str | os.PathLike[str] | Storage | None = None,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = "/opt/ml/processing/outputs/",
    *,
    out_dir: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Trial:
    """Open the run at `path`, a local folder or `s3://bucket/prefix`; `out_dir` is another name for it.

    `name` is the last part of the path if it is not given. `range_steps=(first, end)` restricts the trial to
    some global steps. A run that has not begun is waited for, `wait_seconds` at most
    (`SMDEBUG_TRIAL_WAIT_SECONDS`, half an hour by default).

    Of a training that was started again, the trial shows the newest attempt, and earlier ones below the step
    at which that resumed. `trial.attempts()` lists them all; `attempt=0` shows what the first one left.
    """
    if profiler:
        raise SMDebugNotImplementedError("Trials of the profiler's data are not offered")
    place = out_dir if path is None else path
    if place is None:
        raise SMDebugTypeError("create_trial needs the path of a run")
    if not isinstance(place, str | os.PathLike):
        return Trial(name or _last_part(place.location), open_storage(place), **kwargs)
    text = _tidy(os.fspath(place))
    name = name or _last_part(text)
    if text.startswith(S3_SCHEME):
        bucket, _, prefix = text.removeprefix(S3_SCHEME).partition("/")
        return S3Trial(name, bucket, prefix, **kwargs)
    if "://" in text:
        return Trial(name, open_storage(text), path=text, **kwargs)
    return LocalTrial(name, text, **kwargs)


def _tidy(path: str) -> str:
    """Return the path without surrounding blanks and trailing slashes."""
    path = path.strip()
    return path.rstrip("/") or path[:1]


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
