"""A run watched by a custom rule, whose code runs in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

from smdebug.service.records import RuleRecord
from tests.functions import deployed_settings
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld

RUN = "runs/mnist"
HEAD = """
import json, os, sys, time
import numpy as np
from smdebug.rules import Finding, Rule

"""
COUNTS = """
class Counts(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = int(limit)
        self.seen = []

    def invoke_at_step(self, step):
        total = float(self.base_trial.tensor("gradient/fc").value(step).sum())
        self.seen.append((step, total))
        if len(self.seen) > self.limit:
            self.findings.append(Finding("gradient/fc", "count", len(self.seen), self.limit))
        return bool(self.findings)
"""


def invoking(body: str, name: str = "Mine") -> str:
    """A rule whose `invoke_at_step` has this body."""
    body = dedent(body).strip().replace("\n", "\n        ")
    return f"class {name}(Rule):\n    def invoke_at_step(self, step):\n        {body}\n"


class Watched:
    """A small world with one custom rule on one run."""

    def __init__(self, folder: Path, code: str = COUNTS, rule: str = "Counts", **more: Any):
        settings = deployed_settings.settings(sandbox="sandbox")
        self.small = SmallWorld(settings, folder=folder)
        self.put_source(code)
        self.place = self.small.place()
        more.setdefault("source", "s3://runs/rule-sources/rule.py")
        self.wanted = {"name": "mine", "rule": rule, **more}
        self.want(self.wanted)
        self.saver = Saver(self.place).begin()

    def put_source(self, code: str) -> None:
        self.small.bucket.run("rule-sources").write("rule.py", (HEAD + code).encode())

    def want(self, *rules: dict[str, Any]) -> None:
        """Write rules.json."""
        content = {"version": 1, "default_rules": False, "rules": list(rules)}
        self.place.write("rules.json", json.dumps(content).encode())

    def save(self, *steps: int, **more: Any) -> None:
        for step in steps:
            self.saver.save(step, **more)

    def settle(self) -> None:
        self.small.settle()

    def end(self) -> None:
        self.saver.end()
        self.small.settle()
        self.small.pass_time(100)

    @property
    def group(self) -> Any:
        (group,) = (
            known for known in self.small.index.groups.all_of(RUN) if known.group.startswith("custom-mine")
        )
        return group

    @property
    def rule(self) -> RuleRecord:
        (rule,) = self.group.rules
        return rule

    @property
    def status(self) -> str:
        return self.rule.status.value

    @property
    def found(self) -> list[int]:
        """The steps with a published finding."""
        return [detail["step"] for detail in self.small.details("Rule Evaluation Condition Met")]

    def attributes(self) -> dict[str, Any]:
        """Return the attributes in the rule's state."""
        from smdebug.rules.memory.state import read_state

        rule = self.rule
        return read_state(self.place.read(rule.state_key) if rule.state_key else rule.state)
