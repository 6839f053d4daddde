"""Token sequences that are nearly all padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.trials.observations.one_step import ObservedStep
from smdebug_default_rules.base import Advice, DefaultRule

LIMIT = 0.8
LEAST_TOKENS = 256
LEAST_IDS = 6
"""With fewer different ids these are flags rather than tokens."""


class InputPadding(DefaultRule):
    """Fires when one id fills 80 % of the places of a token input without a mask."""

    cause = "padding"
    advice: ClassVar[Advice] = {
        "padding": (
            "Truncate or bucket the sequences by length, and check that the tokens were not cut off.",
            "Give the model a mask of the padding, so that it does not average over it.",
        )
    }

    def __init__(self, base_trial: Any, *, action_str: Any = None):
        super().__init__(base_trial, action_str)
        self.since: int | None = None

    def check(self, seen: ObservedStep) -> Iterator[Finding]:
        inputs = seen.statistics("inputs")
        tokens = None if inputs is None else inputs.tensors[0]
        if tokens is None or "int" not in tokens.dtype or len(tokens.shape) != 2:
            self.lacks("the model has no input of token ids")
            return
        assert inputs is not None
        has_mask = any(other.shape == tokens.shape for other in inputs.tensors[1:])
        row = dict(zip(inputs.columns, inputs.values[0].tolist(), strict=True))
        share, token = _commonest(row, seen.samples("inputs").get(tokens.name))
        if has_mask or row["count"] < LEAST_TOKENS or row["max"] < LEAST_IDS or share < LIMIT:
            self.since = None
            return
        self.since = seen.step if self.since is None else self.since
        yield self.finding(
            f"{share:.0%} of the {row['count']:.0f} values of {tokens.name} are {token}",
            since=self.since,
            tensor=tokens.name,
            statistic="share of the commonest id",
            value=share,
            limit=LIMIT,
            why=(f"Only {1 - share:.0%} of the places hold other ids (at least 20% is usual)",),
        )


def _commonest(row: dict[str, float], sample: Any) -> tuple[float, int]:
    """The share of the commonest id, and that id: zeros are counted, others are estimated."""
    share, token = row["zeros"] / max(row["count"], 1), 0
    if sample is not None and len(sample) >= 64:
        ids, counts = np.unique(sample[np.isfinite(sample)], return_counts=True)
        if len(ids) and ids[counts.argmax()] != 0 and counts.max() / counts.sum() > share:
            share, token = float(counts.max() / counts.sum()), int(ids[counts.argmax()])
    return share, token
