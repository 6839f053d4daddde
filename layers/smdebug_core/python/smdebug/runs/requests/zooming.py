"""Requesting that tensors of a training in progress are saved whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smdebug.exceptions import SMDebugError
from smdebug.files.names import ZOOM_KEY
from smdebug.files.zoom_request import ZoomRequest
from smdebug.runs.opening import open_run
from smdebug.runs.requests.in_progress import attempt_in_progress
from smdebug.trials import Trial
from smdebug.trials.name_matching import NameMatcher


@dataclass(frozen=True)
class Requested:
    """A request that was written, and the names known so far that it selects."""

    location: str
    request: ZoomRequest
    matching: tuple[str, ...]
    known: tuple[str, ...]
    unmatched: tuple[str, ...] = ()
    """The patterns that match none of the known names."""


def request_zoom(
    place: str,
    patterns: Sequence[str],
    *,
    steps: int,
    reason: str = "",
    workers: Sequence[str] = (),
) -> Requested:
    """Write the request beside the run at `place`. Raise `SMDebugRuntimeError` if the run has ended."""
    trial = open_run(place)
    is_named = NameMatcher().by_regex(list(patterns))
    known = names_of(trial)
    attempt = attempt_in_progress(trial, "zoom into")
    request = ZoomRequest(
        tuple(patterns),
        steps,
        reason,
        workers=tuple(workers),
        run_id=attempt.run_id,
        training_run=attempt.training_run,
    )
    ZoomRequest.parse(request.encode())  # raises ValueError, before anything is written
    trial.storage.write(ZOOM_KEY, request.encode())
    matching = tuple(name for name in known if is_named(name))
    unmatched = tuple(
        pattern for pattern in patterns if not any(map(NameMatcher().by_regex([pattern]), matching))
    )
    return Requested(trial.path, request, matching, known, unmatched)


def names_of(trial: Trial) -> tuple[str, ...]:
    """Return the names of all tensors of the run, saved or measured so far."""
    names = set(trial.tensor_names())
    observed = trial.observations
    steps = observed.steps() if observed.has_facts else []
    try:
        if steps:
            layout = observed.layout(steps[-1])
            names.update(tensor.name for tensors in layout.tensors.values() for tensor in tensors)
    except SMDebugError:  # the layout is damaged, or not written yet
        pass
    return tuple(sorted(names))
