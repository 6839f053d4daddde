"""What changed near a step, of runs whose change is known."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.runs import open_run
from smdebug.ui.agents.answers import around_answer
from smdebug.ui.agents.around import (
    ChangedTensor,
    Window,
    changed_facts,
    changed_tensors,
    scalars_near,
    window_at,
    window_of,
)
from smdebug.ui.agents.bounding import text_of, tokens
from smdebug.ui.agents.tools import Opened
from tests.rules.made_runs import MadeRun

WEIGHTS = {"gradients": ["^gradient"], "weights": ["weight"], "losses": ["loss"]}


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        (40, (10, 20, 30), (40, 50)),
        (35, (10, 20, 30), (40, 50)),
        (0, (0,), (10, 20, 30)),
        (50, (20, 30, 40), (50,)),
    ],
)
def test_a_window_has_saved_steps_on_both_sides(step, before, after):
    assert window_of([0, 10, 20, 30, 40, 50], step) == (before, after)


def test_one_step_alone_is_compared_with_nothing():
    assert window_of([7], 7) == ((), (7,))


def made(tmp_path, jump=4, size=100.0, steps=8):
    """A run whose second gradient is larger from a step on, and whose third has NaN from step 6 on."""
    run = MadeRun(tmp_path / "run", collections=WEIGHTS)
    for step in range(steps):
        run.save(
            step,
            {
                "loss": np.array(float(step)),
                "gradient/steady": np.ones(4) * (1 + 0.1 * (step % 2)),
                "gradient/grown": np.ones(4) * (size if step >= jump else 1.0),
                "gradient/broken": np.array([1.0, np.nan if step >= 6 else 1.0]),
            },
        )
    run.end()
    return open_run(tmp_path / "run")


def test_a_tensor_that_grew_is_named_and_a_steady_one_is_not(tmp_path):
    trial = made(tmp_path)
    (change,) = [each for each in changed_tensors(trial, window_at(trial, 4)) if not each.non_finite]
    assert (change.tensor, change.before, change.after, change.step) == ("gradient/grown", 1.0, 100.0, 4)
    assert changed_tensors(trial, window_at(trial, 2))[:1] != []  # step 4 is among those after step 2
    steady = made(tmp_path / "steady", size=1.0)
    assert changed_tensors(steady, window_at(steady, 2)) == []


def test_values_that_cease_to_be_finite_come_first(tmp_path):
    trial = made(tmp_path, jump=6)
    found = changed_tensors(trial, window_at(trial, 6))
    assert [(each.tensor, each.non_finite) for each in found] == [
        ("gradient/broken", 1),
        ("gradient/grown", 0),
    ]


def test_a_step_outside_of_the_run_is_refused(tmp_path):
    trial = made(tmp_path)
    for step in (-1, 8):
        with pytest.raises(SMDebugValueError, match="between 0 and 7"):
            window_at(trial, step)


def test_scalars_that_changed_are_shown_near_the_step_after_the_loss(tmp_path):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for step in range(60):
            with hook.step():
                hook.record("loss", 1.0)
                hook.log(rate=0.1 if step < 30 else 3.0, constant=1.0)
    found = scalars_near(open_run(tmp_path / "run"), 30)
    assert list(found) == ["loss", "rate"]
    assert found["rate"][4:6] == [(29, 0.1), (30, 3.0)]


def test_of_a_loss_that_was_saved_as_a_tensor_the_steps_near_are_read(tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        for step in range(40):
            with hook.step():
                hook.record("loss", np.float32(step))
    found = scalars_near(open_run(tmp_path / "run"), 20)
    assert found == {"loss": [(step, float(step)) for step in range(15, 26)]}


def test_the_answer_is_below_two_thousand_tokens_however_large_the_run_is(tmp_path):
    run = MadeRun(tmp_path / "large", collections=WEIGHTS)
    for step in range(6):
        gradients = {
            f"gradient/model.layers.{layer}.self_attention.query_projection.weight": np.ones(2) * 10.0**step
            for layer in range(300)
        }
        run.save(step, {"loss": np.array(1.0), **gradients})
    run.end()
    answer = around_answer(Opened("large", open_run(tmp_path / "large")), 3)
    assert tokens(text_of(answer)) < 2000
    assert 5 <= len(answer["tensors"]) < 40
    assert answer["cut"] == [f"tensors: {len(answer['tensors'])} of 300"]


@pytest.mark.parametrize(
    ("steps", "step", "before", "after"),
    [
        ([0, 10], 0, (0,), (10,)),
        ([0, 10], 10, (0,), (10,)),
        ([0, 10], 99, (0,), (10,)),
        ([7], 0, (), (7,)),
        ([7], 99, (), (7,)),
        ([], 5, (), ()),
        (list(range(10)), 5, (2, 3, 4), (5, 6, 7)),
        (list(range(10)), 1, (0,), (1, 2, 3)),
    ],
)
def test_a_window_has_three_steps_on_each_side_if_there_are_so_many(steps, step, before, after):
    assert window_of(steps, step) == (before, after)


@pytest.mark.parametrize(
    ("before", "after", "non_finite", "size"),
    [
        (1.0, 4.0, 0, math.log(4)),
        (4.0, 1.0, 0, math.log(4)),
        (1.0, 4.0, 2, math.inf),
        (0.0, 4.0, 0, math.inf),
        (1.0, 0.0, 0, math.inf),
        (None, 4.0, 0, math.inf),
        (1.0, None, 0, math.inf),
    ],
)
def test_a_change_has_a_size_and_is_infinite_from_or_to_nothing(before, after, non_finite, size):
    change = ChangedTensor("gradients", "w", before, after, 7, non_finite)
    assert change.size == pytest.approx(size)
    answer = {"kind": "gradients", "tensor": "w", "at": 7, "rms": [before, after]}
    if before and after:
        answer["times"] = after / before
    if non_finite:
        answer["non_finite"] = non_finite
    assert change.to_dict() == answer


def changes(tmp_path, rows, step):
    """The changes of one gradient whose values at each step are given."""
    run = MadeRun(tmp_path / "run", collections=WEIGHTS)
    for at, values in enumerate(rows):
        run.save(at, {"loss": np.array(1.0), **({} if values is None else {"gradient/w": np.array(values)})})
    run.end()
    trial = open_run(tmp_path / "run")
    return [(each.before, each.after, each.step) for each in changed_tensors(trial, window_at(trial, step))]


NAN = [np.nan, np.nan]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([[1.0], [1.0], [1.49]], []),
        ([[1.0], [1.0], [1.5]], [(1.0, 1.5, 2)]),
        ([[1.0], [1.0], [1 / 1.49]], []),
        ([[1.5], [1.5], [1.0]], [(1.5, 1.0, 2)]),
        ([[0.0], [0.0], [0.0]], []),
        ([[0.0], [0.0], [1e-6]], [(0.0, pytest.approx(1e-6), 2)]),
        ([[2.0], [2.0], [0.0]], [(2.0, 0.0, 2)]),
        ([[1.0], [7.0], [4.0]], []),
        ([[1.0], [1.0], [4.0], [9.0], [2.0]], [(1.0, 9.0, 3)]),
        ([[1.0], [1.0], [9.0], [4.0], [9.0]], [(1.0, 9.0, 2)]),
        ([NAN, NAN, NAN], []),
        ([NAN, NAN, [1.0]], []),
        ([[1.0], [1.0], NAN], [(1.0, None, 2)]),
        ([[1.0], NAN, [4.0]], [(1.0, 4.0, 2)]),
        ([None, None, [4.0]], []),
        ([[1.0], None, [4.0]], [(1.0, 4.0, 2)]),
        ([None, [1.0], [4.0]], [(1.0, 4.0, 2)]),
    ],
)
def test_a_tensor_has_changed_by_half_or_more_of_what_it_was(rows, found, tmp_path):
    assert changes(tmp_path, rows, 2) == found


def test_what_a_tensor_usually_was_is_the_median_of_the_steps_before(tmp_path):
    assert changes(tmp_path, [[1.0], [5.0], [2.0], [8.0]], 3) == [(2.0, 8.0, 3)]


def test_nothing_has_changed_in_a_run_of_one_step(tmp_path):
    assert changes(tmp_path, [[1.0]], 0) == []


def test_the_larger_change_comes_first_and_what_broke_earlier_before_what_broke_later(tmp_path):
    run = MadeRun(tmp_path / "run", collections=WEIGHTS)
    for step in range(5):
        later = step >= 3
        run.save(
            step,
            {
                "loss": np.array(1.0),
                "gradient/late": np.array([np.nan if step >= 4 else 1.0, 1.0]),
                "gradient/early": np.array([np.nan if later else 1.0, 1.0]),
                "gradient/much": np.array([0.01 if later else 1.0]),
                "gradient/some": np.array([10.0 if later else 1.0]),
            },
        )
    run.end()
    trial = open_run(tmp_path / "run")
    found = [each.tensor.partition("/")[2] for each in changed_tensors(trial, window_at(trial, 3))]
    assert found == ["early", "late", "much", "some"]


def test_a_run_of_nothing_has_no_steps_to_compare(tmp_path):
    MadeRun(tmp_path / "run", collections=WEIGHTS).end()
    with pytest.raises(SMDebugValueError, match="Nothing was saved yet"):
        window_at(open_run(tmp_path / "run"), 0)


class RunOfFacts:
    """A trial whose facts are given, by step."""

    def __init__(self, *facts):
        self.observations = self
        self._facts = facts

    def judged(self, step):
        if self._facts[step] is None:
            raise SMDebugError("It is damaged")
        return SimpleNamespace(facts=self._facts[step])


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ([{"a": 1}, {"a": 1}, {"a": 2}], [("a", 1, 2)]),
        ([{"a": 1}, {"a": 1}, {"a": 1}], []),
        ([{"a": 3}, {"a": 1}, {"a": 2}], []),
        ([{"b": 1}, {"a": 1}, {"a": 2}], []),
        ([{"a": 1}, {"b": 1}, {"a": 2}], []),
        ([{"a": 1}, {"a": 1}, {"b": 2}], []),
        ([{"layout": 1}, {"layout": 1}, {"layout": 2}], []),
        ([{"a": 1}, {"a": 1}, None], []),
        ([None, {"a": 1}, {"a": 2}], []),
        ([{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 3}], [("a", 1, 2), ("b", 1, 3)]),
    ],
)
def test_facts_that_were_the_same_before_and_differ_at_the_step_have_changed(facts, found):
    assert changed_facts(RunOfFacts(*facts), Window((0, 1), (2,))) == found


def test_one_step_before_says_nothing_of_what_is_usual():
    trial = RunOfFacts({"a": 1}, {"a": 2})
    assert changed_facts(trial, Window((0,), (1,))) == []
    assert changed_facts(trial, Window((), (1,))) == []
    assert changed_facts(trial, Window((0,), ())) == []
