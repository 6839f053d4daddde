"""What a deployed debugger costs in a month in which nothing is saved, counted from its template."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.app import NAME, app_with
from infra.settings import Settings
from smdebug.service.costs import PRICES

PROMISED = 0.35  # dollars beyond the always-free tier, without a customer key
MINUTES = 60 * 24 * 30
RECEIVES_PER_MINUTE = 15  # Lambda polls a queue with five long polls of 20 s
OWN_METRICS = 5  # RuleErrors, RulesOutOfBudget, MissedNotifications, RunsNotSwept, OldestUnevaluatedStep
SWEEP = {
    "seconds": 0.05,
    "GB": 0.5,
    "log bytes": 1200,
}  # one table query finds that no run is active
_UNBUNDLED: dict[str, Any] = {"aws:cdk:bundling-stacks": []}


@dataclass(frozen=True)
class Item:
    """A resource that AWS bills monthly."""

    name: str
    price: float
    free: float  # per month and account
    used: float = 0.0

    @property
    def listed(self) -> float:
        return self.used * self.price

    @property
    def beyond_free(self) -> float:
        return max(0.0, self.used - self.free) * self.price


PRICED = (
    Item("SQS requests", PRICES["SQS request"], 1e6),
    Item("Lambda invocations", PRICES["invocation"], 1e6),
    Item("Lambda GB-seconds", PRICES["GB-second"], 400_000),
    Item("table read units", PRICES["read unit"], 0),
    Item("alarm metrics", 0.10, 10),
    Item("own metrics", 0.30, 10),
    Item("GB of logs", 0.50, 5),
    Item("dashboards", 3.00, 3),
    Item("keys of KMS", 1.00, 0),
    Item("secrets", 0.40, 0),
)


def template() -> dict[str, Any]:
    """The default stack's."""
    context = json.loads(Path("cdk.json").read_text(encoding="utf-8"))["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = app_with(
            Settings(),
            context={**context, **_UNBUNDLED},
            outdir=folder,
            builtin_cloud_formation_validation=False,
        )
        found: dict[str, Any] = app.synth().get_stack_by_name(NAME).template
    return found


def bill_of(resources: dict[str, Any]) -> list[Item]:
    """Return what these resources use in a month without runs."""
    there = Counter(resource["Type"] for resource in resources.values())
    schedules = (
        resource["Properties"].get("ScheduleExpression", "")
        for resource in resources.values()
        if resource["Type"] == "AWS::Events::Rule"
    )
    sweeps = sum(MINUTES / minutes_between(schedule) for schedule in schedules if schedule)
    used = {
        "SQS requests": there["AWS::Lambda::EventSourceMapping"] * RECEIVES_PER_MINUTE * MINUTES,
        "Lambda invocations": sweeps,
        "Lambda GB-seconds": sweeps * SWEEP["seconds"] * SWEEP["GB"],
        "table read units": sweeps,
        "alarm metrics": sum(map(_metrics_of, resources.values())),
        "own metrics": OWN_METRICS,
        "GB of logs": sweeps * SWEEP["log bytes"] / 1e9,
        "dashboards": there["AWS::CloudWatch::Dashboard"],
        "keys of KMS": there["AWS::KMS::Key"],
        "secrets": there["AWS::SecretsManager::Secret"],
    }
    return [Item(priced.name, priced.price, priced.free, used[priced.name]) for priced in PRICED]


def _metrics_of(resource: dict[str, Any]) -> int:
    """The metrics that an alarm watches: each is billed."""
    if resource["Type"] != "AWS::CloudWatch::Alarm":
        return 0
    parts = resource["Properties"].get("Metrics")
    return sum("MetricStat" in part for part in parts) if parts else 1


def minutes_between(expression: str) -> float:
    """`rate(5 minutes)` -> 5."""
    count, unit = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression).groups()  # type: ignore[union-attr]
    return int(count) * {"minute": 1, "hour": 60, "day": 1440}[unit]


def report() -> list[str]:
    """Print the table; return the promises that do not hold."""
    bill = bill_of(template()["Resources"])
    print("\nA month in which nothing is saved, of the default stack:\n")
    print("".join(column.rjust(20) for column in ("", "used", "without free tier", "beyond it")))
    for item in bill:
        print(f"{item.name:>20}{item.used:>20,.0f}{item.listed:>20.4f}{item.beyond_free:>20.4f}")
    total, beyond = sum(item.listed for item in bill), sum(item.beyond_free for item in bill)
    print(f"{'dollars':>20}{'':>20}{total:>20.2f}{beyond:>20.4f}   promised: <= {PROMISED}")
    return [] if beyond <= PROMISED else [f"an idle month costs ${beyond:.2f}"]
