"""Verifying that no step is missing: what index files and closing notes name, and what event files show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from smdebug.files.collections_file import LostSteps, whole_number
from smdebug.files.names import StepFile, collections_key, event_key, index_key, step_file
from smdebug.runs.verification import Problem
from smdebug.storage.base import S3_SCHEME, Storage
from smdebug.trials.stored.attempts import AttemptId, Attempts
from smdebug.trials.stored.missing_steps import Known, MissingSteps, Worked, missing_in, without_late
from smdebug.trials.stored.worker_steps import seconds


class Workers(NamedTuple):
    """A run's workers, according to its collections files."""

    expected: int
    attempts: Mapping[str, int]  # of each worker, how often its training was restarted
    newest: AttemptId | None  # the attempt that the first readable file names
    worked: Mapping[str, Worked]  # of those whose file can be read

    def may_have_stopped(self, worker: str, extras: Mapping[StepFile, Mapping[str, Any]]) -> bool:
        """Whether this worker of an ended run may have stopped before it committed its last step.

        Another worker may have ended the run, or a later attempt of its own that saved nothing more.
        """
        saved_in = (
            entries.get("training_run") for named, entries in extras.items() if named.worker == worker
        )
        last = max((attempt for attempt in saved_in if isinstance(attempt, int)), default=0)
        return self.expected > 1 or self.attempts.get(worker, 0) > last


class _Saved(NamedTuple):
    """A worker's index file of one step, as `Attempts` and `missing_in` want it."""

    step: int
    worker: str
    saved_at: float | None
    attempt: AttemptId
    previous_step: int | None
    steps_before: int | None
    lost_steps: LostSteps | None


def saved_steps(extras: Mapping[StepFile, Mapping[str, Any]]) -> dict[int, dict[str, _Saved]]:
    at: defaultdict[int, dict[str, _Saved]] = defaultdict(dict)
    for (step, worker), meta in extras.items():
        at[step][worker] = _Saved(
            step,
            worker,
            seconds(meta.get("saved_at")),
            AttemptId.named_in(meta),
            whole_number(meta.get("previous_step")),
            whole_number(meta.get("steps_before")),
            LostSteps.named_in(meta),
        )
    return at


def missing_of(
    storage: Storage,
    at: Mapping[int, Mapping[str, _Saved]],
    attempts: Attempts,
    unreadable: Collection[StepFile],
    workers: Workers,
    ended: bool,
) -> MissingSteps:
    known = Known(
        workers=workers.worked,
        newest=workers.newest,
        ended=ended,
        unreadable=unreadable,
        may_expire=storage.location.startswith(S3_SCHEME),
    )
    missing = missing_in(at, attempts.borders(), known)
    return without_late(missing, storage.exists)


def missing_step_problems(missing: MissingSteps, reported: Iterable[Problem]) -> Iterator[Problem]:
    """The problems of steps that are missing, without those that were `reported` by their event files."""
    there = {step_file(problem.file) for problem in reported if not problem.harmless}
    for gap in missing.gaps:
        if gap.reason or sum(gap.holds(named) for named in there if named) < gap.count:
            yield Problem(gap.file, gap.problem, step=gap.first)
    for worker in missing.not_closed:
        text = (
            "the run has ended, and this worker left no closing note: its last steps may be missing, as "
            "after a full disk or a kill"
        )
        yield Problem(collections_key(worker), text)


def not_indexed(
    events: Iterable[str],
    pointed_at: set[str],
    extras: Mapping[StepFile, Mapping[str, Any]],
    missing: MissingSteps,
    workers: Workers,
    ended: bool,
) -> Iterator[Problem]:
    """Event files that were never committed, which is harmless, and those whose index file is lost.

    `extras` has each index file's entries beside the tensors.
    """
    steps: defaultdict[str, list[int]] = defaultdict(list)
    for step, worker in sorted(extras):
        steps[worker].append(step)
    for key in events:
        named = step_file(key)
        if key in pointed_at or named is None or key != event_key(*named):
            continue
        if named in extras:
            continue  # its index file exists, and is a problem of its own
        later = next((step for step in steps[named.worker] if step > named.step), None)
        if any(gap.was_written and gap.holds(named) for gap in missing.gaps):
            why, is_lost = f"{index_key(*named)} is missing", True
        elif later is not None:
            why, is_lost = _why_not_indexed(named, later, extras[StepFile(later, named.worker)])
        elif not ended:
            why, is_lost = "it may still be committed", False
        elif _names_its_last_step(workers.worked.get(named.worker)) or workers.may_have_stopped(
            named.worker, extras
        ):
            why, is_lost = "its worker stopped before committing it", False
        else:
            why, is_lost = f"{index_key(*named)} is missing", True
        text = f"no index file points to it, so it is not read: {why}"
        yield Problem(key, text, step=named.step, harmless=not is_lost)


def _names_its_last_step(worked: Worked | None) -> bool:
    """Whether this worker's closing note names its last committed step, or says that there is none."""
    return worked is not None and worked.attempt.run_id is not None


def _why_not_indexed(named: StepFile, later: int, entries: Mapping[str, Any]) -> tuple[str, bool]:
    """Why a worker with a later step has no index file of this one, and whether that file was lost.

    A process commits its steps in order, and each index file names the step before. The first one of an
    attempt does not. Nor do the old library's, but that did not continue interrupted runs.
    """
    if "previous_step" not in entries:
        return f"{index_key(*named)} is missing", True
    previous = whole_number(entries["previous_step"])
    if previous is None:
        return (
            "the training was interrupted there and resumed at "
            f"step {later}, or {index_key(*named)} was removed"
        ), False
    return (f"it was never committed: step {later} followed step {previous}"), False
