"""The cost of evaluating a run in your own account, at AWS's list prices.

The usage of a saved step follows from the number of workers: their files become messages, messages arrive
in batches, and each step is evaluated once, with any number of built-in rules. `make bench-cost` counts the
calls that the functions make, and a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

PRICED_IN = "us-east-1, November 2026"
MONTHS_KEPT = 3  # an item of the step index: `index_retention_days` is 90
_GB_OF_TABLE, _GB_RECOVERABLE = 0.25, 0.20  # a month, in dollars; the second for point-in-time recovery
PRICES: Mapping[str, float] = {  # in dollars
    "write unit": 0.625e-6,
    "read unit": 0.125e-6,
    "S3 GET": 0.40e-6,
    "S3 PUT": 5e-6,
    "S3 LIST": 5e-6,
    "SQS request": 0.40e-6,
    "invocation": 0.20e-6,
    "GB-second": 1.33334e-5,
    "execution": 1e-6,
    "execution GB-second": 1.667e-5,
    "event": 1e-6,
    "table byte": (_GB_OF_TABLE + _GB_RECOVERABLE) * MONTHS_KEPT / 1e9,
}
POLLERS = 5  # the number with which Lambda begins to poll a queue
_FEW_WORKERS = 16  # with more, the default settings collect messages for two seconds


@dataclass(frozen=True)
class Cost:
    """The evaluation of a number of saved steps, with the default settings."""

    steps: int
    workers: int

    @property
    def dollars(self) -> float:
        used = usage_of_step(self.workers)
        return self.steps * sum(PRICES[unit] * amount for unit, amount in used.items())

    def __str__(self) -> str:
        return dollars(self.dollars)


def usage_of_step(workers: int) -> dict[str, float]:
    """The billed units of one step. Each worker writes an event file and an index file."""
    files = 2 * workers
    if workers == 1:
        batches = 2  # each message arrives alone
    elif workers <= _FEW_WORKERS:
        batches = math.ceil(files / 10)
    else:
        batches = POLLERS
    calls = batches * math.ceil(files / batches / 10)  # to the queue: at most ten messages each
    many = max(0, workers - 64)  # their arrivals fill several, larger items
    return {
        "write unit": batches + 3 + many / 20,
        "read unit": batches + 4 + many / 80,
        "S3 GET": files,
        "SQS request": files + 2 * calls,  # sent, received, deleted
        "invocation": batches + 1,
        "GB-second": 0.15 + 0.0115 * workers,
        "execution": 1,
        "execution GB-second": 0.013 + 0.00065 * workers,
        "table byte": 225 + 5.5 * workers + 4.6 * many,
    }


def dollars(amount: float) -> str:
    """An amount with two significant digits."""
    if amount >= 100:
        return f"${amount:,.0f}"
    if amount >= 1:
        return f"${amount:.2f}"
    amount = float(f"{amount:.2g}")
    places = max(2, 1 - math.floor(math.log10(amount))) if amount > 0 else 2
    return f"${amount:.{places}f}"
