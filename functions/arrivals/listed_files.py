"""Listing the files of a run, page by page, and recording those that no notification has reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from functions.arrivals.attempts import by_attempt
from functions.arrivals.steps import is_noted
from functions.decisions.messages import Arrival, FileKind, arrival_of, bucket_and_prefix
from functions.ports import Listed
from functions.world import World
from smdebug.files.names import index_key
from smdebug.service.records import RunRecord

_PAGE = 1000  # objects, as many as one request lists


class Listing(NamedTuple):
    """The result of listing for a while."""

    missed: int  # files that were not known
    after: str  # the key to continue after; "" if everything was listed


Record = Callable[[Sequence[Arrival]], object]


def record_listed(
    world: World,
    record: RunRecord,
    note: Record,
    *,
    first: int,
    after: str = "",
    until: float,
    settled: float = float("inf"),
) -> Listing:
    """List the files of steps from `first` on, and have `note` record those that are not known.

    Files that were written after `settled` may still be reported by their notifications. When the clock
    shows `until`, the rest is left for the next time.
    """
    bucket, prefix = bucket_and_prefix(record.run)
    missed = 0
    for folder, start in (
        ("events/", f"events/{first:012}/"),
        ("index/", index_key(first, "")[: -len("_.json")]),
    ):
        if after > f"{prefix}{folder}\U0010ffff":
            continue
        begin = max(prefix + start, after)
        for page in _pages(world.objects.list(bucket, prefix + folder, begin)):
            found = _unknown(world, record, bucket, page, settled)
            if found:
                note(found)
            missed += len(found)
            if len(page) == _PAGE and world.clock.now() >= until:
                return Listing(missed, page[-1].key)
    return Listing(missed, "")


def unknown_files_of_steps(
    world: World, record: RunRecord, steps: Sequence[int], *, settled: float
) -> list[Arrival]:
    """List the files of these steps alone; return those that are not known and older than `settled`."""
    bucket, prefix = bucket_and_prefix(record.run)
    found: list[Arrival] = []
    for step in steps:
        folder, index_files = f"events/{step:012}/", index_key(step, "")[: -len(".json")]
        for below in (folder, index_files):
            for page in _pages(world.objects.list(bucket, prefix + below)):
                found += _unknown(world, record, bucket, page, settled)
    return found


def listed_collections(world: World, record: RunRecord) -> list[Arrival]:
    """Return the collections files of all workers, as a listing shows them."""
    bucket, prefix = bucket_and_prefix(record.run)
    listed = world.objects.list(bucket, f"{prefix}collections/")
    arrivals = (arrival_of(bucket, found.key, uploaded=found.modified) for found in listed)
    return [
        arrival
        for arrival in arrivals
        if arrival is not None and arrival.run == record.run and arrival.kind is FileKind.COLLECTIONS
    ]


def _pages(listed: object) -> Iterator[list[Listed]]:
    remaining = iter(listed)  # type: ignore[call-overload]
    while page := list(islice(remaining, _PAGE)):
        yield page


def _unknown(
    world: World, record: RunRecord, bucket: str, page: Sequence[Listed], settled: float
) -> list[Arrival]:
    arrivals = [
        arrival
        for listed in page
        if listed.modified <= settled
        and (arrival := arrival_of(bucket, listed.key, uploaded=listed.modified)) is not None
        and arrival.run == record.run
    ]
    if not arrivals:
        return []
    steps = [arrival.step for arrival in arrivals]
    noted = world.index.steps(record.run, record.training_run, first=min(steps), last=max(steps))
    known = {step.step: step for step in noted}
    current, _ = by_attempt(world, record, [arrival for arrival in arrivals if not is_noted(arrival, known)])
    return current
