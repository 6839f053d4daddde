"""The learning rates of a step, as their series have them."""

from __future__ import annotations

from smdebug.trials.observed_step import ObservedStep

PREFIX = "learning_rate/"


def newest_rates(seen: ObservedStep) -> dict[int, float]:
    """The largest rate of each optimizer's groups at the step, from the series that are written with it."""
    known: dict[int, float] | None = seen.shared.get("rates")
    if known is None:
        known = seen.shared["rates"] = {}
        for name in seen.series_names:
            if name.startswith(PREFIX):
                number = name.removeprefix(PREFIX).partition("/")[0]
                rows = seen.series(name)
                if number.isdecimal() and len(rows):
                    rate = float(rows[-1, 3])
                    known[int(number)] = max(rate, known.get(int(number), rate))
    return known
