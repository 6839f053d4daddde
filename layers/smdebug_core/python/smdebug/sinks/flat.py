"""The numbers of a record by one name each, for tools that know only a name, a step and a value."""

from __future__ import annotations

from collections.abc import Iterator

from smdebug.sinks.records import NumbersRecord

JOINED_PREFIX = "smdebug/"
"""Before each name in a run of the script, so that none of its own is overwritten."""
_MEASURED_BY_US = "system/"


def flat(record: NumbersRecord, *, joined: bool, with_values: bool = True) -> Iterator[tuple[str, float]]:
    """Yield `training/loss` and `training/gradient/fc.weight/rms` with their values.

    Without values, losses and metrics are left out: the script logs them itself.
    """
    prefix = f"{JOINED_PREFIX if joined else ''}{record.mode}/"
    for name, value in record.values.items():
        if with_values or name.startswith(_MEASURED_BY_US):
            yield prefix + name, value
    for tensor, statistics in record.statistics.items():
        for statistic, value in statistics.items():
            yield f"{prefix}{tensor}/{statistic}", value
