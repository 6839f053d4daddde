"""How the records of the step index are written as items of its table, and read back.

    RUN#<run>   RUN                                       a RunRecord
    RUN#<run>   RULES, COLLECTIONS                        what the run's files say, parsed and packed
    RUN#<run>   LAYOUT#<digest>                           names of tensors that steps share
    RUN#<run>   GROUP#<group>                             a GroupRecord
    RUN#<run>   FINDING#<step>#<id>                       what a rule found
    RUN#<run>   ACTION#<finding>#<id>                     what became of an action that it asked for
    RUN#<run>   STEP#<training run>#<step>#<shard>        who has written what of a step
    RUNS        <run>                                     the runs that are being watched
    PAST        <run>                                     the runs that were
    JOB#<job>   <run>                                     the runs of a SageMaker training job
    SENT#<id>   SENT                                      who has told people of an event
    CLAIM#<id>  <action>                                  who is doing what a finding asks for, and until when

What is compared or added to is an attribute of its own; the rest is packed into one, `body`, so that an
item of ten rules that found nothing fits into one write unit.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any, NamedTuple

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.service.item_reader import Item
from smdebug.service.records import (
    NOTHING_EVALUATED,
    GroupRecord,
    Layout,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    StepRecord,
)

RUNS = "RUNS"
PAST_RUNS = "PAST"
RUN = "RUN"
RULES = "RULES"
COLLECTIONS = "COLLECTIONS"
GROUP_PREFIX = "GROUP#"
LAYOUT_PREFIX = "LAYOUT#"
FINDING_PREFIX = "FINDING#"
ACTION_PREFIX = "ACTION#"
STEP_PREFIX = "STEP#"
LAST = "￿"
WORKERS_A_SHARD = 96
LARGEST_INLINE_STATE = 1024  # bytes that a rule remembers; more is kept in an object of its own
_LARGEST_BODY = 64 << 20


class DamagedRecord(SMDebugRuntimeError):
    """An item of the step index cannot be understood: it was not written by this application."""


# Keys


def run_pk(run: str) -> str:
    return f"RUN#{run}"


def job_pk(job: str) -> str:
    return f"JOB#{job}"


def group_sk(group: str) -> str:
    return GROUP_PREFIX + group


def layout_sk(digest: str) -> str:
    return LAYOUT_PREFIX + digest


def steps_prefix(training_run: int) -> str:
    return f"{STEP_PREFIX}{training_run:04}#"


def step_sk(training_run: int, step: int, shard: int = 0) -> str:
    return f"{steps_prefix(training_run)}{step:012}#{shard:04}"


def state_folder(group: str, rule_id: str) -> str:
    """Where below a run the larger memories of a rule are kept. Its name may hold anything; this does not."""
    return f"state/{_as_folder(group)}/{_as_folder(rule_id)}/"


def state_key(group: str, rule_id: str, token: int) -> str:
    """The object in which a lease keeps a rule's memory, and no other lease does."""
    return f"{state_folder(group, rule_id)}{token:08}.state"


def _as_folder(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
    return plain if plain and plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:16]}"


# Who has written what, in few bytes


def shard_of(worker: str) -> int:
    """The part of a step's record in which a worker is noted: 96 workers fit into one write unit."""
    number = _number_of(worker)
    return 0 if number is None else int(number) // WORKERS_A_SHARD


def token_of(worker: str, *, is_index: bool) -> str:
    """A worker's event or index file as the step's record names it: `e12`, `i12`, `i=/device:GPU:0`."""
    number = _number_of(worker)
    return ("i" if is_index else "e") + (f"={worker}" if number is None else number)


def worker_in(token: str) -> str:
    """The worker in a token."""
    return token[2:] if token[1:2] == "=" else f"worker_{token[1:]}"


def _number_of(worker: str) -> str | None:
    number = worker.removeprefix("worker_")
    is_one = number != worker and number.isascii() and number.isdecimal() and len(number) <= 5
    return number if is_one and number == str(int(number)) else None


# Steps


def step_of(items: Iterable[Item]) -> StepRecord:
    """The record of one step from its shards."""
    shards = list(items)
    _, training_run, step, _ = shards[0]["sk"].split("#")
    told = {key: value for shard in reversed(shards) for key, value in shard.items()}
    tokens = frozenset().union(*(shard.get("f", frozenset()) for shard in shards))
    return StepRecord(
        step=int(step),
        training_run=int(training_run),
        with_event=frozenset(worker_in(one) for one in tokens if one.startswith("e")),
        with_index=frozenset(worker_in(one) for one in tokens if one.startswith("i")),
        uploaded=max(float(shard.get("up", 0)) for shard in shards),
        indexed=max(float(shard.get("ix", 0)) for shard in shards),
        mode=told.get("m"),
        mode_step=None if told.get("ms") is None else int(told["ms"]),
        layout=told.get("l"),
        evaluated_by=frozenset(told.get("by", ())),
    )


def steps_of(items: Iterable[Item]) -> list[StepRecord]:
    """The records of many steps, in the order of their items."""
    together: dict[str, list[Item]] = {}
    for item in items:
        together.setdefault(item["sk"].rpartition("#")[0], []).append(item)
    return [step_of(shards) for shards in together.values()]


# Runs


def item_of_run(record: RunRecord) -> Item:
    """The item of a run."""
    kept = {
        name: value for name in _RUN_BODY if (value := getattr(record, name)) != _RUN_DEFAULTS[name]
    }
    return {
        "pk": run_pk(record.run),
        "sk": RUN,
        "version": record.version,
        "check_until": record.check_until,
        "state": record.state.value,
        "body": packed(kept),
        "outbox": dict(record.outbox),
    }


def run_of(item: Item) -> RunRecord:
    """The run of an item."""
    body = unpacked(item["body"])
    body["groups"] = tuple(body.get("groups", ()))
    return RunRecord(
        run=item["pk"].removeprefix("RUN#"),
        state=RunState(item["state"]),
        version=int(item["version"]),
        check_until=float(item.get("check_until", 0)),
        outbox=item.get("outbox", {}),
        **{name: body[name] for name in _RUN_BODY if name in body},
    )


_RUN_APART = ("run", "state", "version", "check_until", "outbox")
_RUN_BODY = tuple(one.name for one in fields(RunRecord) if one.name not in _RUN_APART)
_RUN_DEFAULTS = vars(RunRecord(""))


# Groups of rules


def item_of_group(run: str, record: GroupRecord) -> Item:
    """The item of a group, whole."""
    return {
        "pk": run_pk(run),
        "sk": group_sk(record.group),
        "token": record.token,
        "lease": record.lease_until,
        "deaths": record.deaths,
        "alone": list(record.alone),
        "outbox": dict(record.outbox),
        **progress_of_group(record),
    }


def progress_of_group(record: GroupRecord) -> Item:
    """What a commit changes: how far the rules have come, and what they think."""
    body = {
        "rules": [_told_of_rule(rule) for rule in record.rules],
        "passed": sorted(record.passed),
        "gaps": record.gaps,
        "late": sorted(record.late_done),
        "finished": record.finished,
    }
    return {
        "tr": record.training_run,
        "cursor": record.cursor,
        "body": packed({key: value for key, value in body.items() if value}),
    }


def group_of(item: Item) -> GroupRecord:
    """The group of an item."""
    body = unpacked(item["body"])
    return GroupRecord(
        group=item["sk"].removeprefix(GROUP_PREFIX),
        token=int(item["token"]),
        lease_until=float(item["lease"]),
        deaths=int(item["deaths"]),
        training_run=int(item["tr"]),
        cursor=int(item["cursor"]),
        rules=tuple(_rule_told(rule) for rule in body.get("rules", ())),
        passed=frozenset(body.get("passed", ())),
        gaps=tuple((first, last) for first, last in body.get("gaps", ())),
        late_done=frozenset(body.get("late", ())),
        alone=tuple(item.get("alone", ())),
        finished=bool(body.get("finished", False)),
        outbox=item.get("outbox", {}),
    )


_RULE_FIELDS = tuple(one.name for one in fields(RuleRecord) if one.name != "state")
_RULE_DEFAULTS = {
    **{one.name: one.default for one in fields(RuleRecord)},
    "status": RuleStatus.IN_PROGRESS,
    "catch_up_through": NOTHING_EVALUATED,
}


def _told_of_rule(rule: RuleRecord) -> dict[str, Any]:
    told = {
        name: value
        for name in _RULE_FIELDS
        if (value := getattr(rule, name)) != _RULE_DEFAULTS[name]
    }
    if rule.state.isascii() and rule.state:  # nearly always: as text it packs better by a fifth
        told["state"] = rule.state.decode("ascii")
    elif rule.state:
        told["state64"] = b64encode(rule.state).decode("ascii")
    return told


def _rule_told(told: Mapping[str, Any]) -> RuleRecord:
    known = {name: told[name] for name in _RULE_FIELDS if name in told}
    rule = RuleRecord(**known)
    return replace(
        rule,
        status=RuleStatus(rule.status),
        outcomes=tuple(rule.outcomes),
        state=told.get("state", "").encode("ascii") or b64decode(told.get("state64", "")),
    )


# What the run's files say


class RulesOfRun(NamedTuple):
    """The rules that watch a run, and those that once did."""

    wanted: tuple[RuleConfiguration, ...] = ()
    detached: tuple[RuleConfiguration, ...] = ()


def item_of_rules(run: str, rules: RulesOfRun, version: str) -> Item:
    """The item of a run's configurations."""
    body = {name: [rule.to_dict() for rule in told] for name, told in rules._asdict().items()}
    return {"pk": run_pk(run), "sk": RULES, "version": version, "body": packed(body)}


def rules_of(item: Item | None) -> RulesOfRun:
    """The configurations of an item; none of no item."""
    if item is None:
        return RulesOfRun()
    body = unpacked(item["body"])
    return RulesOfRun(*(tuple(map(configuration_of, body[name])) for name in RulesOfRun._fields))


def configuration_of(told: Mapping[str, Any]) -> RuleConfiguration:
    """The configuration that `RuleConfiguration.to_dict` told."""
    lists = {key: tuple(told[key]) for key in ("other_trials", "actions") if key in told}
    return RuleConfiguration(**{**told, **lists})


def item_of_layout(run: str, layout: Layout) -> Item:
    """The item of a layout."""
    body = packed({"names": layout.names, "workers": layout.workers})
    told = {"m": layout.mode, "first": layout.first_step, "body": body}
    return {"pk": run_pk(run), "sk": layout_sk(layout.digest), **told}


def layout_of(item: Item) -> Layout:
    """The layout of an item."""
    body = unpacked(item["body"])
    return Layout(
        digest=item["sk"].removeprefix(LAYOUT_PREFIX),
        names=tuple(body["names"]),
        mode=item["m"],
        first_step=int(item["first"]),
        workers=tuple(body["workers"]),
    )


def item_of_finding(run: str, step: int, id: str, detail: Mapping[str, Any]) -> Item:
    """The item of what a rule found at a step, as its event tells it."""
    sk = f"{FINDING_PREFIX}{step:012}#{id}"
    return {"pk": run_pk(run), "sk": sk, "body": packed(detail)}


def finding_of(item: Item) -> dict[str, Any]:
    """The finding of an item."""
    found = unpacked(item["body"])
    if not isinstance(found, dict):
        raise DamagedRecord(f"{item['sk']} of {item['pk']} is no finding")
    return found


def packed(value: Any) -> bytes:
    """Plain data in few bytes."""
    return zlib.compress(json.dumps(value, separators=(",", ":"), default=list).encode(), 6)


def unpacked(data: bytes) -> Any:
    """What `packed` was given."""
    opened = zlib.decompressobj()
    try:
        text = opened.decompress(bytes(data), _LARGEST_BODY)
        if opened.unconsumed_tail:
            raise DamagedRecord(f"A record of the step index has more than {_LARGEST_BODY} bytes")
        return json.loads(text)
    except (zlib.error, ValueError) as error:
        raise DamagedRecord(f"A record of the step index is damaged: {error}") from error
