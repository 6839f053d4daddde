"""Expressions are parsed by their own grammar."""

from __future__ import annotations

import pytest

from smdebug.backtesting.expressions.grammar import columns_of, parse
from smdebug.exceptions import SMDebugValueError


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("loss > 3 * rolling_median(loss, 50)", ("series:loss",)),
        ('"train/loss" - loss >= 1e-3', ("series:train/loss", "series:loss")),
        (
            'not (stat("w/1", abs_mean) < .5) and step > 10',
            ("stat:abs_mean:w/1", "series:step"),
        ),
        ("is_nan(loss) or a == -1", ("series:loss", "series:a")),
    ],
)
def test_an_expression_names_the_columns_that_it_reads(text: str, read: tuple[str, ...]):
    assert columns_of(parse(text)) == read


def test_operators_bind_as_in_python():
    assert parse("a - b - c * d > 1 or e < 2 and f < 3") == parse(
        "((a - b) - (c * d)) > 1 or ((e < 2) and (f < 3))"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("loss", "not a condition"),
        ("loss >", "at character 7: it ends too early"),
        ("loss > 1 > 2", "two comparisons"),
        ("loss > 1 and 2", "2 is a number"),
        ("(loss > 1) + 2 > 1", "is a condition"),
        ("median(loss) > 1", "there is no function median"),
        ("rolling_mean(loss, 0.5) > 1", "a number of steps"),
        ("rolling_mean(loss, -1) > 1", "is not expected"),
        ('stat("w", medium) > 1', "there is no statistic medium"),
        ("__import__('os') > 1", "is not expected"),
        ("loss.__class__ > 1 ; 2", "';' is not expected"),
        ("(" * 100 + "loss > 1" + ")" * 100, "nested too deeply"),
        ("loss > 1" + " " * 2000, "2,008 characters"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: str, problem: str):
    with pytest.raises(SMDebugValueError, match=problem):
        parse(text)
