"""What a deployed debugger knows about runs, and how to query it.

debugger = smdebug.service.connect(stack="smdebug")
debugger.run("s3://my-bucket/resnet").statuses()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.service.client import Debugger, connect
    from smdebug.service.findings import ActionRecord, FindingEvent
    from smdebug.service.log_lines import LogLine
    from smdebug.service.news import News
    from smdebug.service.records import RuleConfiguration, RuleStatus, RunState
    from smdebug.service.run_status import RuleStatusOf, RunSnapshot, RunSummary
    from smdebug.service.step_status import StepState, StepStatus
    from smdebug.service.watched_run import WatchedRun

__all__ = [
    "ActionOutcome",
    "Debugger",
    "FindingEvent",
    "LogLine",
    "News",
    "RuleConfiguration",
    "RuleStatus",
    "RuleStatusOf",
    "RunSnapshot",
    "RunState",
    "RunSummary",
    "StepState",
    "StepStatus",
    "WatchedRun",
    "connect",
]

# Imported on first use: the deployed functions need only the records.
_HOMES = {
    **dict.fromkeys(("Debugger", "connect"), "client"),
    **dict.fromkeys(("ActionOutcome", "FindingEvent"), "findings"),
    "LogLine": "log_lines",
    "News": "news",
    **dict.fromkeys(("RuleConfiguration", "RuleStatus", "RunState"), "records"),
    **dict.fromkeys(("RuleStatusOf", "RunSnapshot", "RunSummary"), "run_status"),
    **dict.fromkeys(("StepState", "StepStatus"), "step_status"),
    "WatchedRun": "watched_run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
