"""Three runs on a deployed debugger: one healthy, one failing, one with a rule that dies."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection
from typing import Any

import smdebug
from smdebug.exceptions import RunUnknown
from smdebug.service.client import Debugger
from smdebug.service.watched_run import WatchedRun

STEPS = 4
DYING = """
import os

from smdebug.rules import Rule


class Dying(Rule):
    def invoke_at_step(self, step):
        os._exit(1)
"""
KNOWN_WITHIN = 120.0  # seconds
FINISHED_WITHIN = 1200.0  # seconds: the grace of a run's end, and the retries of a rule that dies


class SmokeFailed(AssertionError):
    """The deployed debugger broke a promise: the message names the run, and what happened."""


def save(path: str, rules: list[Any], *, failing: bool = False) -> None:
    """Save a small run; a failing one has a NaN at its last step."""
    hook = smdebug.Hook(
        path,
        include_collections=["gradients"],
        save_config=smdebug.SaveConfig(save_interval=1),
        rules={"default_rules": False, "rules": rules},
    )
    with hook:
        for step in range(STEPS):
            with hook.step(smdebug.modes.TRAIN):
                is_bad = failing and step == STEPS - 1
                hook.record("gradient/fc", [1.0, math.nan if is_bad else 0.5])


def upload_dying_rule(bucket: str, name: str, s3: Any) -> str:
    """Upload a rule whose process ends at every step; return its source."""
    key = f"rule-sources/{name}/dying.py"
    s3.put_object(Bucket=bucket, Key=key, Body=DYING.encode())
    return f"s3://{bucket}/{key}"


def known(debugger: Debugger, path: str) -> WatchedRun:
    """Return the run once its first notification has been handled."""
    until = time.monotonic() + KNOWN_WITHIN
    while True:
        try:
            return debugger.run(path)
        except RunUnknown:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def three_runs(
    debugger: Debugger,
    bucket: str,
    prefix: str,
    s3: Any,
    *,
    names: Collection[str] = ("dying", "healthy", "failing"),
    finish: Callable[[str], Any] | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Save three runs and check what the debugger says about them, or raise `SmokeFailed`.

    `names` are the runs to save. `finish` waits until a run is finished, if more than time has to pass.
    """
    dying = {"name": "dying", "rule": "Dying", "source": upload_dying_rule(bucket, prefix, s3)}
    expected = {
        "dying": (
            ["ExplodingTensor", dying],
            {"ExplodingTensor": "NoIssuesFound", "dying": "Error"},
            None,
        ),
        "healthy": (["ExplodingTensor"], {"ExplodingTensor": "NoIssuesFound"}, "NoIssuesFound"),
        "failing": (["ExplodingTensor"], {"ExplodingTensor": "IssuesFound"}, "IssuesFound"),
    }
    expected = {name: expected[name] for name in names}
    for name, (rules, _, _) in expected.items():
        save(f"s3://{bucket}/{prefix}/{name}", rules, failing=name == "failing")
        say(f"saved {name}")
    for name, (_, statuses, verdict) in expected.items():
        run = known(debugger, f"s3://{bucket}/{prefix}/{name}")
        if finish is not None:
            finish(name)
        snapshot = run.wait("finished", timeout=FINISHED_WITHIN)
        found = {status.name: str(status.status) for status in run.statuses()}
        if found != statuses:
            why = json.dumps({status.name: status.reason for status in run.statuses()})
            raise SmokeFailed(f"{name}: the rules are {found} instead of {statuses}: {why}")
        if verdict is not None and str(snapshot.summary.verdict) != verdict:
            raise SmokeFailed(f"{name}: the verdict is {snapshot.summary.verdict}, not {verdict}")
        say(f"{name}: {found}")
    if "failing" not in names:
        return
    failing = debugger.run(f"s3://{bucket}/{prefix}/failing")
    steps = [finding.step for finding in failing.findings()]
    if steps != [STEPS - 1]:
        raise SmokeFailed(f"failing: found at steps {steps} instead of {STEPS - 1} alone")
