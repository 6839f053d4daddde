"""Values that are no longer finite: NaN or infinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smdebug.numbers.conditions import NonFinite, count_non_finite, is_numeric
from smdebug.rules import Finding, Rule
from smdebug.rules.looking import Seen, TensorSelection, look, named
from smdebug.rules.parameters import boolean

# A sum or norm of finite float16 values can be infinite; these cannot.
_NEVER_OVERFLOW = frozenset(("min", "max", "mean", "median"))
_TELLING = _NEVER_OVERFLOW | {"sum", "l1", "l2"}
# NaN in one of these comes from a NaN, not from infinity less infinity.
_NAN_FROM_NAN = frozenset(("min", "max", "l1", "l2"))


def telling_reduction(
    reductions: Mapping[tuple[str, bool], Any], only_nan: bool
) -> tuple[str, Any] | None:
    """A saved reduction that proves a value not to be finite, and what it is; None if none does."""
    for (name, of_magnitude), value in sorted(reductions.items()):
        value = np.asarray(value)
        if name not in _TELLING or value.dtype.kind not in "fc" or np.isfinite(value).all():
            continue
        if name not in _NEVER_OVERFLOW and value.dtype == np.float16:
            continue
        is_nan = bool(np.isnan(value).any())
        if only_nan and not (is_nan and (of_magnitude or name in _NAN_FROM_NAN)):
            continue
        return f"{'abs_' if of_magnitude else ''}{name}", "NaN" if is_nan else "infinite"
    return None


class ExplodingTensor(Rule):
    """Fires when a selected tensor (any, if none is selected) has NaN or, without `only_nan`, infinity."""

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

    def invoke_at_step(self, step: int) -> bool:
        trial = self.base_trial
        selected = self.selection.names(trial, step) if self.selection else None
        names = trial.tensor_names(step=step) if selected is None else selected
        found: list[tuple[float, Finding]] = []
        self.looked = False
        for seen in look(trial, names, step):
            if seen.value is None or is_numeric(seen.value):
                self.looked = True
                judged = self._judged(seen, step)
                if judged is not None:
                    found.append(judged)
        found.sort(key=lambda one: (-one[0], one[1].tensor or "", one[1].worker or ""))
        self.findings = [finding for _, finding in found]
        return bool(found)

    def _judged(self, seen: Seen, step: int) -> tuple[float, Finding] | None:
        where = named(seen.name, seen.worker, self.base_trial)
        about: dict[str, Any] = {"tensor": seen.name, "worker": seen.worker, "step": step}
        if seen.value is not None:
            counts = count_non_finite(seen.value)
            bad = counts.nan + (0 if self.only_nan else counts.infinite)
            if not bad:
                return None
            told = f"{where}: {_counted(counts, self.only_nan)} of {seen.value.size} values"
            return bad / seen.value.size, Finding(
                statistic="NaN" if self.only_nan else "not finite",
                value=bad,
                threshold=0,
                message=told,
                **about,
            )
        proof = telling_reduction(seen.reductions, self.only_nan)
        if proof is None:
            return None
        name, what = proof
        return 0.0, Finding(
            statistic=name,
            value=what,
            message=f"{where}: the saved {name} is {what}",
            **about,
        )


def _counted(counts: NonFinite, only_nan: bool) -> str:
    parts = [f"{counts.nan} NaN"] if counts.nan else []
    if counts.infinite and not only_nan:
        parts.append(f"{counts.infinite} infinite")
    return " and ".join(parts)
