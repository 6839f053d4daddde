"""Every record comes back from its item as it was, and the items that every step writes are small."""

from __future__ import annotations

import json
import random
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters.in_memory import MemoryItems
from functions.step_index import StepIndex
from smdebug.service.records import (
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    StepLayout,
    StepRecord,
)
from smdebug.service.step_index import items
from smdebug.service.step_index.attributes import as_attributes, item_in
from smdebug.service.step_index.items import RulesOfRun
from smdebug.service.step_index.packing import DamagedRecord, packed
from tests.functions.deployed_settings import KEPT_FOR
from tests.support.item_size import WRITE_UNIT, item_size

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
RUNS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
STEPS = st.integers(0, 10**12 - 1)
TIMES = st.floats(0, 4e9).map(lambda seconds: round(seconds, 3))
PLAIN = st.dictionaries(TEXT, st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXT))
OUTBOXES = st.dictionaries(NAMES, st.fixed_dictionaries({"detail_type": TEXT, "detail": TEXT}), max_size=2)
UNKNOWN = st.dictionaries(st.sampled_from(["tomorrow", "later"]), PLAIN, max_size=2)
MAYBE_STEP = st.none() | STEPS
WORKERS = st.one_of(
    st.integers(0, 200).map(lambda number: f"worker_{number}"),
    st.sampled_from(["/job:worker/device:GPU:0", "worker_007", "worker_", "worker_x", "=a", "w#1"]),
)


def built(kind: type, **strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records with each field drawn; a field without a strategy is an error."""
    assert strategies.keys() == {field.name for field in fields(kind)}
    return st.builds(kind, **strategies)


CONFIGURATIONS = built(
    RuleConfiguration,
    name=NAMES,
    rule=NAMES,
    parameters=st.dictionaries(NAMES, TEXT, max_size=3),
    source=st.none() | NAMES,
    other_trials=st.lists(NAMES, max_size=2).map(tuple),
    start_step=STEPS,
    end_step=st.none() | st.integers(1, 10**12),
    actions=st.lists(st.fixed_dictionaries({"name": NAMES}), max_size=2).map(tuple),
    repeat=st.none() | st.just("every_step"),
    logging_level=st.none() | st.just("DEBUG"),
    unknown=UNKNOWN,
)
RUN_RECORDS = built(
    RunRecord,
    run=RUNS,
    num_workers=st.none() | st.integers(1, 10**5),
    chief=TEXT,
    wide=st.booleans(),
    run_id=st.none() | TEXT,
    training_run=st.integers(0, 9999),
    training_base=st.integers(0, 9999),
    attempt_began=TIMES,
    attempt_noted=TIMES,
    attempt_starts=st.dictionaries(st.sampled_from(["0", "1", "17"]), STEPS, max_size=2),
    listed_at=TIMES,
    listed_through=st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    state=st.sampled_from(RunState),
    groups=st.lists(NAMES, max_size=3).map(tuple),
    job=st.none() | TEXT,
    first_seen=TIMES,
    ended_at=st.none() | TIMES,
    check_until=TIMES,
    rules_version=TEXT,
    collections_version=TEXT,
    collections_worker=TEXT,
    collections_uploaded=TIMES,
    troubles=st.dictionaries(NAMES, TEXT, max_size=2),
    summary=TEXT,
    verdict=TEXT,
    expires=st.none(),
    progress=TEXT,
    in_vain=st.integers(0, 100),
    outbox=OUTBOXES,
    version=st.integers(0, 10**9),
    unknown=UNKNOWN,
)
RULE_RECORDS = built(
    RuleRecord,
    id=NAMES,
    asks_at_end=st.booleans(),
    name=NAMES,
    status=st.sampled_from(RuleStatus),
    reason=TEXT,
    issue_since=MAYBE_STEP,
    last_found=MAYBE_STEP,
    last_good=MAYBE_STEP,
    changed_at=TIMES,
    catch_up_through=st.integers(-1, 10**12),
    state=st.one_of(st.binary(max_size=40), TEXT.map(str.encode)),
    state_key=TEXT,
    issue_id=st.text(max_size=32),
    issue_role=st.sampled_from(["", "cause", "symptom"]),
    outcomes=st.lists(PLAIN, max_size=2).map(tuple),
    evidence=st.lists(PLAIN, max_size=2).map(tuple),
    source_digest=TEXT,
    died_at=MAYBE_STEP,
    deaths=st.integers(0, 9),
    unseen=st.integers(0, 10**9),
    out_of_budget=st.booleans(),
    unknown=UNKNOWN,
)
GROUP_RECORDS = built(
    GroupRecord,
    group=NAMES,
    token=st.integers(0, 10**12),
    lease_until=TIMES,
    deaths=st.integers(0, 100),
    training_run=st.integers(0, 9999),
    cursor=st.integers(-1, 10**12),
    rules=st.lists(RULE_RECORDS, max_size=3).map(tuple),
    passed=st.frozensets(STEPS, max_size=4),
    gaps=st.lists(st.tuples(STEPS, STEPS), max_size=2).map(tuple),
    late_done=st.frozensets(STEPS, max_size=4),
    lost=st.frozensets(STEPS, max_size=4),
    forgotten=st.integers(0, 10**9),
    evaluated=st.integers(0, 10**9),
    partly=st.integers(0, 10**9),
    checked=st.integers(-1, 10**12),
    alone=st.lists(NAMES, max_size=2).map(tuple),
    finished=st.booleans(),
    outbox=OUTBOXES,
    unknown=UNKNOWN,
)
LAYOUTS = built(
    StepLayout,
    digest=NAMES,
    names=st.lists(TEXT, max_size=4).map(tuple),
    mode=TEXT,
    first_step=STEPS,
    workers=st.lists(NAMES, max_size=3).map(tuple),
)
STEP_RECORDS = built(
    StepRecord,
    step=STEPS,
    training_run=st.integers(0, 9999),
    with_event=st.frozensets(WORKERS, max_size=5),
    with_index=st.frozensets(WORKERS, min_size=1, max_size=5),
    uploaded=TIMES,
    indexed=TIMES,
    mode=st.none() | NAMES,
    mode_step=st.just(7),
    layout=st.just("layout"),
    evaluated_by=st.frozensets(NAMES, max_size=1),
)


def through_the_table(item: dict[str, Any]) -> dict[str, Any]:
    """The item as it comes back from a table."""
    attributes = json.loads(json.dumps(as_attributes(item), default=lambda raw: f"bytes:{raw.hex()}"))
    return item_in(with_bytes(attributes))


def with_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: bytes.fromhex(item[6:]) if key == "B" and isinstance(item, str) else with_bytes(item)
            for key, item in value.items()
        }
    return [with_bytes(item) for item in value] if isinstance(value, list) else value


@given(RUN_RECORDS)
def test_a_run_survives_a_round_trip(record):
    assert items.run_of(through_the_table(items.item_of_run(record))) == record


@given(RUNS, GROUP_RECORDS)
def test_a_group_survives_a_round_trip(run, record):
    item = through_the_table(items.item_of_group(run, record))
    assert items.group_of(item) == record
    assert item["pk"] == items.run_pk(run)


@given(RUNS, GROUP_RECORDS, RULE_RECORDS)
def test_a_commit_changes_everything_about_the_rules(run, record, rule):
    before = items.item_of_group(run, GroupRecord(record.group, rules=(rule,)))
    after = items.group_of({**before, **items.progress_of_group(record)})
    changed = ("rules", "cursor", "training_run", "passed", "late_done", "finished")
    for name in changed:
        assert getattr(after, name) == getattr(record, name)


@given(
    RUNS,
    st.lists(CONFIGURATIONS, max_size=3).map(tuple),
    st.lists(CONFIGURATIONS, max_size=2).map(tuple),
    TEXT,
)
def test_the_rules_of_a_run_survive_a_round_trip(run, wanted, detached, version):
    rules = RulesOfRun(wanted, detached)
    item = through_the_table(items.item_of_rules(run, rules, version))
    back = items.rules_of(item)
    assert back == rules
    assert [rule.id for rule in back.wanted] == [rule.id for rule in wanted]
    assert item["version"] == version


def test_a_run_without_rules_has_none():
    assert items.rules_of(None) == RulesOfRun((), ())


@given(RUNS, LAYOUTS)
def test_a_layout_survives_a_round_trip(run, layout):
    assert items.layout_of(through_the_table(items.item_of_layout(run, layout))) == layout


@given(RUNS, STEPS, NAMES, PLAIN)
def test_a_finding_survives_a_round_trip(run, step, id, detail):
    item = through_the_table(items.item_of_finding(run, step, id, detail))
    assert items.finding_of(item) == detail


@given(RUNS, STEP_RECORDS)
def test_a_step_survives_a_round_trip_whatever_the_order_of_its_files(run, record):
    index = StepIndex(MemoryItems(), kept_for=KEPT_FOR)
    files = [(worker, False) for worker in record.with_event]
    files += [(worker, True) for worker in record.with_index]
    for worker, is_index in sorted(files):
        index.note_arrivals(
            run,
            record.training_run,
            record.step,
            items.shard_of(worker),
            frozenset([items.token_of(worker, is_index=is_index)]),
            uploaded=record.uploaded,
            indexed=record.indexed,
        )
    expected = record
    if record.mode is None:
        expected = replace(record, mode_step=None, layout=None, evaluated_by=frozenset())
    else:
        index.describe_step(
            run,
            record,
            mode=record.mode,
            mode_step=7,
            layout="layout",
            evaluated_by=next(iter(record.evaluated_by), None),
        )
    assert index.step(run, record.training_run, record.step) == expected


@given(WORKERS, st.booleans())
def test_a_token_names_its_worker(worker, is_index):
    token = items.token_of(worker, is_index=is_index)
    assert items.worker_in(token) == worker
    assert token.startswith("i" if is_index else "e")


@given(st.lists(st.tuples(STEPS, st.integers(0, 9999)), min_size=2, unique=True))
def test_steps_sort_by_attempt_and_number(steps):
    by_key = sorted(steps, key=lambda step: items.step_sk(step[1], step[0]))
    assert by_key == sorted(steps, key=lambda step: (step[1], step[0]))


@pytest.mark.parametrize("body", [b"", b"no zlib", packed([])[:-3]])
def test_a_damaged_record_is_refused(body):
    with pytest.raises(DamagedRecord):
        items.finding_of({"pk": "RUN#b/r", "sk": "FINDING#1#a", "body": body})


def test_a_finding_that_is_not_an_object_is_refused():
    with pytest.raises(DamagedRecord, match="is not a finding"):
        items.finding_of({"pk": "RUN#b/r", "sk": "FINDING#1#a", "body": packed([])})


# Sizes: the writes of every step take one write unit

LONG_RUN = (
    "sagemaker-eu-central-1-123456789012/teams/vision/experiments/"
    "resnet50-imagenet-bs512-2026-11-21-06-38-36-120/debug-output"
)
SHORT_RUN = "my-bucket/mnist"
BUILT_IN_RULES = (
    "VanishingGradient",
    "ExplodingTensor",
    "LossNotDecreasing",
    "Overfit",
    "Overtraining",
    "PoorWeightInitialization",
    "WeightUpdateRatio",
    "DeadRelu",
    "ClassImbalance",
    "AllZero",
)


def state_of_a_rule(chance: random.Random) -> bytes:
    """What a rule such as Overfit remembers, as `save_state` tells it: numbers, with all their digits."""
    remembered = {
        "best": chance.random(),
        "last": chance.random(),
        "patience": chance.randrange(10**3),
    }
    state = b"smdebug-state 1 0000000073\n" + json.dumps(remembered, separators=(",", ":")).encode()
    assert 80 <= len(state) <= 100
    return state


@pytest.mark.parametrize("run", [SHORT_RUN, LONG_RUN])
def test_ten_rules_without_findings_and_with_small_states_take_one_write_unit(run):
    chance = random.Random(3)
    rules = tuple(
        RuleRecord(
            id=f"{name}-{chance.randbytes(6).hex()}",
            name=name,
            last_good=123_456,
            changed_at=1_763_707_116.123,
            state=state_of_a_rule(chance),
        )
        for name in BUILT_IN_RULES
    )
    record = GroupRecord("builtin", token=123_457, lease_until=1_763_707_246.123, cursor=123_456, rules=rules)
    assert item_size(items.item_of_group(run, record)) <= WRITE_UNIT


@pytest.mark.parametrize("run", [SHORT_RUN, LONG_RUN])
def test_the_step_of_96_workers_takes_one_write_unit(run):
    index = StepIndex(store := MemoryItems(), kept_for=KEPT_FOR)
    for worker in range(items.WORKERS_A_SHARD):
        for is_index in (False, True):
            index.note_arrivals(
                run,
                0,
                123_456,
                items.shard_of(f"worker_{worker}"),
                frozenset([items.token_of(f"worker_{worker}", is_index=is_index)]),
                uploaded=1_763_707_116.123,
                indexed=1_763_707_116.456,
            )
    step = index.step(run, 0, 123_456)
    assert step is not None
    assert step.is_complete(items.WORKERS_A_SHARD)
    index.describe_step(run, step, mode="PREDICT", mode_step=123_456, layout="a1b2c3d4e5f6" * 2)
    (item,) = store.query(items.run_pk(run))
    assert item_size(item) <= WRITE_UNIT


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({"a": "text"}, 5),
        ({"a": "ü"}, 3),
        ({"a": b"123"}, 4),
        ({"a": True, "b": None}, 4),
        ({"a": 100}, 3),  # one significant digit
        ({"a": -27}, 4),
        ({"a": 1_763_707_116.123}, 1 + 8),
        ({"a": frozenset({"e1", "i1"})}, 5),
        ({"a": {}}, 4),
        ({"a": {"k": "v"}}, 1 + 3 + 1 + 2),
        ({"a": ["x", "y"]}, 1 + 3 + 4),
    ],
)
def test_bytes_are_counted_as_dynamodb_does(item, size):
    assert item_size(item) == size


@pytest.mark.parametrize("name", ["../../other/run", "a/b", "ü", "a#b", "", ".", "x" * 200])
def test_the_folder_of_a_state_is_one_folder_whatever_the_name(name):
    folder = items.state_folder("builtin", name)
    assert re.fullmatch(r"state/builtin/[A-Za-z0-9_-]{1,80}/", folder)
    assert folder != items.state_folder("builtin", f"{name} ")
