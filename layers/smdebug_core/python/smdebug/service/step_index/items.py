"""The records of the step index as items of its table, in both directions.

    RUN#<run>   RUN                                       a RunRecord
    RUN#<run>   RULES, COLLECTIONS                        the run's files, parsed and packed
    RUN#<run>   LAYOUT#<digest>                           names of tensors that steps share
    RUN#<run>   GROUP#<group>                             a GroupRecord
    RUN#<run>   FINDING#<step>#<id>                       a finding
    RUN#<run>   ACTION#<finding>#<id>                     the outcome of an action that it requested
    RUN#<run>   OUTBOX#<group>#<token>#<number>           an event of a commit, until it is published
    RUN#<run>   CLOSED#<training run>#<shard>             the last steps of workers that have closed
    RUN#<run>   STEP#<training run>#<step>#<shard>        the workers that have written a step
    RUN#<run>   SPENT#<day>                               what its custom rules have used on that day
    RUNS        <run>                                     the runs being watched
    PAST        <run>                                     the finished runs
    JOB#<job>   <run>                                     the runs of a SageMaker training job
    SENT#<id>   SENT                                      the alerts sent about an event
    CLAIM#<id>  <action>                                  the function performing an action, and until when

Values in conditions and updates are attributes of their own; the others are packed into `body`, so that an
item of ten rules without findings fits into one write unit. `formats` has the format of each kind of item;
fields of a body that this release does not know are kept when the item is rewritten.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Container, Iterable, Mapping
from dataclasses import fields, replace
from hashlib import sha256
from typing import Any, NamedTuple

from smdebug.service.records import (
    NOTHING_EVALUATED,
    GroupRecord,
    RuleConfiguration,
    RuleRecord,
    RuleStatus,
    RunRecord,
    RunState,
    StepLayout,
    StepRecord,
)
from smdebug.service.step_index.formats import state_in
from smdebug.service.step_index.item_reader import Item
from smdebug.service.step_index.packing import DamagedRecord, packed, unpacked

RUNS = "RUNS"
PAST_RUNS = "PAST"
RUN = "RUN"
RULES = "RULES"
COLLECTIONS = "COLLECTIONS"
GROUP_PREFIX = "GROUP#"
LAYOUT_PREFIX = "LAYOUT#"
FINDING_PREFIX = "FINDING#"
ACTION_PREFIX = "ACTION#"
CLOSED_PREFIX = "CLOSED#"
OUTBOX_PREFIX = "OUTBOX#"
STEP_PREFIX = "STEP#"
SPENT_PREFIX = "SPENT#"
LAST = "￿"
WORKERS_A_SHARD = 96
LARGEST_INLINE_STATE = 1024  # bytes of a rule's state; larger ones are stored in an object
LARGEST_PACKED_STATE = 8192  # bytes before packing: a group of 40 rules fits into an item


# Keys


def run_pk(run: str) -> str:
    return f"RUN#{run}"


def job_pk(job: str) -> str:
    return f"JOB#{job}"


def group_sk(group: str) -> str:
    return GROUP_PREFIX + group


def layout_sk(digest: str) -> str:
    return LAYOUT_PREFIX + digest


def event_sk(group: str, token: int, number: int) -> str:
    return f"{OUTBOX_PREFIX}{group}#{token:012}#{number:06}"


def steps_prefix(training_run: int) -> str:
    return f"{STEP_PREFIX}{training_run:04}#"


def step_sk(training_run: int, step: int, shard: int = 0) -> str:
    return f"{steps_prefix(training_run)}{step:012}#{shard:04}"


def spent_sk(day: str) -> str:
    return SPENT_PREFIX + day


def closed_prefix(training_run: int) -> str:
    return f"{CLOSED_PREFIX}{training_run:04}#"


def state_folder(group: str, rule_id: str) -> str:
    """The folder below a run with the larger states of a rule, whatever characters its name has."""
    return f"state/{_as_folder(group)}/{_as_folder(rule_id)}/"


def state_key(group: str, rule_id: str, token: int) -> str:
    """The object with a rule's state, written by a single lease."""
    return f"{state_folder(group, rule_id)}{token:08}.state"


def _as_folder(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
    return plain if plain and plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:16]}"


# The files of a step, in few bytes


def shard_of(worker: str) -> int:
    """The part of a step's record that has this worker: 96 workers fit into one write unit."""
    number = _number_of(worker)
    return 0 if number is None else int(number) // WORKERS_A_SHARD


def token_of(worker: str, *, is_index: bool) -> str:
    """The token of a worker's event or index file in the step's record: `e12`, `i12`, `i=/device:GPU:0`."""
    number = _number_of(worker)
    return ("i" if is_index else "e") + (f"={worker}" if number is None else number)


def worker_in(token: str) -> str:
    """The worker in a token."""
    return token[2:] if token[1:2] == "=" else f"worker_{token[1:]}"


def _number_of(worker: str) -> str | None:
    number = worker.removeprefix("worker_")
    is_number = number != worker and number.isascii() and number.isdecimal() and len(number) <= 5
    return number if is_number and number == str(int(number)) else None


# Steps


def step_of(items: Iterable[Item]) -> StepRecord:
    """The record of one step from its shards."""
    shards = list(items)
    _, training_run, step, _ = shards[0]["sk"].split("#")
    merged = {key: value for shard in reversed(shards) for key, value in shard.items()}
    tokens = frozenset().union(*(shard.get("f", frozenset()) for shard in shards))
    return StepRecord(
        step=int(step),
        training_run=int(training_run),
        with_event=frozenset(worker_in(token) for token in tokens if token.startswith("e")),
        with_index=frozenset(worker_in(token) for token in tokens if token.startswith("i")),
        uploaded=max(float(shard.get("up", 0)) for shard in shards),
        indexed=max(float(shard.get("ix", 0)) for shard in shards),
        mode=merged.get("m"),
        mode_step=None if merged.get("ms") is None else int(merged["ms"]),
        layout=merged.get("l"),
        evaluated_by=frozenset(merged.get("by", ())),
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
    kept = {name: value for name in _RUN_BODY if (value := getattr(record, name)) != _RUN_DEFAULTS[name]}
    return {
        "pk": run_pk(record.run),
        "sk": RUN,
        "version": record.version,
        "check_until": record.check_until,
        "listed_at": record.listed_at,
        "state": record.state.value,
        "body": packed({**record.unknown, **kept}),
        "outbox": dict(record.outbox),
    }


def run_of(item: Item) -> RunRecord:
    """The run of an item."""
    body = unpacked(item["body"])
    body["groups"] = tuple(body.get("groups", ()))
    return RunRecord(
        run=item["pk"].removeprefix("RUN#"),
        state=state_in(item, RunState, item["state"]),
        version=int(item["version"]),
        check_until=float(item.get("check_until", 0)),
        listed_at=float(item.get("listed_at", 0)),
        expires=item.get("expires"),
        outbox=item.get("outbox", {}),
        unknown=_without(_RUN_BODY, body),
        **{name: body[name] for name in _RUN_BODY if name in body},
    )


_RUN_APART = ("run", "state", "version", "check_until", "listed_at", "expires", "outbox", "unknown")
_RUN_BODY = tuple(field.name for field in fields(RunRecord) if field.name not in _RUN_APART)
_RUN_DEFAULTS = vars(RunRecord(""))


# Groups of rules


def item_of_group(run: str, record: GroupRecord) -> Item:
    """The complete item of a group."""
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
    """The attributes that a commit changes: the progress, status and state of the rules."""
    body = {
        "rules": [_body_of_rule(rule) for rule in record.rules],
        "passed": sorted(record.passed),
        "gaps": record.gaps,
        "late": sorted(record.late_done),
        "lost": sorted(record.lost),
        "forgotten": record.forgotten,
        "evaluated": record.evaluated,
        "partly": record.partly,
        "checked": record.checked + 1,
        "finished": record.finished,
    }
    return {
        "tr": record.training_run,
        "cursor": record.cursor,
        "body": packed({**record.unknown, **{key: value for key, value in body.items() if value}}),
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
        rules=tuple(_rule_of(rule, item) for rule in body.get("rules", ())),
        passed=frozenset(body.get("passed", ())),
        gaps=tuple((first, last) for first, last in body.get("gaps", ())),
        late_done=frozenset(body.get("late", ())),
        lost=frozenset(body.get("lost", ())),
        forgotten=int(body.get("forgotten", 0)),
        evaluated=int(body.get("evaluated", 0)),
        partly=int(body.get("partly", 0)),
        checked=int(body.get("checked", 0)) - 1,
        alone=tuple(item.get("alone", ())),
        finished=bool(body.get("finished", False)),
        outbox=item.get("outbox", {}),
        unknown=_without(_GROUP_BODY, body),
    )


_GROUP_BODY = frozenset(
    ["rules", "passed", "gaps", "late", "lost", "forgotten", "evaluated", "partly", "checked", "finished"]
)
_RULE_FIELDS = tuple(field.name for field in fields(RuleRecord) if field.name not in ("state", "unknown"))
_RULE_DEFAULTS = {
    **{field.name: field.default for field in fields(RuleRecord)},
    "status": RuleStatus.IN_PROGRESS,
    "catch_up_through": NOTHING_EVALUATED,
}


def _body_of_rule(rule: RuleRecord) -> dict[str, Any]:
    known = {name: value for name in _RULE_FIELDS if (value := getattr(rule, name)) != _RULE_DEFAULTS[name]}
    body = {**rule.unknown, **known}
    if rule.state.isascii() and rule.state:  # almost always: as text it packs a fifth smaller
        body["state"] = rule.state.decode("ascii")
    elif rule.state:
        body["state64"] = b64encode(rule.state).decode("ascii")
    return body


def _rule_of(body: Mapping[str, Any], group: Item) -> RuleRecord:
    known = {name: body[name] for name in _RULE_FIELDS if name in body}
    rule = RuleRecord(**known)
    return replace(
        rule,
        status=state_in(group, RuleStatus, rule.status),
        outcomes=tuple(rule.outcomes),
        evidence=tuple(rule.evidence),
        state=body.get("state", "").encode("ascii") or b64decode(body.get("state64", "")),
        unknown=_without((*_RULE_FIELDS, "state", "state64"), body),
    )


def _without(known: Container[str], body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a newer release in a body."""
    return {name: value for name, value in body.items() if name not in known}


# The run's files


class RulesOfRun(NamedTuple):
    """The rules that watch a run, and those that were detached."""

    wanted: tuple[RuleConfiguration, ...] = ()
    detached: tuple[RuleConfiguration, ...] = ()


def item_of_rules(run: str, rules: RulesOfRun, version: str) -> Item:
    """The item of a run's configurations."""
    body = {name: [rule.to_dict() for rule in group] for name, group in rules._asdict().items()}
    return {"pk": run_pk(run), "sk": RULES, "version": version, "body": packed(body)}


def rules_of(item: Item | None) -> RulesOfRun:
    """The configurations of an item; none without an item."""
    if item is None:
        return RulesOfRun()
    body = unpacked(item["body"])
    return RulesOfRun(*(tuple(map(configuration_of, body[name])) for name in RulesOfRun._fields))


def configuration_of(content: Mapping[str, Any]) -> RuleConfiguration:
    """The inverse of `RuleConfiguration.to_dict`."""
    lists = {key: tuple(content[key]) for key in ("other_trials", "actions") if key in content}
    known = {name: value for name, value in content.items() if name in _CONFIGURATION}
    return RuleConfiguration(**{**known, **lists}, unknown=_without(_CONFIGURATION, content))


_CONFIGURATION = tuple(field.name for field in fields(RuleConfiguration) if field.name != "unknown")


def item_of_layout(run: str, layout: StepLayout) -> Item:
    """The item of a layout."""
    body = packed({"names": layout.names, "workers": layout.workers})
    return {
        "pk": run_pk(run),
        "sk": layout_sk(layout.digest),
        "m": layout.mode,
        "first": layout.first_step,
        "body": body,
    }


def layout_of(item: Item) -> StepLayout:
    """The layout of an item."""
    body = unpacked(item["body"])
    return StepLayout(
        digest=item["sk"].removeprefix(LAYOUT_PREFIX),
        names=tuple(body["names"]),
        mode=item["m"],
        first_step=int(item["first"]),
        workers=tuple(body["workers"]),
    )


def item_of_finding(run: str, step: int, id: str, detail: Mapping[str, Any]) -> Item:
    """The item of a finding, which is the detail of its event."""
    sk = f"{FINDING_PREFIX}{step:012}#{id}"
    return {"pk": run_pk(run), "sk": sk, "body": packed(detail)}


def finding_of(item: Item) -> dict[str, Any]:
    """The finding of an item."""
    found = unpacked(item["body"])
    if not isinstance(found, dict):
        raise DamagedRecord(f"{item['sk']} of {item['pk']} is not a finding")
    return found
