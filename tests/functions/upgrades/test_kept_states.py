"""Today's handlers on the state that each release has left behind, and on what a newer one would leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from functions.evaluation.built_in import evaluate
from functions.handlers import act, notify, write_report
from smdebug.exceptions import NewerRecord
from smdebug.rules.memory.state_format import MAGIC
from smdebug.service.client import Debugger
from smdebug.service.records import RunState
from smdebug.service.step_index import formats
from smdebug.service.step_index.formats import FORMAT, kind_of
from smdebug.service.step_index.item_reader import Item
from smdebug.service.step_index.packing import packed, unpacked
from tests.functions.small_world import SmallWorld
from tests.functions.upgrades import kept_state
from tests.functions.upgrades.kept_state import RUN, STATES, from_json, go_on, items_of, straight

KEPT = sorted(STATES.glob("*.json"))
FOUND = ("Rule Evaluation Condition Met", "Rule Issue Resolved", "Rule Evaluation Status Change")
NEW = {"of_tomorrow": {"n": 1}}

pytestmark = pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)


@pytest.fixture
def left(file) -> SmallWorld:
    """A stack as that release has left it."""
    return from_json(json.loads(file.read_text(encoding="utf-8")))


def ids_of_events(small: SmallWorld) -> dict[str, str]:
    """Return the rule of each event about `mnist`, by the event's id."""
    details = (detail for kind in FOUND for detail in small.details(kind))
    return {detail["id"]: detail["rule"] for detail in details if detail["run"] == RUN}


def rewrite(small: SmallWorld, kinds: str, how: Callable[[Item], Item]) -> None:
    """Replace the items of these kinds."""
    for item in items_of(small):
        if kind_of(item["pk"], item["sk"]) in kinds.split():
            small.items.put(how(item))


def with_body(item: Item, how: Callable[[dict[str, Any]], dict[str, Any]]) -> Item:
    return {**item, "body": packed(how(unpacked(item["body"])))}


def item(small: SmallWorld, sk: str) -> Item:
    found = small.items.get(f"RUN#{RUN}", sk)
    assert found is not None
    return found


# What an earlier release has left


def test_todays_handlers_finish_the_runs_of_that_release(left):
    go_on(left)
    undisturbed = straight()
    assert left.index.run(RUN).state is RunState.FINISHED
    assert left.index.run(RUN).troubles == {}
    assert left.statuses() == undisturbed.statuses()
    assert left.statuses()["exploding"] == left.statuses()["same"] == "IssuesFound"
    assert ids_of_events(left) == ids_of_events(undisturbed)
    assert left.index.run(RUN).verdict == undisturbed.index.run(RUN).verdict


def test_todays_client_reads_the_runs_of_that_release(left):
    debugger = Debugger(left.items, lambda run: left.place(run.rpartition("/")[2]))
    states = {run.run: run.state for run in debugger.runs()}
    assert states == {"runs/mnist": RunState.RUNNING, "runs/done": RunState.FINISHED}
    run = debugger.run(RUN)
    assert [(finding.rule, finding.step) for finding in run.findings()] == [("ExplodingTensor", 3)]
    assert run.status("exploding").status == "IssuesFound"


def test_every_item_that_is_written_names_its_format(left):
    rewrite(left, "RUN GROUP STEP", lambda found: {k: v for k, v in found.items() if k != FORMAT})
    go_on(left)
    assert {item.get(FORMAT) for item in items_of(left) if item["pk"] == f"RUN#{RUN}"} >= {1}
    written = [item for item in items_of(left) if item["pk"] == f"RUN#{RUN}"]
    unwritten = {"STEP#0000#00000000000" + f"{step}#0000" for step in range(5)}  # not written again
    assert {item["sk"] for item in written if FORMAT not in item} <= unwritten


# What a newer release has left: fields that do not raise the format


def test_fields_of_a_newer_release_are_kept_by_all_that_rewrite_an_item(left):
    def with_news(item: Item) -> Item:
        return {**item, **NEW}

    def in_rules(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, **NEW, "rules": [{**rule, **NEW} for rule in body["rules"]]}

    for kinds in ("RUN GROUP STEP RULES LAYOUT COLLECTIONS RUNS", "OUTBOX CLOSED FINDING"):
        rewrite(left, kinds, with_news)
    rewrite(left, "RUN", lambda item: with_body(item, lambda body: {**body, **NEW}))
    rewrite(left, "GROUP", lambda item: with_body(item, in_rules))
    left.checks.waiting = [(after, {**message, **NEW}) for after, message in left.checks.waiting]
    for name, request in left.workflow.started.items():
        left.workflow.started[name] = {**request, **NEW}
    go_on(left)
    assert left.statuses() == straight().statuses()
    assert ids_of_events(left) == ids_of_events(straight())
    run, group = item(left, "RUN"), item(left, "GROUP#builtin")
    assert unpacked(run["body"])["of_tomorrow"] == NEW["of_tomorrow"]
    group_body = unpacked(group["body"])
    assert group_body["of_tomorrow"] == NEW["of_tomorrow"]
    assert [rule["of_tomorrow"] for rule in group_body["rules"]] == 4 * [NEW["of_tomorrow"]]
    for sk in ("RUN", "GROUP#builtin", "STEP#0000#000000000005#0000"):  # copies of files are put anew
        assert item(left, sk)["of_tomorrow"] == NEW["of_tomorrow"], sk


# And what does


@pytest.mark.parametrize("kind", ["RUN", "GROUP", "STEP", "RULES", "COLLECTIONS", "LAYOUT", "OUTBOX"])
def test_an_item_of_a_newer_format_is_neither_read_nor_changed(left, kind):
    def newer(item: Item) -> Item:
        return {**item, FORMAT: 2, "body": b"of another form"} if "body" in item else {**item, FORMAT: 2}

    rewrite(left, kind, newer)
    before = [found for found in items_of(left) if found.get(FORMAT) == 2]
    assert before
    with pytest.raises(NewerRecord, match=rf"The item {kind}.* has format 2, and this release knows 1"):
        go_on(left)
    assert [found for found in items_of(left) if found.get(FORMAT) == 2] == before


def test_an_item_that_was_not_read_is_not_changed_either(left):
    rewrite(left, "RUN", lambda item: {**item, FORMAT: 2})
    before = item(left, "RUN")
    with pytest.raises(NewerRecord):
        left.index.note_no_check(RUN)
    assert item(left, "RUN") == before


def test_a_release_with_a_newer_format_takes_over_what_it_can_read(left, monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", {"GROUP": 2})
    go_on(left)
    assert item(left, "GROUP#builtin")[FORMAT] == 2
    assert left.statuses() == straight().statuses()
    monkeypatch.undo()
    with pytest.raises(NewerRecord, match=r"GROUP#builtin"):
        left.index.groups.get(RUN, "builtin")


@pytest.mark.parametrize(
    ("kind", "changed", "named"),
    [
        ("RUN", lambda item: {**item, "state": "Paused"}, "the state 'Paused'"),
        (
            "GROUP",
            lambda item: with_body(
                item,
                lambda body: {**body, "rules": [{**rule, "status": "Asleep"} for rule in body["rules"]]},
            ),
            "the state 'Asleep'",
        ),
    ],
)
def test_a_state_that_this_release_does_not_know_is_named(left, kind, changed, named):
    rewrite(left, kind, changed)
    with pytest.raises(NewerRecord, match=named):
        Debugger(left.items, lambda run: left.place()).run(RUN).look()


def test_a_rule_whose_saved_state_is_newer_waits_and_is_no_error(left):
    def newer(body: dict[str, Any]) -> dict[str, Any]:
        magic, next_magic = MAGIC.decode(), MAGIC.decode().replace("1", "2")
        rules = [
            {**rule, "state": rule["state"].replace(magic, next_magic)} if "state" in rule else rule
            for rule in body["rules"]
        ]
        assert rules != body["rules"]
        return {**body, "rules": rules}

    rewrite(left, "GROUP", lambda item: with_body(item, newer))
    (request,) = left.workflow.started.values()
    with pytest.raises(NewerRecord, match=r"saved state of a rule .* has format 2"):
        evaluate(left.world, RUN, "builtin", request["step"])
    assert "Error" not in left.statuses().values()


@pytest.mark.parametrize("handler", [act.handler, notify.handler, write_report.handler])
def test_an_event_of_a_newer_version_is_refused_before_anything_is_done(left, handler):
    (event,) = [event for event in left.events if event["DetailType"] == FOUND[0]][:1]
    detail: Mapping[str, Any] = {**json.loads(event["Detail"]), "version": 2}
    with pytest.raises(NewerRecord, match="has version 2, and this release knows 1"):
        handler({"detail-type": FOUND[0], "detail": detail}, object())


def test_the_file_of_a_release_is_never_written_again(file):
    with pytest.raises(FileExistsError):
        kept_state.write(file.stem)
