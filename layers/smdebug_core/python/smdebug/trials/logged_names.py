"""What a run has logged to be looked at, by name: how often, and at which steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from smdebug.trials.logged_reading import LoggedValue


@dataclass(frozen=True)
class LoggedName:
    """The values that were logged under a name."""

    name: str
    kind: str
    count: int
    first: int
    last: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dict(vars(self))


def logged_names(logged: Iterable[LoggedValue]) -> tuple[LoggedName, ...]:
    """Return the names in the order in which they were first logged."""
    by_name = defaultdict(list)
    for value in logged:
        by_name[value.name, value.kind].append(value)
    return tuple(
        LoggedName(
            name,
            kind,
            len(values),
            values[0].step,
            values[-1].step,
            sum(value.bytes for value in values),
        )
        for (name, kind), values in by_name.items()
    )
