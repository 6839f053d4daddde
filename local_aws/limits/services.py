"""Limits of Step Functions, EventBridge and S3, added to moto."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from local_aws.limits.numbers import Limits
from local_aws.limits.replacing import replace
from local_aws.template import ACCOUNT, REGION


def limit_executions(limits: Limits) -> None:
    """End an Express execution after five minutes, later states included."""
    from moto.stepfunctions.parser.asl.component.program.program import Program

    def limited(evaluate: Callable[..., Any]) -> Any:
        def evaluated(program: Any, env: Any) -> None:
            declared = program.timeout_seconds and program.timeout_seconds.timeout_seconds
            too_long = (declared or float("inf")) > limits.express_seconds
            if too_long and not env.is_frame() and _is_express(env):
                program.timeout_seconds = SimpleNamespace(timeout_seconds=limits.express_seconds)
            evaluate(program, env)

        return evaluated

    replace(Program, "eval", limited)


def _is_express(env: Any) -> bool:
    """Whether the machine was created as EXPRESS; moto executes it as STANDARD."""
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    arn = env.states.context_object.context_object_data["StateMachine"]["Id"]
    machines = stepfunctions_parser_backends[ACCOUNT][REGION].state_machines
    return any(machine.arn == arn and machine.type == "EXPRESS" for machine in machines)


def limit_events(limits: Limits) -> None:
    """Refuse an event that is too large; the others of its request are published."""
    from moto.events.exceptions import ValidationException
    from moto.events.models import EventsBackend

    refusal = {
        "ErrorCode": "EntrySizeExceeded",
        "ErrorMessage": f"The entry has more than {limits.event_bytes} bytes.",
    }

    def limited(put: Callable[..., Any]) -> Any:
        def published(backend: Any, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
            sizes = list(map(size_of_event, events))
            if sum(sizes) > limits.events_bytes:
                raise ValidationException("Total size of the entries in the request is over the limit.")
            fits = [size <= limits.event_bytes for size in sizes]
            kept = [event for event, fitting in zip(events, fits, strict=True) if fitting]
            done = iter(put(backend, kept)) if kept else iter(())
            return [next(done) if fitting else refusal for fitting in fits]

        return published

    replace(EventsBackend, "put_events", limited)


def size_of_event(event: dict[str, Any]) -> int:
    """The bytes of an entry: its texts, and 14 for a time."""
    texts = [
        *(str(event.get(name, "")) for name in ("Source", "DetailType", "Detail")),
        *(event.get("Resources") or ()),
    ]
    return (14 if event.get("Time") else 0) + sum(len(text.encode()) for text in texts)


def validate_notifications() -> None:
    """Refuse a notification configuration of a bucket if one of its queues does not exist."""
    from moto.s3.exceptions import S3ClientError
    from moto.s3.models import FakeBucket
    from moto.sqs.models import sqs_backends

    def limited(configure: Callable[..., Any]) -> Any:
        def configured(bucket: Any, configuration: dict[str, Any] | None) -> None:
            queues = (configuration or {}).get("QueueConfiguration", [])
            for queue in queues if isinstance(queues, list) else [queues]:
                name = str(queue["Queue"]).rsplit(":", 1)[-1]
                if name not in sqs_backends[ACCOUNT][REGION].queues and not _skips_validation():
                    raise S3ClientError(
                        "InvalidArgument",
                        "Unable to validate the following destination configurations",
                    )
            configure(bucket, configuration)

        return configured

    replace(FakeBucket, "set_notification_configuration", limited)


def _skips_validation() -> bool:
    """Whether the request at hand says `SkipDestinationValidation`."""
    import flask

    if not flask.has_request_context():
        return False
    return flask.request.headers.get("x-amz-skip-destination-validation", "").lower() == "true"


def require_schedule_groups() -> None:
    """Say that a schedule group is missing: moto answers with an internal error."""
    from moto.scheduler.exceptions import ScheduleGroupNotFound
    from moto.scheduler.models import EventBridgeSchedulerBackend

    def limited(create: Callable[..., Any]) -> Any:
        def created(backend: Any, *args: Any, **kw: Any) -> Any:
            group = kw.get("group_name") or "default"
            if group not in backend.schedule_groups:
                raise ScheduleGroupNotFound(group)
            return create(backend, *args, **kw)

        return created

    replace(EventBridgeSchedulerBackend, "create_schedule", limited)
