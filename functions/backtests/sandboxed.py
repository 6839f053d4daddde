"""A chunk of runs for rules of the user's own: jobs for the sandbox, and its answers read as data.

Nothing of the code is run here. Each job has credentials that read one run and write nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from functions.backtests.judging import task_of
from functions.backtests.ports import BacktestPorts
from functions.backtests.spending import reserve, settle
from functions.custom_rules.credentials import LENT_FOR, reading_policy
from smdebug.backtesting.bundles.bundle_file import bundle_name
from smdebug.backtesting.deployed.plan import BEGIN_WITHIN, rows_key, seconds_for_run
from smdebug.backtesting.deployed.task import encoded_verdicts
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.identity import within
from smdebug.backtesting.judging import Judged
from smdebug.backtesting.question import names_of
from smdebug.backtesting.rows import (
    FAILED,
    FOUND,
    INCOMPLETE,
    NOT_CHECKED,
    PASSED,
    TIMED_OUT,
    UNREAD,
    Row,
    unread_row,
)

MOST_ROWS = 200
_LONGEST = 1_000
_STATUSES = frozenset((FOUND, PASSED, NOT_CHECKED, FAILED, UNREAD, TIMED_OUT, INCOMPLETE))
_TEXTS = frozenset(("run", "rule", "status", "first_finding", "note", "statistic", "label"))
_MAYBE_TEXTS = frozenset(("changed", "status_before"))
_COUNTS = frozenset(("findings", "steps_found", "looked"))
_MAYBE_COUNTS = frozenset(("first_step", "onset"))


def prepare_chunk(ports: BacktestPorts, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job for each run of the chunk, and what they have in common."""
    name = str(event["backtest"])
    task = task_of(ports, name)
    begun = ports.clock.now()
    reserve(ports.purse, task.purse, float(event["dollars"]), task.budget)
    runs = [FoundRun(*run) for run in event["runs"]]
    question = replace(task.question, bundles=ports.bundles, keeps_bundles=False)
    return {
        "until": datetime.fromtimestamp(begun + BEGIN_WITHIN, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "task": replace(task, question=question).to_dict(),
        "jobs": [
            {"run": list(run), "credentials": dict(_lent(ports, run, f"{name}-{number}"))}
            for number, run in enumerate(runs)
        ],
        "begun": begun,
    }


def keep_verdicts(ports: BacktestPorts, event: Mapping[str, Any]) -> dict[str, Any]:
    """Write the verdicts that the sandbox answered, each checked; settle what they took."""
    chunk = event["chunk"]
    name, number = str(chunk["backtest"]), int(chunk["chunk"])
    task = task_of(ports, name)
    names = names_of(task.question.rules)
    runs = [FoundRun(*run) for run in chunk["runs"]]
    seconds = seconds_for_run(task.question)
    planned = [within(identity, seconds) if identity else "" for identity in chunk["identities"]]
    verdicts = [
        (run, judged_of(run, answer, names, identity))
        for run, identity, answer in zip(runs, planned, event["answers"], strict=True)
        if answer.get("late") is not True
    ]
    ports.bucket.write(rows_key(name, number), encoded_verdicts(verdicts))
    took = ports.clock.now() - float(event["begun"])
    settle(ports.purse, task.purse, chunk, took, ports.memory_mb)
    return {"chunk": number, "judged": len(verdicts), "left": len(runs) - len(verdicts)}


def judged_of(run: FoundRun, answer: Mapping[str, Any], names: list[str], planned: str = "") -> Judged:
    """Return what the sandbox says of the run: rows of these rules, or rows that say what went wrong.

    That a rule hangs on it holds for the run as it was `planned`.
    """
    died = answer.get("died")
    if isinstance(died, Mapping):
        hangs = died.get("too_long") is True
        without = _without(
            run, str(died.get("message", "it died"))[:_LONGEST], names, TIMED_OUT if hangs else FAILED
        )
        return replace(without, identity=planned if hangs else "")
    error = answer.get("Error")
    if isinstance(error, str):
        cause = str(answer.get("Cause", ""))[:300]
        return _without(run, f"the rule's function failed ({error}: {cause})", names, FAILED)
    try:
        payload = answer["judged"]
        rows = tuple(_row(run, row) for row in payload["rows"][:MOST_ROWS])
        identity = str(payload["identity"])[:200]
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        return _without(run, f"the answer is not a verdict ({problem})", names, FAILED)
    return Judged(rows, identity)


def _without(run: FoundRun, problem: str, names: list[str], status: str) -> Judged:
    return Judged(tuple(unread_row(run.path, problem, status, name) for name in names or [""]))


def _row(run: FoundRun, payload: Mapping[str, Any]) -> Row:
    """Return the row, of this run whatever it says; `ValueError` if it is none."""
    values: dict[str, Any] = {}
    for field in fields(Row):
        if field.name in payload:
            values[field.name] = _checked(field.name, payload[field.name])
    values["run"] = run.path
    values["label"] = ""
    if values.get("status") not in _STATUSES:
        raise ValueError("its status is unknown")
    return Row(**values)


def _checked(name: str, value: Any) -> Any:
    if name in _TEXTS or (name in _MAYBE_TEXTS and value is not None):
        if not isinstance(value, str):
            raise ValueError(f"{name} is no text")
        return value[:_LONGEST]
    if value is None and name not in _COUNTS:
        return None
    if name in _COUNTS | _MAYBE_COUNTS:
        if type(value) is not int:
            raise ValueError(f"{name} is no count")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"{name} is no number")
    return float(value)


def _lent(ports: BacktestPorts, run: FoundRun, name: str) -> Mapping[str, str]:
    bundle = f"{ports.bundles}/{bundle_name(run.location)}" if ports.bundles else ""
    policy = reading_policy(run.location, bundle=bundle, partition=ports.partition)
    return ports.lender.lend(f"backtest-{name}"[:64], policy, seconds=LENT_FOR)
