"""The groups of rules in the step index: their progress, and their leases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from functions.event_batches import write_batch
from functions.ports import ItemChange, ItemStore, Only, Refused
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.service.records import GroupRecord, RunRecord
from smdebug.service.step_index import items


class GroupBusy(SMDebugRuntimeError):
    """Another process holds the lease on these rules: try again in a while."""


class GroupGone(SMDebugRuntimeError):
    """The group no longer exists: it has joined another."""


class LeaseLost(SMDebugRuntimeError):
    """The lease ran out and another process took over: nothing done under it counts."""


class RuleGroups:
    """The records of all groups, over a store of items."""

    def __init__(self, store: ItemStore, now: Callable[[], float]):
        self._store = store
        self._now = now

    def get(self, run: str, group: str) -> GroupRecord | None:
        """Return the group, or None if there is no such group."""
        item = self._store.get(items.run_pk(run), items.group_sk(group))
        return None if item is None else items.group_of(item)

    def all_of(self, run: str) -> list[GroupRecord]:
        """Return every group of the run that is in the table."""
        found = self._store.query(
            items.run_pk(run), first=items.GROUP_PREFIX, last=items.GROUP_PREFIX + items.LAST
        )
        return list(map(items.group_of, found))

    def of_run(self, record: RunRecord) -> list[GroupRecord]:
        """Return the groups that the run's record names: a crash may leave one that it does not."""
        return [group for group in self.all_of(record.run) if group.group in record.groups]

    def begin(self, run: str, record: GroupRecord) -> bool:
        """Add a group; return False if it exists."""
        try:
            self._store.put(items.item_of_group(run, record), Only(absent=True))
        except Refused:
            return False
        return True

    def begin_lane(self, run: str, record: GroupRecord) -> None:
        """Add a lane, replacing one that was never leased."""
        if self.begin(run, record):
            return
        never_leased = Only(equal={"token": 0})
        with suppress(Refused):
            self._store.put(items.item_of_group(run, record), never_leased)

    def forget(self, run: str, record: GroupRecord) -> None:
        """Delete a group that its run's record no longer names, unless it was leased meanwhile."""
        with suppress(Refused):
            unchanged = Only(equal={"token": record.token, "lease": 0})
            self._store.delete(items.run_pk(run), items.group_sk(record.group), unchanged)

    def lease(self, run: str, group: str, *, now: float, seconds: float) -> GroupRecord:
        """Lease the group; `GroupBusy` if another process holds it, `GroupGone` if it does not exist.

        Until a commit, each lease counts as a death of its holder.
        """
        try:
            item = self._store.update(
                items.run_pk(run),
                items.group_sk(group),
                add={"token": 1, "deaths": 1},
                set={"lease": now + seconds},
                only=Only(present=True, below={"lease": now}),
            )
        except Refused:
            if self._store.get(items.run_pk(run), items.group_sk(group)) is None:
                raise GroupGone(f"{run} has no rules {group}") from None
            raise GroupBusy(f"The rules {group} of {run} are being evaluated right now") from None
        return items.group_of(item)

    def commit(
        self, run: str, record: GroupRecord, outbox: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Write everything that an evaluation changed and end its lease, in one write after its events.

        Return what this adds to the group's outbox.

        `LeaseLost` if another process has leased the group since: nothing is changed then.
        """
        batch = write_batch(self._store, run, record.group, record.token, outbox, now=self._now())
        changed = {
            **items.progress_of_group(record),
            "lease": 0,
            "deaths": 0,
            "alone": [],
        }
        self._write_held(run, record, set=changed, put_in={"outbox": batch} if batch else None)
        return batch

    def note_alone(self, run: str, record: GroupRecord, rule: str) -> None:
        """Note which rule is evaluated alone now: if the function dies, that rule is at fault."""
        self._write_held(run, record, set={"alone": [rule]})

    def _write_held(self, run: str, record: GroupRecord, **changes: Any) -> None:
        try:
            self._store.update(
                items.run_pk(run),
                items.group_sk(record.group),
                **changes,
                only=Only(equal={"token": record.token}),
            )
        except Refused:
            raise LeaseLost(
                f"The lease on the rules {record.group} of {run} was taken over; nothing was committed"
            ) from None

    def merge(self, record: RunRecord, lane: GroupRecord, into: GroupRecord, merged: GroupRecord) -> bool:
        """Replace `into` by `merged` and remove the lane, in one write; False if either has moved on.

        The caller holds the lane; the other group must not be held.
        """
        pk = items.run_pk(record.run)
        groups = tuple(group for group in record.groups if group != lane.group)
        run = items.item_of_run(replace(record, groups=groups, version=record.version + 1))
        changed = {name: run[name] for name in ("version", "body")}
        try:
            self._store.change_together(
                [
                    ItemChange(pk, items.RUN, changed, only=Only(equal={"version": record.version})),
                    ItemChange(
                        pk,
                        items.group_sk(into.group),
                        items.progress_of_group(merged),
                        only=Only(equal={"token": into.token, "lease": 0, "cursor": into.cursor}),
                    ),
                    ItemChange(
                        pk,
                        items.group_sk(lane.group),
                        delete=True,
                        only=Only(equal={"token": lane.token, "outbox": {}}),
                    ),
                ]
            )
        except Refused:
            return False
        return True
