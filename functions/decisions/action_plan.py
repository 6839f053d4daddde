"""Deciding which actions of a finding to carry out, and which to refuse: a run can stop only itself.

A `rules.json` comes from outside. It may stop only the training job of its own run, and notify only the
addresses that the stack was deployed with; anything else becomes an outcome that names the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.decisions.job_ownership import RUN_TAG, JobClaims
from functions.decisions.rule_events import outcome_id
from smdebug.files.zoom_request import STEPS, ZoomRequest, patterns_for
from smdebug.service.records import EMAIL, SMS, STOP_TRAINING, ZOOM_IN

JOB = "training job"
BATCH_JOB = "Batch job"
CONTROL_OBJECT = "control object"
MESSAGE = "message"
NOTHING = "nothing"
MOST_CANDIDATES = 20  # jobs that are described to find the run's own

Detail = Mapping[str, Any]


@dataclass(frozen=True)
class Endpoints:
    """The addresses and numbers that the stack was deployed with."""

    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    batch_queues: tuple[str, ...] = ()

    def of(self, action: str) -> tuple[str, ...]:
        return self.emails if action == EMAIL else self.phones


@dataclass(frozen=True)
class _Planned:
    """One thing to do for one action of one finding."""

    id: str
    action: Mapping[str, Any]


@dataclass(frozen=True)
class StopJob(_Planned):
    """Stop the run's own training job, if it says so: of that name, or the only one with that prefix."""

    effect = JOB
    name: str | None
    prefix: str


@dataclass(frozen=True)
class StopBatchJob(_Planned):
    """Terminate the only running job of these queues of AWS Batch that says that it trains the run."""

    effect = BATCH_JOB
    queues: tuple[str, ...]


@dataclass(frozen=True)
class RequestStop(_Planned):
    """Request a stop from the hook, by the control object beside the run."""

    effect = CONTROL_OBJECT
    body: bytes


@dataclass(frozen=True)
class RequestZoom(_Planned):
    """Request that the hook save whole tensors, by the control object beside the run."""

    effect = CONTROL_OBJECT
    body: bytes


@dataclass(frozen=True)
class Notify(_Planned):
    """Send a message to one address or number."""

    effect = MESSAGE
    to: str


@dataclass(frozen=True)
class Refuse(_Planned):
    """Do nothing, for the given reason."""

    effect = NOTHING
    reason: str


PlannedAction = StopJob | StopBatchJob | RequestStop | RequestZoom | Notify | Refuse


def plan(detail: Detail, endpoints: Endpoints) -> tuple[PlannedAction, ...]:
    """Return what to do for a finding, given its event's detail. The same event gives the same plan."""
    return tuple(deed for action in detail.get("actions") or () for deed in _deeds(detail, action, endpoints))


def candidates(run: str, prefix: str, in_progress: Iterable[str]) -> tuple[list[str], str]:
    """Return the jobs in progress that may be the run's own, likely ones first; or why there are none."""
    names = [name for name in in_progress if name.startswith(prefix)]
    if not names:
        return [], f"No training job in progress has a name that begins with {prefix!r}."
    # SageMaker saves a job's tensors below a folder of its name.
    names.sort(key=lambda name: name not in run.split("/"))
    return names[:MOST_CANDIDATES], ""


def own_job(run: str, described: Sequence[JobClaims]) -> tuple[str | None, str]:
    """Return the only job in progress that says that it trains the run, or None and the reason."""
    own = [job for job in described if job.trains(run)]
    running = [job.name for job in own if job.in_progress]
    if len(running) == 1:
        return running[0], ""
    if running:
        return None, f"Several training jobs say that they train s3://{run} ({', '.join(running[:5])})."
    if own:
        return None, f"The training job {own[0].name} is not in progress."
    names = [job.name for job in described]
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    which = f"The training job {shown} does not say" if len(names) == 1 else f"None of the jobs {shown} says"
    return None, (
        f"{which} that it trains s3://{run}. A run may stop only its own job: its output path, checkpoint, "
        f"debug hook's address or tag {RUN_TAG} has to contain the run."
    )


def own_batch_job(run: str, running: Iterable[JobClaims]) -> tuple[str | None, str]:
    """Return the id of the only running job that says that it trains the run, or None and the reason."""
    own = [job.name for job in running if job.in_progress and job.trains(run)]
    if len(own) == 1:
        return own[0], ""
    if own:
        return None, f"Several Batch jobs say that they train s3://{run} ({', '.join(own[:5])})."
    return None, (
        f"No running Batch job says that it trains s3://{run}: its tag {RUN_TAG}, an environment variable or "
        "a word of its command has to be the run's address."
    )


def _deeds(detail: Detail, action: Mapping[str, Any], endpoints: Endpoints) -> Iterator[PlannedAction]:
    name = action.get("name")
    if name == STOP_TRAINING:
        yield from _stop(detail, action, endpoints.batch_queues)
    elif name == ZOOM_IN:
        yield _zoom(detail, action)
    elif name in (EMAIL, SMS):
        yield from _notifications(detail, action, endpoints.of(name))
    else:
        yield Refuse(_id(detail, action, NOTHING), action, f"There is no action {name!r}.")


def _stop(detail: Detail, action: Mapping[str, Any], queues: tuple[str, ...]) -> Iterator[PlannedAction]:
    job, prefix = detail.get("job"), str(action.get("training_job_prefix") or "")
    if job and not str(job).startswith(prefix):
        reason = f"A run may stop only its own job, {job}, and its name does not begin with {prefix!r}."
        yield Refuse(_id(detail, action, NOTHING), action, reason)
        return
    # The hook finishes writing and leaves time for a checkpoint; stopping the job takes minutes.
    yield RequestStop(_id(detail, action, CONTROL_OBJECT), action, control_object(detail, action))
    if job or prefix:
        yield StopJob(_id(detail, action, JOB), action, str(job) if job else None, prefix)
    elif queues and (action.get("stop_at_step") or 0) <= int(detail.get("step") or 0):
        # Until a later step that the rule names, the training goes on; the hook stops it there.
        yield StopBatchJob(_id(detail, action, BATCH_JOB), action, queues)


def _zoom(detail: Detail, action: Mapping[str, Any]) -> PlannedAction:
    regex = action.get("tensor_regex")
    worst = (detail.get("evidence") or {}).get("worst") or ()
    named = [str(finding["tensor"]) for finding in worst if finding.get("tensor")]
    patterns = (str(regex),) if regex else patterns_for(named)
    if not patterns:
        reason = "The finding names no tensor: give the action zoomin a tensor_regex."
        return Refuse(_id(detail, action, NOTHING), action, reason)
    request = ZoomRequest(
        patterns,
        int(action.get("steps") or STEPS),
        str(detail.get("text") or detail.get("reason") or ""),
        str(detail["id"]),
        run_id=detail.get("run_id"),
        training_run=detail.get("training_run"),
    )
    return RequestZoom(_id(detail, action, CONTROL_OBJECT), action, request.encode())


def control_object(detail: Detail, action: Mapping[str, Any]) -> bytes:
    """Return the control object: the reason, and the attempt of the run that it is for."""
    body = {
        "reason": str(detail.get("text") or detail.get("reason") or ""),
        "finding_id": detail["id"],
        "stop_at_step": action.get("stop_at_step"),
        "run_id": detail.get("run_id"),
        "training_run": detail.get("training_run"),
    }
    return (json.dumps(body, indent=2) + "\n").encode()


def _notifications(
    detail: Detail, action: Mapping[str, Any], known: Sequence[str]
) -> Iterator[PlannedAction]:
    kind = {EMAIL: "an email address", SMS: "a phone number"}[str(action["name"])]
    wanted = str(action.get("endpoint") or "")
    recipients = [address for address in known if not wanted or address.lower() == wanted.lower()]
    for to in recipients:
        yield Notify(_id(detail, action, f"{MESSAGE} to {to}"), action, to)
    if not recipients:
        recipient = f"{wanted} is not {kind}" if wanted else f"There is no {kind.partition(' ')[2]}"
        reason = f"{recipient} that this stack was deployed with: no message was sent."
        yield Refuse(_id(detail, action, NOTHING), action, reason)


def _id(detail: Detail, action: Mapping[str, Any], effect: str) -> str:
    return outcome_id(str(detail["id"]), action, effect)
