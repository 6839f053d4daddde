"""The step index: which workers have written which step, which rules watch a run, and their progress.

Methods only read and write the item store. `functions.decisions` decides what follows from the results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from functions.event_batches import Pending, pending
from functions.ports import PRESENT, ItemStore, Only, Refused
from functions.rule_groups import RuleGroups
from functions.run_budgets import RunBudgets
from functions.versioned_items import versioned
from smdebug.service.records import RunRecord, StepLayout, StepRecord
from smdebug.service.step_index import items
from smdebug.service.step_index.closing_notes import closing_notes_of, closing_token
from smdebug.service.step_index.items import RulesOfRun
from smdebug.service.step_index.packing import packed, unpacked


class Watched(NamedTuple):
    """A run on the list of watched runs: since when, and how often it was listed."""

    run: str
    since: float
    listings: int


class StepIndex:
    """The records of all runs, over a store of items.

    The class is long because each kind of item has a few short methods of its own.
    """

    def __init__(
        self,
        store: ItemStore,
        *,
        kept_for: float,
        now: Callable[[], float] = time.time,
    ):
        self._store = versioned(store)
        self._now = now
        self._kept_for = kept_for
        self.groups = RuleGroups(self._store, now)
        self.budgets = RunBudgets(self._store, self._expires)

    def _expires(self) -> dict[str, int]:
        """Return the attribute with the time at which the table may delete the item."""
        return {"expires": int(self._now() + self._kept_for)}

    # Runs

    def run(self, run: str) -> RunRecord | None:
        item = self._store.get(items.run_pk(run), items.RUN)
        return None if item is None else items.run_of(item)

    def list_run(self, run: str, now: float) -> None:
        """Add the run to the list of watched runs. It is kept for as long as it is on it."""
        self._store.update(items.RUNS, run, set_once={"since": now}, add={"listings": 1})
        self._store.delete(items.PAST_RUNS, run)

    def begin_run(self, record: RunRecord) -> bool:
        """Add a run; return False if it is known already."""
        try:
            self._store.put(items.item_of_run(record), Only(absent=True))
        except Refused:
            return False
        return True

    def change_run(self, before: RunRecord, after: RunRecord) -> RunRecord | None:
        """Replace the record; return None if another process changed it first: read it again."""
        changed = replace(after, version=before.version + 1)
        item = items.item_of_run(changed)
        del item["pk"], item["sk"], item["check_until"], item["listed_at"]
        try:
            self._store.update(
                items.run_pk(before.run),
                items.RUN,
                set=item,
                only=Only(equal={"version": before.version}),
            )
        except Refused:
            return None
        return changed

    def note_check(self, run: str, until: float, *, known: float, now: float) -> None:
        """Record when a check of this run will come, unless an earlier one is waiting.

        `known` is what the caller read: another process may have noted one meanwhile.
        """
        while not now < known <= until:
            try:
                only = Only(equal={"check_until": known})
                self._store.update(items.run_pk(run), items.RUN, set={"check_until": until}, only=only)
            except Refused:
                record = self.run(run)
                if record is None or record.check_until == known:
                    return
                known = record.check_until
            else:
                return

    def note_no_check(self, run: str) -> None:
        """Record that no check of this run is waiting."""
        self._store.update(items.run_pk(run), items.RUN, set={"check_until": 0}, only=PRESENT)

    def note_listing(self, run: str, now: float) -> None:
        """Record that the files of this run were listed."""
        self._store.update(items.run_pk(run), items.RUN, set={"listed_at": now}, only=PRESENT)

    def watched_runs(self) -> list[Watched]:
        """Return the list of watched runs."""
        return [
            Watched(item["sk"], item["since"], item["listings"]) for item in self._store.query(items.RUNS)
        ]

    def unlist_run(self, watched: Watched) -> bool:
        """Move the run to the past runs, in several writes; return False if it was listed again."""
        only = Only(equal={"listings": watched.listings})
        self._store.put({"pk": items.PAST_RUNS, "sk": watched.run, **self._expires()})
        try:
            self._store.delete(items.RUNS, watched.run, only)
        except Refused:
            self._store.delete(items.PAST_RUNS, watched.run)
            return False
        return True

    def run_below(self, run: str) -> str | None:
        """Return a run in a folder below this place that is or was watched; None if there is none."""
        for listed in (items.RUNS, items.PAST_RUNS):
            first = f"{run}/"
            for item in self._store.query(listed, first=first, last=first + items.LAST, limit=1):
                return str(item["sk"])
        return None

    # What the table may delete

    def let_expire(self, record: RunRecord) -> None:
        """Give the items of a finished run an age, in a number of writes independent of its steps."""
        expires = self._expires()
        for pk, sk in self._kept_items(record):
            with suppress(Refused):
                self._store.update(pk, sk, set=expires, only=PRESENT)

    def keep(self, record: RunRecord) -> None:
        """Keep the items of a run that was finished and continues."""
        for pk, sk in self._kept_items(record):
            with suppress(Refused):
                self._store.update(pk, sk, remove=["expires"], only=PRESENT)

    def may_lack_steps(self, record: RunRecord, *, since: float = 0.0) -> bool:
        """Whether the run, or its part `since` then, is so old that its first steps may have expired."""
        return self._now() - max(record.first_seen, since) >= self._kept_for

    def has_expired(self, step: StepRecord) -> bool:
        """Whether the table may delete the step's items, and has perhaps deleted those of its neighbours."""
        return self._now() - step.indexed >= self._kept_for

    def is_abandoned(self, record: RunRecord) -> bool:
        """Whether nothing has arrived for as long as steps are kept."""
        if not self.may_lack_steps(record):
            return False
        newest = self.steps(record.run, record.training_run, limit=1, newest_first=True)
        return not newest or self._now() - newest[0].indexed >= self._kept_for

    def _kept_items(self, record: RunRecord) -> list[tuple[str, str]]:
        """Return the keys of what a run has once, and not for each of its steps or findings."""
        pk = items.run_pk(record.run)
        layouts = map(items.layout_sk, self.layouts(record.run))
        groups = (items.group_sk(group.group) for group in self.groups.all_of(record.run))
        own = [items.RUN, items.RULES, items.COLLECTIONS, *groups, *layouts]
        job = [(items.job_pk(record.job), record.run)] if record.job else []
        return [*((pk, sk) for sk in own), *job]

    def note_job(self, job: str, run: str) -> None:
        self._store.put({"pk": items.job_pk(job), "sk": run})

    def runs_of_job(self, job: str) -> list[str]:
        return [item["sk"] for item in self._store.query(items.job_pk(job))]

    # The contents of a run's files

    def rules(self, run: str) -> RulesOfRun:
        return items.rules_of(self._store.get(items.run_pk(run), items.RULES))

    def rules_version(self, run: str) -> str:
        """Return the version of the stored rules; the run's record may still have an older one."""
        item = self._store.get(items.run_pk(run), items.RULES)
        return "" if item is None else str(item["version"])

    def put_rules(self, run: str, rules: RulesOfRun, version: str) -> bool:
        """Store the rules; return False if the same or a newer version is stored."""
        item = items.item_of_rules(run, rules, version)
        try:
            self._store.put(item, Only(below={"version": version}))
        except Refused:
            return False
        return True

    def collections(self, run: str) -> Mapping[str, Any] | None:
        item = self._store.get(items.run_pk(run), items.COLLECTIONS)
        return None if item is None else unpacked(item["body"])

    def put_collections(self, run: str, content: Mapping[str, Any], version: str) -> bool:
        """Store the collections file; return False if it is too large for the table."""
        body = packed(content)
        kept = len(body) <= 300_000
        content_item = {"version": version, "body": body if kept else packed(None)}
        item = {"pk": items.run_pk(run), "sk": items.COLLECTIONS, **content_item}
        self._store.put(item)
        return kept

    def layouts(self, run: str) -> dict[str, StepLayout]:
        found = self._store.query(
            items.run_pk(run), first=items.LAYOUT_PREFIX, last=items.LAYOUT_PREFIX + items.LAST
        )
        return {layout.digest: layout for layout in map(items.layout_of, found)}

    def put_layout(self, run: str, layout: StepLayout) -> None:
        """Store a new layout, with the names of its tensors; an existing one is kept."""
        with suppress(Refused):
            self._store.put(items.item_of_layout(run, layout), Only(absent=True))

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
        """Add the arrived files of a step; return the record of that shard as it is now."""
        item = self._store.update(
            items.run_pk(run),
            items.step_sk(training_run, step, shard),
            add={"f": tokens},
            set={"up": round(uploaded, 3), "ix": round(indexed, 3)},
            set_once={"expires": int(indexed + self._kept_for)},
        )
        return items.step_of([item])

    def note_closing(self, run: str, training_run: int, worker: str, last_step: int | None) -> None:
        """Note that the worker has closed, and the last step that it has saved."""
        self._store.update(
            items.run_pk(run),
            f"{items.closed_prefix(training_run)}{items.shard_of(worker):04}",
            add={"f": frozenset([closing_token(worker, last_step)])},
            set=self._expires(),
        )

    def closing_notes(self, run: str, training_run: int) -> dict[str, int]:
        """Return the last step of each worker that has closed; -1 if it has saved none."""
        prefix = items.closed_prefix(training_run)
        found = self._store.query(items.run_pk(run), first=prefix, last=prefix + items.LAST)
        return closing_notes_of(found)

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
        """Return the steps from `first` to `last` with any arrived files; at most about `limit` shards."""
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
        """Return the items with all shards of the last step, which a limit may have cut."""
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
        """Store the summary of a step whose index files were read."""
        by = {"by": frozenset([evaluated_by])} if evaluated_by else {}
        self._store.update(
            items.run_pk(run),
            items.step_sk(step.training_run, step.step),
            set={"m": mode, "ms": mode_step, "l": layout},
            add=by,
        )

    # Findings

    def put_finding(self, run: str, step: int, id: str, detail: Mapping[str, Any]) -> None:
        """Store a finding, under the same id however often it is found."""
        self._store.put(items.item_of_finding(run, step, id, detail) | self._expires())

    # Outbox

    def pending(
        self,
        run: str,
        group: str | None,
        outbox: Mapping[str, Mapping[str, Any]],
        *,
        most: int,
        largest: int,
    ) -> Pending:
        """Return the first events of the outbox of a group, or of the run itself."""
        return pending(self._store, run, group, outbox, most=most, largest=largest)

    def mark_published(
        self,
        run: str,
        group: str | None,
        ids: Iterable[str],
        begun: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        """Remove published events from the outbox; note how far a batch is published that is `begun`."""
        sk = items.RUN if group is None else items.group_sk(group)
        self._store.update(
            items.run_pk(run),
            sk,
            put_in={"outbox": begun} if begun else None,
            remove_from={"outbox": list(ids)} if ids else None,
            only=PRESENT,
        )
