"""The step index: who has written which step, which rules watch a run, and how far each has come.

Everything here is one call of the item store, or says that it is two. What follows from the answers is
decided in `functions.decisions`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from functions.ports import Change, ItemStore, Only, Refused
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.service import items
from smdebug.service.items import RulesOfRun
from smdebug.service.records import GroupRecord, Layout, RunRecord, StepRecord

KEPT_FOR = 90 * 86_400
_PRESENT = Only(present=True)


class GroupBusy(SMDebugRuntimeError):
    """Somebody else evaluates these rules on this run right now: try again in a while."""


class GroupGone(SMDebugRuntimeError):
    """There is no such group of rules any more: it has joined the others."""


class LeaseLost(SMDebugRuntimeError):
    """The lease ran out and somebody else took over: what was done here does not count."""


class Watched(NamedTuple):
    """A run on the list of those that are being watched: since when, and how often it was put there."""

    run: str
    since: float
    listings: int


class StepIndex:
    """The records of all runs, over a store of items."""

    def __init__(
        self,
        store: ItemStore,
        *,
        now: Callable[[], float] = time.time,
        kept_for: float = KEPT_FOR,
    ):
        self._store = store
        self._now = now
        self._kept_for = kept_for

    def _expires(self) -> dict[str, int]:
        """When the table may forget what is written now."""
        return {"expires": int(self._now() + self._kept_for)}

    # Runs

    def run(self, run: str) -> RunRecord | None:
        item = self._store.get(items.run_pk(run), items.RUN)
        return None if item is None else items.run_of(item)

    def list_run(self, run: str, now: float) -> None:
        """Put the run on the list of those that are being watched."""
        self._store.update(
            items.RUNS, run, set_once={"since": now}, add={"listings": 1}, set=self._expires()
        )
        self._store.delete(items.PAST_RUNS, run)

    def begin_run(self, record: RunRecord) -> bool:
        """Note a run; False if it is known already."""
        try:
            self._store.put(items.item_of_run(record) | self._expires(), Only(absent=True))
        except Refused:
            return False
        return True

    def change_run(self, before: RunRecord, after: RunRecord) -> RunRecord | None:
        """Put what changed in place of what was read; None if somebody else was faster: read again."""
        changed = replace(after, version=before.version + 1)
        item = items.item_of_run(changed)
        del item["pk"], item["sk"], item["check_until"]
        try:
            self._store.update(
                items.run_pk(before.run),
                items.RUN,
                set=item | self._expires(),
                only=Only(equal={"version": before.version}),
            )
        except Refused:
            return None
        return changed

    def note_check(self, run: str, until: float) -> None:
        """A check of this run is waiting until then; 0: none is."""
        self._store.update(
            items.run_pk(run),
            items.RUN,
            set={"check_until": until, **self._expires()},
            only=_PRESENT,
        )

    def watched_runs(self) -> list[Watched]:
        """The runs that are being watched."""
        return [
            Watched(item["sk"], item["since"], item["listings"])
            for item in self._store.query(items.RUNS)
        ]

    def unlist_run(self, watched: Watched) -> bool:
        """Watch the run no longer; it stays known as one that was watched. False if it was listed again."""
        only = Only(equal={"listings": watched.listings})
        self._store.put({"pk": items.PAST_RUNS, "sk": watched.run, **self._expires()})
        try:
            self._store.delete(items.RUNS, watched.run, only)
        except Refused:
            self._store.delete(items.PAST_RUNS, watched.run)
            return False
        return True

    def note_job(self, job: str, run: str) -> None:
        self._store.put({"pk": items.job_pk(job), "sk": run, **self._expires()})

    def runs_of_job(self, job: str) -> list[str]:
        return [item["sk"] for item in self._store.query(items.job_pk(job))]

    # What a run's files say

    def rules(self, run: str) -> RulesOfRun:
        return items.rules_of(self._store.get(items.run_pk(run), items.RULES))

    def rules_version(self, run: str) -> str:
        """The version of the rules that are known, which whoever noted them may not have told the run."""
        item = self._store.get(items.run_pk(run), items.RULES)
        return "" if item is None else str(item["version"])

    def put_rules(self, run: str, rules: RulesOfRun, version: str) -> bool:
        """Note the rules; False if those of the same or a newer version are known."""
        item = items.item_of_rules(run, rules, version) | self._expires()
        try:
            self._store.put(item, Only(below={"version": version}))
        except Refused:
            return False
        return True

    def collections(self, run: str) -> Mapping[str, Any] | None:
        item = self._store.get(items.run_pk(run), items.COLLECTIONS)
        return None if item is None else items.unpacked(item["body"])

    def put_collections(self, run: str, content: Mapping[str, Any], version: str) -> bool:
        """Note the collections file; False if it is too large for the table, and stays where it is."""
        body = items.packed(content)
        kept = len(body) <= 300_000
        told = {"version": version, "body": body if kept else items.packed(None)}
        item = {"pk": items.run_pk(run), "sk": items.COLLECTIONS, **told}
        self._store.put(item | self._expires())
        return kept

    def layouts(self, run: str) -> dict[str, Layout]:
        found = self._store.query(
            items.run_pk(run), first=items.LAYOUT_PREFIX, last=items.LAYOUT_PREFIX + items.LAST
        )
        return {layout.digest: layout for layout in map(items.layout_of, found)}

    def put_layout(self, run: str, layout: Layout) -> None:
        """Note the names of a step whose like was not seen before; the first to say so counts."""
        with suppress(Refused):
            self._store.put(items.item_of_layout(run, layout) | self._expires(), Only(absent=True))

    # Steps

    def note_arrivals(
        self,
        run: str,
        training_run: int,
        step: int,
        shard: int,
        tokens: frozenset[str],
        *,
        uploaded: float,
        indexed: float,
    ) -> StepRecord:
        """Add what has arrived of a step; the record of that shard as it is now."""
        item = self._store.update(
            items.run_pk(run),
            items.step_sk(training_run, step, shard),
            add={"f": tokens},
            set={"up": round(uploaded, 3), "ix": round(indexed, 3)},
            set_once={"expires": int(indexed + self._kept_for)},
        )
        return items.step_of([item])

    def step(self, run: str, training_run: int, step: int) -> StepRecord | None:
        found = self.steps(run, training_run, first=step, last=step)
        return found[0] if found else None

    def steps(
        self,
        run: str,
        training_run: int,
        *,
        first: int = 0,
        last: int | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[StepRecord]:
        """The steps from `first` to `last` of which something has arrived; at most about `limit` shards."""
        prefix = items.steps_prefix(training_run)
        begin = f"{prefix}{first:012}#"
        end = f"{prefix}{last:012}#{items.LAST}" if last is not None else prefix + items.LAST
        found = self._store.query(
            items.run_pk(run), first=begin, last=end, limit=limit, newest_first=newest_first
        )
        may_be_cut = not newest_first or not found[-1]["sk"].endswith("#0000") if found else False
        if len(found) == limit and may_be_cut:
            found = self._with_all_shards(run, found)
        return items.steps_of(found)

    def _with_all_shards(self, run: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same, with the last step whole: a limit may have cut it."""
        of_last = found[-1]["sk"].rpartition("#")[0] + "#"
        shards = self._store.query(items.run_pk(run), first=of_last, last=of_last + items.LAST)
        return [item for item in found if not item["sk"].startswith(of_last)] + shards

    def describe_step(
        self,
        run: str,
        step: StepRecord,
        *,
        mode: str,
        mode_step: int,
        layout: str,
        evaluated_by: str | None = None,
    ) -> None:
        """Note what a step holds, now that its index files were read."""
        by = {"by": frozenset([evaluated_by])} if evaluated_by else {}
        self._store.update(
            items.run_pk(run),
            items.step_sk(step.training_run, step.step),
            set={"m": mode, "ms": mode_step, "l": layout},
            add=by,
        )

    # Findings

    def put_finding(self, run: str, step: int, id: str, detail: Mapping[str, Any]) -> None:
        """Keep what a rule found, under an id that is the same however often it is found."""
        self._store.put(items.item_of_finding(run, step, id, detail) | self._expires())

    # Groups of rules

    def group(self, run: str, group: str) -> GroupRecord | None:
        item = self._store.get(items.run_pk(run), items.group_sk(group))
        return None if item is None else items.group_of(item)

    def groups(self, run: str) -> list[GroupRecord]:
        found = self._store.query(
            items.run_pk(run), first=items.GROUP_PREFIX, last=items.GROUP_PREFIX + items.LAST
        )
        return list(map(items.group_of, found))

    def groups_of(self, record: RunRecord) -> list[GroupRecord]:
        """The groups that the run has: not one whose maker died before it was named there."""
        return [one for one in self.groups(record.run) if one.group in record.groups]

    def begin_group(self, run: str, record: GroupRecord) -> bool:
        """Note a group of rules; False if it is known already."""
        try:
            self._store.put(items.item_of_group(run, record) | self._expires(), Only(absent=True))
        except Refused:
            return False
        return True

    def begin_lane(self, run: str, record: GroupRecord) -> None:
        """Note a lane, in place of one that nobody has taken a lease of yet."""
        if self.begin_group(run, record):
            return
        untouched = Only(equal={"token": 0})
        with suppress(Refused):
            self._store.put(items.item_of_group(run, record) | self._expires(), untouched)

    def lease(self, run: str, group: str, *, now: float, seconds: float) -> GroupRecord:
        """Take the group for so long; `GroupBusy` while somebody else has it, `GroupGone` if it is no more.

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
                raise GroupGone(f"There are no rules {group} of {run}") from None
            raise GroupBusy(
                f"The rules {group} of {run} are being evaluated by somebody else right now"
            ) from None
        return items.group_of(item)

    def commit(
        self, run: str, record: GroupRecord, outbox: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Everything that an evaluation changed, and the end of its lease, in one write.

        `LeaseLost` if somebody else has taken a lease since: nothing is changed then.
        """
        try:
            self._store.update(
                items.run_pk(run),
                items.group_sk(record.group),
                set={
                    **items.progress_of_group(record),
                    **self._expires(),
                    "lease": 0,
                    "deaths": 0,
                    "alone": [],
                },
                put_in={"outbox": outbox} if outbox else None,
                only=Only(equal={"token": record.token}),
            )
        except Refused:
            raise LeaseLost(
                f"The lease on the rules {record.group} of {run} was taken over; nothing was committed"
            ) from None

    def merge(
        self, record: RunRecord, lane: GroupRecord, into: GroupRecord, merged: GroupRecord
    ) -> bool:
        """Let a lane end and another group take on its rules, in one go; False if either has moved on.

        The lane is held by who asks; the other group must not be held by anybody.
        """
        pk = items.run_pk(record.run)
        groups = tuple(group for group in record.groups if group != lane.group)
        run = items.item_of_run(replace(record, groups=groups, version=record.version + 1))
        kept = {name: run[name] for name in ("version", "body")}
        try:
            self._store.change_together(
                [
                    Change(pk, items.RUN, kept, only=Only(equal={"version": record.version})),
                    Change(
                        pk,
                        items.group_sk(into.group),
                        items.progress_of_group(merged),
                        only=Only(equal={"token": into.token, "lease": 0, "cursor": into.cursor}),
                    ),
                    Change(
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

    def note_alone(self, run: str, record: GroupRecord, rule: str) -> None:
        """Note which rule is tried alone now, and nothing else: if its holder dies, it was that one."""
        try:
            self._store.update(
                items.run_pk(run),
                items.group_sk(record.group),
                set={"alone": [rule]},
                only=Only(equal={"token": record.token}),
            )
        except Refused:
            raise LeaseLost(
                f"The lease on the rules {record.group} of {run} was taken over"
            ) from None

    def mark_published(self, run: str, group: str | None, ids: Iterable[str]) -> None:
        """Take what was published out of the outbox of the group, or of the run itself."""
        sk = items.RUN if group is None else items.group_sk(group)
        self._store.update(items.run_pk(run), sk, remove_from={"outbox": list(ids)}, only=_PRESENT)
