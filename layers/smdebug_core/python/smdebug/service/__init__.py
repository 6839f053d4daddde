"""What the application in the cloud knows of runs, and how to ask it.

debugger = smdebug.service.connect(stack="smdebug")
debugger.run("s3://my-bucket/resnet").statuses()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.service.client import Debugger, WatchedRun, connect
    from smdebug.service.reading import (
        ActionOutcome,
        FindingEvent,
        LogLine,
        News,
        RuleStatusOf,
        RunSnapshot,
        RunSummary,
        StepState,
        StepStatus,
    )
    from smdebug.service.records import RuleConfiguration, RuleStatus, RunState

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

# The functions of the application use the records alone, and start without the rest.
_HOMES = {
    **dict.fromkeys(("Debugger", "WatchedRun", "connect"), "client"),
    **dict.fromkeys(("RuleConfiguration", "RuleStatus", "RunState"), "records"),
    **dict.fromkeys(("FindingEvent", "LogLine", "News", "RuleStatusOf"), "reading"),
    **dict.fromkeys(
        ("ActionOutcome", "RunSnapshot", "RunSummary", "StepState", "StepStatus"), "reading"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
