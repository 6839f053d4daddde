"""Events on their way to the bus, as items of their own: one batch for each commit of a group.

The items are written before the commit, under the token of its lease. They are published only once the
commit has named their number in the group's outbox; those of a commit that never came expire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from functions.ports import ItemStore
from smdebug.service.step_index import items

KEPT_FOR = 30 * 86_400.0  # seconds; an event is published within minutes, or not at all
_COUNT, _NEXT = "count", "next"


class Pending(NamedTuple):
    """Some events to publish, and how the outbox is to be changed once they are."""

    entries: dict[str, Mapping[str, Any]]
    published: list[str]  # names in the outbox that are done with
    begun: dict[str, Mapping[str, int]]  # batches of which a part is published
    more: bool


def write_batch(
    store: ItemStore,
    run: str,
    group: str,
    token: int,
    outbox: Mapping[str, Mapping[str, Any]],
    *,
    now: float,
) -> dict[str, dict[str, int]]:
    """Write the events of a commit; return what it has to put into the group's outbox."""
    for number, entry in enumerate(outbox.values()):
        store.put(
            {
                "pk": items.run_pk(run),
                "sk": items.event_sk(group, token, number),
                "detail_type": entry["detail_type"],
                "detail": entry["detail"],
                "expires": int(now + KEPT_FOR),
            }
        )
    return {_name(token): {_COUNT: len(outbox), _NEXT: 0}} if outbox else {}


def pending(
    store: ItemStore,
    run: str,
    group: str | None,
    outbox: Mapping[str, Mapping[str, Any]],
    *,
    most: int,
    largest: int,
) -> Pending:
    """Return the first events of an outbox, at most `most` of together about `largest` bytes."""
    chosen = Pending({}, [], {}, more=False)
    room = largest
    for name, entry in outbox.items():
        if _COUNT not in entry:  # the event itself
            room -= _size(entry)
            if chosen.entries and (room < 0 or len(chosen.entries) == most):
                return chosen._replace(more=True)
            chosen.entries[name] = entry
            chosen.published.append(name)
            continue
        at, count, token = int(entry[_NEXT]), int(entry[_COUNT]), int(name.removeprefix("batch-"))
        found = store.query(
            items.run_pk(run),
            first=items.event_sk(group or "", token, at),
            last=items.event_sk(group or "", token, count - 1),
            limit=most,
        )
        for event in found:
            room -= _size(event)
            if chosen.entries and (room < 0 or len(chosen.entries) == most):
                chosen.begun[name] = {**entry, _NEXT: at}
                return chosen._replace(more=True)
            chosen.entries[f"{name}-{at}"] = event
            at += 1
        if found and at < count:
            chosen.begun[name] = {**entry, _NEXT: at}
            return chosen._replace(more=True)
        chosen.published.append(name)
    return chosen


def _name(token: int) -> str:
    return f"batch-{token}"


def _size(entry: Mapping[str, Any]) -> int:
    return len(str(entry["detail"]).encode()) + 200
