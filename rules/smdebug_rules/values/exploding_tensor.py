"""Values that are not finite: NaN or infinity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from smdebug.rules import Finding
from smdebug.rules.evidence import Judged, TensorRule
from smdebug.rules.measurements import WorkerStatistics, measure, tensor_label
from smdebug.rules.parameters import boolean
from smdebug.rules.selection import TensorSelection

# A sum or norm of finite float16 values can be infinite; these cannot.
_NEVER_OVERFLOW = frozenset(("min", "max", "mean", "median"))
# Infinite if values are merely large; NaN if one of them is NaN or infinite.
_SPREADS = frozenset(("std", "variance"))
_CONCLUSIVE = _NEVER_OVERFLOW | _SPREADS | {"sum", "l1", "l2"}
# NaN in one of these comes from a NaN, not from infinity minus infinity.
_NAN_FROM_NAN = frozenset(("min", "max", "l1", "l2"))


_TREES = TensorSelection("trees")


def proving_reduction(reductions: Mapping[tuple[str, bool], Any], only_nan: bool) -> tuple[str, Any] | None:
    """Return a saved reduction that proves a value not finite, and what it is; None if none does."""
    for (name, of_magnitude), value in sorted(reductions.items()):
        value = np.asarray(value)
        if name not in _CONCLUSIVE or value.dtype.kind not in "fc" or np.isfinite(value).all():
            continue
        if name not in _NEVER_OVERFLOW and value.dtype == np.float16:
            continue
        is_nan = bool(np.isnan(value).any())
        if name in _SPREADS and (only_nan or not is_nan):
            continue
        if only_nan and not (is_nan and (of_magnitude or name in _NAN_FROM_NAN)):
            continue
        return f"{'abs_' if of_magnitude else ''}{name}", "NaN" if is_nan else "infinite"
    return None


class ExplodingTensor(TensorRule):
    """Fires when a selected tensor (by default any) contains NaN or, without `only_nan`, infinity.

    XGBoost's trees must be selected explicitly: a leaf has NaN in place of a split.
    """

    cause = "exploding"
    advice: ClassVar = {
        "": (
            "Lower the learning rate, and clip gradients (`clip_grad_norm_(parameters, 1.0)`).",
            "Check the inputs and labels of this step for NaN and extreme values.",
            "Look for a division by zero or a logarithm of zero in the loss; with float16, "
            "scale the loss or use bfloat16.",
        )
    }

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        only_nan: Any = False,
        *,
        action_str: Any = None,
    ):
        super().__init__(base_trial, action_str)
        self.selection = TensorSelection(collection_names, tensor_regex)
        self.only_nan = boolean("only_nan", only_nan)

    def judged(self, step: int) -> Iterator[Judged]:
        trial = self.base_trial
        names = self.selection.names(trial, step)
        if not self.selection:
            trees = dict.fromkeys(_TREES.names(trial, step))
            yield from (Judged(name, "", skipped="a leaf has NaN in place of a split") for name in trees)
            names = [name for name in trial.tensor_names(step=step) if name not in trees]
        for tensor in measure(trial, names, step):
            if tensor.statistics is None and not tensor.reductions:
                yield Judged(tensor.name, tensor.worker, skipped=tensor.skipped)
            else:
                yield self._judged(tensor)

    def _judged(self, tensor: WorkerStatistics) -> Judged:
        where, known = tensor_label(tensor.name, tensor.worker, self.base_trial), tensor.statistics
        if known is not None:
            bad = known.nan if self.only_nan else known.non_finite
            if not bad:
                return Judged(tensor.name, tensor.worker)
            infinite = 0 if self.only_nan else known.infinite
            finding = Finding(
                statistic="NaN" if self.only_nan else "not finite",
                value=bad,
                threshold=0,
                message=f"{where}: {_counted(known.nan, infinite)} of {known.size} values",
            )
            return Judged(tensor.name, tensor.worker, finding, badness=bad / known.size)
        proof = proving_reduction(tensor.reductions, self.only_nan)
        if proof is None:
            return Judged(tensor.name, tensor.worker)
        name, what = proof
        message = f"{where}: the saved {name} is {what}"
        return Judged(tensor.name, tensor.worker, Finding(statistic=name, value=what, message=message))


def _counted(nan: int, infinite: int) -> str:
    parts = [f"{nan} NaN"] if nan else []
    if infinite:
        parts.append(f"{infinite} infinite")
    return " and ".join(parts)
