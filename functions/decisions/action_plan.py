"""What is to be done because of a finding, and what may not: a run can stop itself, and nobody else.

A `rules.json` comes from outside. It may stop only the training job of its own run, and tell only those
whom the stack was deployed to tell; what it asks for beyond that becomes an outcome that says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.decisions.rule_events import outcome_id

JOB = "training job"
CONTROL_OBJECT = "control object"
MESSAGE = "message"
NOTHING = "nothing"

Detail = Mapping[str, Any]


@dataclass(frozen=True)
class Endpoints:
    """Whom the stack was deployed to tell."""

    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()

    def of(self, action: str) -> tuple[str, ...]:
        return self.emails if action == "email" else self.phones


@dataclass(frozen=True)
class _Planned:
    """One thing to do, for one action of one finding."""

    id: str
    action: Mapping[str, Any]


@dataclass(frozen=True)
class StopJob(_Planned):
    """Stop the run's own training job: of that name, or the only one in progress that begins so."""

    effect = JOB
    name: str | None
    prefix: str


@dataclass(frozen=True)
class RequestStop(_Planned):
    """Put the control object beside the run, for the hook to see."""

    effect = CONTROL_OBJECT
    body: bytes


@dataclass(frozen=True)
class Notify(_Planned):
    """Send a message to somebody."""

    effect = MESSAGE
    to: str


@dataclass(frozen=True)
class Refuse(_Planned):
    """Do nothing, for a reason."""

    effect = NOTHING
    reason: str


PlannedAction = StopJob | RequestStop | Notify | Refuse


def plan(detail: Detail, endpoints: Endpoints) -> tuple[PlannedAction, ...]:
    """What to do for a finding, by the detail of its event. The same event gives the same plan."""
    return tuple(
        deed for action in detail.get("actions") or () for deed in _deeds(detail, action, endpoints)
    )


def own_job(run: str, prefix: str, in_progress: Iterable[str]) -> tuple[str | None, str]:
    """The run's own job among those in progress, or why there is none to stop."""
    names = [name for name in in_progress if name.startswith(prefix)]
    # SageMaker saves a job's tensors below a folder of its name.
    own = [name for name in names if name in run.split("/")]
    if len(own) == 1:
        return own[0], ""
    if not names:
        return None, f"No training job in progress has a name that begins with {prefix!r}."
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return None, (
        f"Of the training jobs in progress that begin with {prefix!r} ({shown}) none is known to save to "
        f"s3://{run}: a run may stop only its own job, which has its name in the run's prefix."
    )


def _deeds(
    detail: Detail, action: Mapping[str, Any], endpoints: Endpoints
) -> Iterator[PlannedAction]:
    name = action.get("name")
    if name == "stoptraining":
        yield from _stop(detail, action)
    elif name in ("email", "sms"):
        yield from _tell(detail, action, endpoints.of(name))
    else:
        yield Refuse(_id(detail, action, NOTHING), action, f"There is no action {name!r}.")


def _stop(detail: Detail, action: Mapping[str, Any]) -> Iterator[PlannedAction]:
    job, prefix = detail.get("job"), str(action.get("training_job_prefix") or "")
    if job and not str(job).startswith(prefix):
        reason = (
            f"A run may stop only its own job, {job}, and its name does not begin with {prefix!r}."
        )
        yield Refuse(_id(detail, action, NOTHING), action, reason)
        return
    # Our hook saves what is on its way and lets a checkpoint be made; a job is stopped within minutes.
    yield RequestStop(_id(detail, action, CONTROL_OBJECT), action, control_object(detail, action))
    if job or prefix:
        yield StopJob(_id(detail, action, JOB), action, str(job) if job else None, prefix)


def control_object(detail: Detail, action: Mapping[str, Any]) -> bytes:
    """What the hook is told: why, and which attempt of which run is meant."""
    body = {
        "reason": str(detail.get("text") or detail.get("reason") or ""),
        "finding_id": detail["id"],
        "stop_at_step": action.get("stop_at_step"),
        "run_id": detail.get("run_id"),
        "training_run": detail.get("training_run"),
    }
    return (json.dumps(body, indent=2) + "\n").encode()


def _tell(
    detail: Detail, action: Mapping[str, Any], known: Sequence[str]
) -> Iterator[PlannedAction]:
    kind = {"email": "e-mail address", "sms": "phone number"}[str(action["name"])]
    wanted = str(action.get("endpoint") or "")
    recipients = [address for address in known if not wanted or address.lower() == wanted.lower()]
    for to in recipients:
        yield Notify(_id(detail, action, f"{MESSAGE} to {to}"), action, to)
    if not recipients:
        whom = f"{wanted} is no {kind}" if wanted else f"There is no {kind}"
        reason = f"{whom} that this stack was deployed to tell: nobody was told."
        yield Refuse(_id(detail, action, NOTHING), action, reason)


def _id(detail: Detail, action: Mapping[str, Any], effect: str) -> str:
    return outcome_id(str(detail["id"]), action, effect)
