"""What the handlers used, and its price in dollars, by service."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from functions.adapters.in_memory import MemoryItems
from smdebug.service.costs import PRICES
from tests.support.item_size import item_size

LOG_LINES = 310  # bytes of START, END and REPORT, which Lambda writes at each invocation
LOG_EVENT = 26  # bytes that CloudWatch adds to each line
ITEM_OVERHEAD = 100  # bytes that DynamoDB bills of each item beside its content
PRICED = {**PRICES, "log byte": 0.50e-9}


@dataclass
class Bill:
    """The billed usage."""

    used: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    writes_by_key: Counter[str] = field(default_factory=Counter)

    def __getitem__(self, what: str) -> float:
        return self.used[what]

    def count(self, what: str) -> None:
        """Bill one more of it."""
        self.used[what] += 1

    @property
    def dollars(self) -> float:
        return sum(PRICED[what] * count for what, count in self.used.items() if what in PRICED)


KINDS = {
    "DynamoDB": ("write unit", "read unit"),
    "storage": ("table byte",),
    "S3": ("S3 GET", "S3 PUT", "S3 LIST"),
    "SQS": ("SQS request",),
    "Lambda": ("invocation", "GB-second"),
    "workflow": ("execution", "execution GB-second"),
    "logs": ("log byte",),
}


def dollars_of(bill: Bill, steps: int) -> dict[str, float]:
    """Return the dollars per million steps, by service."""
    return {
        kind: sum(PRICED[what] * bill[what] for what in parts) / steps * 1e6 for kind, parts in KINDS.items()
    }


def stored_bytes(table: MemoryItems) -> int:
    """Return the bytes of a table that are billed as storage."""
    partitions = table._partitions.values()
    return sum(item_size(item) + ITEM_OVERHEAD for part in partitions for item in part.items.values())
