"""What a run has cost on AWS, estimated from its saved steps."""

from __future__ import annotations

from dataclasses import dataclass

from smdebug.amounts import counted
from smdebug.service.costs import PRICED_IN, PRICES, Cost

FILES_OF_STEP = 2
"""Files that a worker writes at a saved step: its event file and its index file."""


@dataclass(frozen=True)
class Estimate:
    """The cost of a run in dollars, None if it costs nothing, and what it consists of."""

    dollars: float | None
    title: str


IN_FOLDER = Estimate(None, "A run in a folder costs no requests")


def estimate(steps: int, workers: int, *, is_remote: bool, is_deployed: bool) -> Estimate:
    """Return what saving a run to a bucket and evaluating it has cost so far."""
    if not is_remote:
        return IN_FOLDER
    files = FILES_OF_STEP * steps * max(1, workers)
    saving = files * PRICES["S3 PUT"]
    parts = [f"{files:,} PUT requests of the training"]
    if is_deployed:
        saving += Cost(steps, max(1, workers)).dollars
        parts.append(f"the evaluation of {counted(steps, 'step')}")
    return Estimate(saving, f"Estimate at list prices ({PRICED_IN}), without storage: {' and '.join(parts)}")
