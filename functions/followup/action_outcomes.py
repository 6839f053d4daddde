"""The outcomes of the actions of findings, in the step index: an item each, and an event in the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.ports import PRESENT, ItemStore, Only, Refused
from functions.versioned_items import versioned
from smdebug.service.step_index import items
from smdebug.service.step_index.packing import packed, unpacked

KEPT_FOR = 90 * 86_400
CLAIM = "CLAIM"


class OutcomesInIndex:
    """Outcomes of actions, beside the run that they are about."""

    def __init__(self, store: ItemStore):
        self._store = versioned(store)

    def claim(self, finding_id: str, deed_id: str, *, by: str, now: float, until: float) -> bool:
        # The first claims it in one write; another takes over only the expired claim that it has read.
        pk, wanted = f"{CLAIM}#{finding_id}", {"by": by, "until": int(until)}
        kept = self._store.update(pk, deed_id, set={"expires": int(now + KEPT_FOR)}, set_once=dict(wanted))
        found = {"by": kept["by"], "until": int(kept["until"])}
        if found == wanted:
            return True
        if found["by"] != by and found["until"] > now:
            return False
        try:
            self._store.update(pk, deed_id, set=wanted, only=Only(equal=found))
        except Refused:
            return False
        return True

    def settled(self, run: str, group: str, rule_id: str, finding_id: str) -> frozenset[str]:
        first = f"{items.ACTION_PREFIX}{finding_id}#"
        found = self._store.query(items.run_pk(run), first=first, last=first + items.LAST)
        outcomes = (unpacked(item["body"]) for item in found)
        return frozenset(outcome["id"] for outcome in outcomes if outcome["settled"])

    def record_action(
        self,
        run: str,
        group: str,
        rule_id: str,
        outcome: Mapping[str, Any],
        outbox: Mapping[str, Mapping[str, Any]],
    ) -> None:
        # Two writes. If only the first happens the action is done again, and its event is the same.
        try:
            self._store.update(
                items.run_pk(run), items.group_sk(group), put_in={"outbox": outbox}, only=PRESENT
            )
        except Refused:  # a lane that has joined the others since: the run's outbox reports it
            self._store.update(
                items.run_pk(run),
                items.RUN,
                put_in={"outbox": outbox},
                add={"version": 1},  # a process that is changing the run has to read it again
                only=PRESENT,
            )
        self._store.put(
            {
                "pk": items.run_pk(run),
                "sk": f"{items.ACTION_PREFIX}{outcome['finding_id']}#{outcome['id']}",
                "rule": rule_id,
                "body": packed(dict(outcome)),
                "expires": int(outcome["at"] + KEPT_FOR),
            }
        )
