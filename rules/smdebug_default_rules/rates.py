"""The learning rates of a step, as their series have them."""

from __future__ import annotations

from smdebug.files.observations import LEARNING_RATES
from smdebug.trials.observations.one_step import ObservedStep


def newest_rates(seen: ObservedStep) -> dict[int, float]:
    """The largest rate of each optimizer's groups at the step, from the series that are written with it."""
    known: dict[int, float] | None = seen.shared.get("rates")
    if known is None:
        known = seen.shared["rates"] = {}
        for name in seen.series_names:
            if name.startswith(LEARNING_RATES):
                number = name.removeprefix(LEARNING_RATES).partition("/")[0]
                rows = seen.series(name)
                if number.isdecimal() and len(rows):
                    rate = float(rows[-1, 3])
                    known[int(number)] = max(rate, known.get(int(number), rate))
    return known
