"""What the evaluation of a run costs in an account of yours, by AWS's list prices.

What a saved step uses follows from how many workers write it: their files become messages, messages come in
batches, and each step is evaluated once, however many built-in rules there are. `make bench-cost` counts the
same from the calls that the functions make, and a test holds the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

PRICED_IN = "us-east-1, November 2026"
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
}
POLLERS = 5  # with which Lambda begins to poll a queue
_FEW = 16  # workers; above, the default settings have messages collected for two seconds


@dataclass(frozen=True)
class Cost:
    """The evaluation of so many saved steps, with the default settings."""

    steps: int
    workers: int

    @property
    def dollars(self) -> float:
        used = usage_of_step(self.workers)
        return self.steps * sum(PRICES[what] * amount for what, amount in used.items())

    def __str__(self) -> str:
        return dollars(self.dollars)


def usage_of_step(workers: int) -> dict[str, float]:
    """What one step uses of what AWS bills: each worker writes an event file and an index file."""
    files = 2 * workers
    if workers == 1:
        batches = 2  # each message comes alone
    elif workers <= _FEW:
        batches = math.ceil(files / 10)
    else:
        batches = POLLERS
    calls = batches * math.ceil(files / batches / 10)  # of the queue: at most ten messages in each
    many = max(0, workers - 64)  # their arrivals are in several items, which are larger
    return {
        "write unit": batches + 3 + many / 20,
        "read unit": batches + 4 + many / 80,
        "S3 GET": files,
        "SQS request": files + 2 * calls,  # sent, received, deleted
        "invocation": batches + 1,
        "GB-second": 0.064 + 0.0024 * workers,
        "execution": 1,
        "execution GB-second": 0.0125 + 0.00013 * workers,
    }


def dollars(amount: float) -> str:
    """An amount with two digits that count."""
    if amount >= 100:
        return f"${amount:,.0f}"
    if amount >= 1:
        return f"${amount:.2f}"
    amount = float(f"{amount:.2g}")
    places = max(2, 1 - math.floor(math.log10(amount))) if amount > 0 else 2
    return f"${amount:.{places}f}"
