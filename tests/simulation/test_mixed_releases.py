"""Handlers of this release, of an earlier and of a later one on the same runs, in any order, with all faults.

Each process of a function is of one release. The later one adds fields to each run, group and rule that it
writes, and looks for them when it reads the record again. The earlier one knows no formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from functions import step_index
from functions.ports import ALWAYS, ItemChange, Only
from functions.step_index import StepIndex
from functions.world import World
from smdebug.service.step_index import items
from smdebug.service.step_index.formats import FORMAT, kind_of
from smdebug.service.step_index.item_reader import Item, ItemReader, KeyRange
from smdebug.service.step_index.packing import packed, unpacked
from tests.simulation.invariants import simulate
from tests.simulation.limits import LimitedItems
from tests.simulation.simulation import Simulation

EARLIER, PRESENT, LATER = "earlier", "present", "later"
ADDED = "of_later"
SCENARIOS = (
    "one worker, ends",
    "two workers, end",
    "one dies, and the run ends",
    "resumed",
    "two workers resume",
    "a custom rule, resumed",
    "rules come and go",
    "actions and alerts",
)
SEEDS = range(6)


class Witness:
    """What the later release has written, and what it did not find again."""

    def __init__(self, rules_stay: bool) -> None:
        self.records: dict[tuple[str, str], set[str]] = {}  # the ids of their rules
        self.lost: set[str] = set()
        self._rules_stay = rules_stay

    def wrote(self, pk: str, sk: str, body: Mapping[str, Any]) -> None:
        self.records[pk, sk] = {rule["id"] for rule in body.get("rules", ())}

    def forget(self, pk: str, sk: str) -> None:
        """Expect nothing of a record that was deleted or begun again."""
        self.records.pop((pk, sk), None)

    def read(self, item: Item) -> None:
        known = self.records.get((item["pk"], item["sk"]))
        if known is None:
            return
        body = unpacked(item["body"])
        if ADDED not in item or ADDED not in body:
            self.lost.add(f"{item['sk']} has lost a field")
        rules = [rule for rule in body.get("rules", ()) if rule["id"] in known]
        if self._rules_stay and not all(ADDED in rule for rule in rules):
            self.lost.add(f"{item['sk']} has lost a field of a rule")


class ItemsOfRelease(ItemReader):
    """The table as the functions of one release use it."""

    def __init__(self, store: LimitedItems, release: str, witness: Witness) -> None:
        self._store = store
        self._release = release
        self._witness = witness

    def get(self, pk: str, sk: str) -> Item | None:
        item = self._store.get(pk, sk)
        return None if item is None else self._read(item)

    def read_range(self, keys: KeyRange) -> list[Item]:
        return [self._read(item) for item in self._store.read_range(keys)]

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        written = self._written(item)
        self._store.put(written, self._condition(only))
        self._witness.forget(item["pk"], item["sk"])
        self._note(item["pk"], item["sk"], written)

    def update(self, pk: str, sk: str, *, only: Only = ALWAYS, **changes: Any) -> Item:
        if changes.get("set"):
            changes["set"] = self._written(changes["set"], pk, sk)
        changed = self._store.update(pk, sk, only=self._condition(only), **changes)
        self._note(pk, sk, changes.get("set") or {})
        return self._read(changed)

    def delete(self, pk: str, sk: str, only: Only = ALWAYS) -> None:
        self._store.delete(pk, sk, self._condition(only))
        self._witness.forget(pk, sk)

    def change_together(self, changes: Sequence[ItemChange]) -> None:
        written = [
            replace(
                change,
                set={} if change.delete else self._written(change.set, change.pk, change.sk),
                only=self._condition(change.only),
            )
            for change in changes
        ]
        self._store.change_together(written)
        for change in written:
            if change.delete:
                self._witness.forget(change.pk, change.sk)
            self._note(change.pk, change.sk, change.set)

    def _written(self, attributes: Mapping[str, Any], pk: str = "", sk: str = "") -> Item:
        """Return the attributes as the release writes them."""
        written = dict(attributes)
        if self._release == EARLIER:
            written.pop(FORMAT, None)
        elif FORMAT not in written:
            self._witness.lost.add(f"{written.get('sk', sk)} was written without a format")
        is_record = kind_of(written.get("pk", pk), written.get("sk", sk)) in ("RUN", "GROUP")
        if self._release == LATER and is_record and "body" in written:
            body = unpacked(written["body"])
            if "rules" in body:
                body["rules"] = [{**rule, ADDED: 1} for rule in body["rules"]]
            written |= {ADDED: 1, "body": packed({**body, ADDED: 1})}
        return written

    def _condition(self, only: Only) -> Only:
        if self._release != EARLIER:
            return only
        return replace(only, below={name: bound for name, bound in only.below.items() if name != FORMAT})

    def _note(self, pk: str, sk: str, written: Mapping[str, Any]) -> None:
        if ADDED in written:
            self._witness.wrote(pk, sk, unpacked(written["body"]))

    def _read(self, item: Item) -> Item:
        if self._release == LATER:
            self._witness.read(item)
        return item


class MixedReleases(Simulation):
    """A stack in the middle of an upgrade, and of a roll-back, that never ends."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        trainings = self.scenario.trainings
        self.witness = Witness(
            not any(training.rules_change or training.rules_at_last is not None for training in trainings)
        )
        self.releases: set[str] = set()

    def _world(self, function: str) -> World:
        release = self.chance.choice((EARLIER, PRESENT, PRESENT, LATER))
        self.releases.add(release)
        store = ItemsOfRelease(self.items, release, self.witness)
        index = StepIndex(self._port("table", store), kept_for=self.scenario.kept_for, now=self.now)
        return replace(super()._world(function), index=index)


def mixed(seed: int, scenario: str) -> MixedReleases:
    """Return the schedule of that seed, held to what was promised."""
    simulation = simulate(seed, scenario, kind=MixedReleases)
    assert isinstance(simulation, MixedReleases)
    return simulation


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_three_releases_on_the_same_runs_break_no_promise_and_lose_no_field(scenario):
    releases, records = set(), 0
    for seed in SEEDS:
        simulation = mixed(seed, scenario)
        assert not simulation.witness.lost, f"seed {seed}: {simulation.witness.lost}"
        releases |= simulation.releases
        records += len(simulation.witness.records)
    assert releases == {EARLIER, PRESENT, LATER}
    assert records, "the later release has written nothing"


@pytest.mark.parametrize(
    ("place", "attribute", "instead", "lost"),
    [
        (items, "_without", lambda known, body: {}, "has lost a field"),
        (step_index, "versioned", lambda store: store, "was written without a format"),
    ],
    ids=["this release drops the fields that it does not know", "this release names no format"],
)
def test_a_release_that_would_harm_another_is_caught(place, attribute, instead, lost, monkeypatch):
    simulate(0, "two workers, end")  # what the invariants compare with is of the sound release
    monkeypatch.setattr(place, attribute, instead)
    found = set()
    for seed in SEEDS:
        found |= mixed(seed, "two workers, end").witness.lost
    assert any(lost in loss for loss in found), found
