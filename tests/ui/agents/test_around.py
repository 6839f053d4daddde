"""What changed near a step, of runs whose change is known."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugValueError
from smdebug.runs import open_run
from smdebug.ui.agents.answers import around_answer
from smdebug.ui.agents.around import changed_tensors, scalars_near, window_at, window_of
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
