"""What the page says about a run in a few words."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from smdebug.exceptions import SMDebugError
from smdebug.ui.about.answer import _cost, _is_number, _time, _workers
from smdebug.ui.about.last_numbers import _in_words, _shapes
from smdebug.ui.answering.curves import best_of


def overview(steps=10, workers=1, digest_workers=0):
    return SimpleNamespace(num_steps=steps, num_workers=workers, digest_workers=digest_workers)


@pytest.mark.parametrize(
    ("given", "work"),
    [
        (overview(10, 2), "10 saved steps of 2 workers"),
        (overview(1, 1), "1 saved step of 1 worker"),
        (overview(10, 0), "10 saved steps of 1 worker"),
    ],
)
def test_the_cost_of_a_run_is_a_sentence_with_its_prices(given, work):
    local, prices = _cost(given, deployed=False)
    deployed, same = _cost(given, deployed=True)
    assert local.startswith(f"In a deployment, evaluating {work} would cost about $")
    assert deployed.startswith(f"Evaluating {work} has cost about $")
    assert prices == same
    assert prices.startswith("AWS list prices in ")


def test_a_run_without_steps_costs_nothing():
    assert _cost(overview(0), deployed=True) == _cost(overview(0), deployed=False) == ("", "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (overview(workers=2), "2"),
        (overview(workers=1, digest_workers=1023), "1,024, of which 1,023 save digests"),
    ],
)
def test_workers_are_counted_with_those_that_save_digests(given, words):
    assert _workers(given) == words


def test_times_are_those_of_greenwich():
    assert _time(None) == ""
    assert _time(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02 03:04:05 UTC"


def test_true_and_false_are_no_numbers():
    assert [_is_number(value) for value in (1, 0.5, True, "1", None)] == [True, True, False, False, False]


def test_a_shape_is_said_in_words_where_the_layout_can_be_read():
    assert [_in_words(shape) for shape in (None, (), (3,), (2, 3))] == ["", "scalar", "3", "2 × 3"]

    def damaged(step):
        raise SMDebugError("cut")

    for trial, step in (
        (None, 3),
        (SimpleNamespace(observations=SimpleNamespace(has_facts=False, layout=damaged)), 3),
        (SimpleNamespace(observations=SimpleNamespace(has_facts=True, layout=damaged)), 3),
        (SimpleNamespace(observations=SimpleNamespace(has_facts=True, layout=damaged)), None),
    ):
        assert _shapes(trial, "k", step) == {}


@pytest.mark.parametrize(
    ("name", "found", "missing", "best"),
    [
        ("loss", (0.5, 7), "", {"value": 0.5, "is_highest": False, "step": 7, "epoch": 2}),
        ("loss", (0.5, 7), "not recorded", {"value": 0.5, "is_highest": False, "step": 7, "epoch": None}),
        ("accuracy", (0.9, 3), "", {"value": 0.9, "is_highest": True, "step": 3, "epoch": 2}),
        ("loss", None, "", None),
        ("no such name", (0.5, 7), "", None),
    ],
)
def test_the_best_value_of_a_line_is_its_lowest_or_highest(name, found, missing, best):
    asked = []

    def extreme(*, highest):
        asked.append(highest)
        return found

    epochs = SimpleNamespace(missing=missing, of=lambda steps: np.array([2]))
    assert best_of(name, SimpleNamespace(extreme=extreme), epochs) == best
    assert asked == ([] if name == "no such name" else [name == "accuracy"])
