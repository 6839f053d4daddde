"""Input sequences with too much padding, or too much of another token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from smdebug.exceptions import SMDebugValueError
from smdebug.numbers.conditions import is_numeric
from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import WorkerValue, read_values, single, tensor_label
from smdebug.rules.parameters import numbers
from smdebug.rules.selection import TensorSelection

_EMBEDDING = ".*embedding0_input_0"


class NLPSequenceRatio(TensorRule):
    """Fires when a token of `token_values` exceeds its percentage of an input.

    `token_thresholds_percent` has one percentage for each token, or one for all.
    """

    cause = "padding"
    advice: ClassVar = {
        "": (
            "Sort or bucket sequences by length, so that a batch needs little padding.",
            "Check the tokenizer: many unknown tokens mean that it does not fit the text.",
            "Shorten the maximum length to that of nearly all sequences.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        tensor_regex: Any = _EMBEDDING,
        token_values: Any = "0",  # noqa: S107 - not a secret
        token_thresholds_percent: Any = "50",  # noqa: S107
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = TensorSelection(None, tensor_regex or _EMBEDDING)
        tokens = numbers("token_values", token_values)
        limits = numbers("token_thresholds_percent", token_thresholds_percent)
        if not tokens or not limits:
            raise SMDebugValueError("token_values and token_thresholds_percent must not be empty")
        if any(not 0 <= limit <= 100 for limit in limits):
            raise SMDebugValueError(f"token_thresholds_percent must be between 0 and 100, not {limits}")
        if len(limits) == 1:
            limits *= len(tokens)
        if len(limits) != len(tokens):
            raise SMDebugValueError(
                f"token_values has {len(tokens)} numbers and token_thresholds_percent {len(limits)}: "
                "give one percentage for each token, or one for all"
            )
        self.limits = list(zip(tokens, limits, strict=True))

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        for sequence in read_values(trial, self.selection.names(trial, step), step):
            percents = [_percent_of(sequence, token) for token, _ in self.limits]
            if None in percents:
                reason = "what was saved does not reveal how often a token occurs"
                yield Judged(sequence.name, sequence.worker, skipped=reason)
                continue
            over = [
                (percent - limit, percent, token, limit)
                for percent, (token, limit) in zip(percents, self.limits, strict=True)
                if percent is not None and percent > limit
            ]
            if not over:
                known = [percent for percent in percents if percent is not None]
                yield Judged(sequence.name, sequence.worker, value=max(known))
            for by, percent, token, limit in sorted(over, reverse=True):
                finding = Finding(
                    statistic=f"percent of token {token:g}",
                    value=percent,
                    threshold=limit,
                    message=f"{tensor_label(sequence.name, sequence.worker, trial)}: {percent:.4g} % of the "
                    f"tokens are {token:g} (limit {limit:g} %)",
                    details={"token": token},
                )
                yield Judged(sequence.name, sequence.worker, finding, badness=by, value=percent)


def _percent_of(sequence: WorkerValue, token: float) -> float | None:
    if sequence.value is not None:
        if sequence.value.size == 0 or not is_numeric(sequence.value):
            return None
        value = sequence.value
        if value.dtype.itemsize < 4 and value.dtype.kind not in "biu":
            value = value.astype(np.float32)
        return 100.0 * int(np.count_nonzero(value == token)) / value.size
    least, most = (single(sequence.reductions.get((name, False))) for name in ("min", "max"))
    if least is None or most is None:
        return None
    if least == most:
        return 100.0 if least == token else 0.0
    return 0.0 if not least <= token <= most else None
