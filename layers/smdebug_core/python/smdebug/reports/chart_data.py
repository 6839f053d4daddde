"""The data of the charts, as JSON for `report.js`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from smdebug.amounts import as_json_number
from smdebug.reports.curves import Curve
from smdebug.reports.distributions import Distribution
from smdebug.reports.gathering import Gathered
from smdebug.reports.tensor_series import STATISTICS, Section, Series
from smdebug.reports.verdicts import MOST_MARKS, Verdict

MOST_WORKER_CHARTS = 8

OtherCurves = Mapping[tuple[str, str], Curve]  # of another run, by name and mode


def chart_data(found: Gathered, others: OtherCurves) -> str:
    """The data as text that cannot end the script element around it."""
    content = {
        "steps": list(found.steps),
        "marks": [
            {"rule": verdict.name, "steps": list(verdict.steps_found[:MOST_MARKS])}
            for verdict in found.verdicts
            if verdict.steps_found
        ],
        "curves": [
            {
                "name": curve.name,
                "mode": curve.mode,
                **_line(curve),
                "other": _line(others.get((curve.name, curve.mode))),
            }
            for curve in found.curves
        ],
        "system": [{**_line(curve), "other": _line(None)} for curve in found.system],
        "groups": [
            {"first": first, "count": len(section.series)}
            for first, section in numbered(found.sections)
        ],
        "series": [
            _series(series, found.verdicts)
            for section in found.sections
            for series in section.series
        ],
        "distributions": [_distribution(distribution) for distribution in found.distributions],
        "workers": [
            {"name": tensor.name, "steps": list(tensor.steps), "spread": list(tensor.spread)}
            for tensor in found.disagreements[:MOST_WORKER_CHARTS]
        ],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def numbered(sections: Sequence[Section]) -> Iterator[tuple[int, Section]]:
    """Each section with the number of its first chart."""
    first = 0
    for section in sections:
        yield first, section
        first += len(section.series)


def _line(curve: Curve | None) -> dict[str, Any]:
    if curve is None:
        return {"steps": [], "values": []}
    return {"steps": list(curve.steps), "values": [as_json_number(value) for value in curve.values]}


def _series(series: Series, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    marks = {
        (finding.step, verdict.name)
        for verdict in verdicts
        for finding in verdict.found
        if series.name in finding.tensors
    }
    return {
        "name": series.name,
        "odd": [list(counts) for counts in series.not_finite],
        "marks": [list(mark) for mark in sorted(marks)],
        **{statistic: _packed(series.numbers[statistic]) for statistic in STATISTICS},
    }


def _distribution(distribution: Distribution) -> dict[str, Any]:
    return {
        "name": distribution.name,
        "steps": list(distribution.steps),
        "unit": distribution.unit,
        "low": distribution.low,
        "high": distribution.high,
        "bins": int(distribution.shares.shape[1]),
        "shares": base64.b64encode(distribution.shares.tobytes()).decode(),
    }


def _packed(numbers: Any) -> str:
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode()
