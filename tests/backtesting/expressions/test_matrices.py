"""Expressions over many runs at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smdebug.backtesting.expressions.columns import Values
from smdebug.backtesting.expressions.grammar import parse
from smdebug.backtesting.expressions.matrices import check
from smdebug.backtesting.expressions.rolling import NAMES, rolled
from smdebug.backtesting.expressions.verdicts import verdicts
from tests.support.looking import each

NAN = math.nan


def checked(text: str, *rows: list[float]):
    values = np.array(rows, float)
    steps = np.broadcast_to(np.arange(values.shape[1], dtype=float), values.shape)
    return check(parse(text), {"series:loss": values}, steps)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss > 2", [0, 0, 1, 0]),
        ("not loss > 2", [1, 1, 0, 1]),
        ("is_nan(loss) or loss < 2", [1, 0, 0, 1]),
        ("loss > lag(loss, 1)", [0, 1, 1, 0]),
        ("loss < best(loss) + 1 and step > 0", [0, 0, 0, 0]),
        ("diff(loss) >= 1", [0, 1, 1, 0]),
        ("abs(0 - loss) * 2 / 2 == loss", [1, 1, 1, 0]),
        ("-loss <= -2", [0, 1, 1, 0]),
        ("1 < 2", [1, 1, 1, 1]),
    ],
)
def test_a_condition_holds_at_steps(text: str, expected: list[int]):
    assert checked(text, [1.0, 2.0, 3.0, NAN]).holds[0].astype(int).tolist() == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [1, 4, 7, 300])
def test_a_rolling_statistic_is_that_of_each_window(name: str, steps: int):
    random = np.random.default_rng(5)
    values = random.normal(size=(6, 290)).round(1)  # with equal values
    values[random.random(values.shape) < 0.2] = NAN
    values[0, :9] = NAN
    plain = getattr(np, f"nan{name.removeprefix('rolling_')}")
    found = rolled(name, values, steps)
    for run, at in each(np.ndindex(values.shape), at_least=1000):
        window = values[run, max(0, at - steps + 1) : at + 1]
        if np.isnan(window).all():
            assert np.isnan(found[run, at])
        else:
            assert found[run, at] == pytest.approx(plain(window), abs=1e-12)


def test_the_factor_of_a_comparison_is_its_limit():
    found = checked("loss > 3 * lag(loss, 1) and step > 1", [1.0, 9.0, 2.0, 8.0])
    assert (found.limit, found.is_above, found.statistic) == (3.0, True, "loss / lag(loss, 1)")
    assert found.values is not None
    assert found.values[0, 3] == 4.0
    assert np.isnan(found.values[0, 1]), "the other condition does not hold there"


def test_runs_of_any_length_get_rows_in_their_order():
    def run(*values: float) -> dict[str, Values]:
        return {"series:loss": Values(np.arange(len(values)) * 10, np.array(values, float))}

    rows = verdicts(
        parse("loss > 3"), [("a", run(1, 4, 5)), ("b", run(9)), ("c", run()), ("d", run(1, 1, 1))]
    )
    assert [(row.run, row.status, row.onset) for row in rows] == [
        ("a", "IssuesFound", 10),
        ("b", "IssuesFound", 0),
        ("c", "NotChecked", None),
        ("d", "NoIssuesFound", None),
    ]
    assert (rows[0].findings, rows[0].highest, rows[0].first_finding) == (2, 5.0, "loss 4 (limit 3)")


def test_series_are_compared_at_their_common_steps():
    columns = {
        "series:a": Values(np.array([0, 1, 2, 3]), np.array([0.0, 5, 0, 5])),
        "series:b": Values(np.array([1, 2]), np.array([1.0, 1.0])),
    }
    (row,) = verdicts(parse("a > b"), [("run", columns)])
    assert (row.looked, row.findings, row.onset) == (2, 1, 1)
