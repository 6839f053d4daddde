"""`smdebug compare`: where two runs diverge."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import smdebug
from tests.cli.conftest import failing_run, flip_a_bit
from tests.rules.made_runs import made_run


def test_two_runs_diverge_at_the_first_difference(ask, failing, tmp_path):
    shutil.copytree(failing, tmp_path / "same")
    assert ask("compare", failing, tmp_path / "same").code == 0
    made = {10 * at: {"loss": [2.0 - at / 10], "gradient/fc": [1.0]} for at in range(4)}
    made[20]["loss"] = [2.5]
    made_run(made, tmp_path / "other")
    made[20]["loss"] = [1.8]
    made_run({**made, 50: made[30]}, tmp_path / "longer")
    answer = ask("compare", tmp_path / "other", tmp_path / "longer", "--json")
    assert answer.code == 1
    payload = answer.json
    assert (payload["first"]["step"], payload["first"]["tensor"]) == (20, "loss")
    assert payload["first"]["largest"] == pytest.approx(0.7)
    assert payload["only_in_other"] == [50]
    assert payload["collections"]["losses"]["different"] == 1
    assert "The runs diverge at step 20, loss" in ask("compare", tmp_path / "other", tmp_path / "longer").out
    loose = ask("compare", tmp_path / "other", tmp_path / "longer", "--rtol", 1, "--json").json
    assert loose["number_different"] == 0


def test_runs_of_several_workers_are_compared_worker_by_worker(ask, tmp_path):
    failing_run(tmp_path / "one", workers=2, steps=3)
    failing_run(tmp_path / "two", workers=2, steps=3)
    payload = ask("compare", tmp_path / "one", tmp_path / "two", "--json").json
    assert (payload["is_same"], payload["compared"]) == (True, 3 * 3 * 2)


def test_what_is_damaged_is_not_the_same_as_what_is_not(ask, failing, tmp_path):
    shutil.copytree(failing, tmp_path / "whole")
    flip_a_bit(failing)
    for pair in ((failing, tmp_path / "whole"), (tmp_path / "whole", failing)):
        answer = ask("compare", *pair)
        assert (answer.code, "1 event file is damaged" in answer.err) == (3, True)
        assert "The runs are the same: 29 values at 10 steps" in answer.out


def test_a_value_and_a_reduction_are_not_called_the_same(ask, tmp_path):
    reduced = smdebug.ReductionConfig(reductions=["mean"])
    shapes = smdebug.ReductionConfig(save_shape=True)
    for name, reduction in (("whole", None), ("reduced", reduced), ("shapes", shapes)):
        options = {"include_collections": ["gradients"], "reduction_config": reduction}
        with smdebug.Hook(str(tmp_path / name), **options) as hook, hook.step():
            hook.record("gradient/fc", np.ones(3))
    answer = ask("compare", tmp_path / "whole", tmp_path / "reduced")
    assert (answer.code, "no value or reduction was saved in both runs" in answer.out) == (1, True)
    shapes_alone = ask("compare", tmp_path / "shapes", tmp_path / "shapes", "--json").json
    assert (shapes_alone["is_same"], shapes_alone["compared"]) == (True, 0)


@pytest.mark.parametrize(
    "chosen", [("--collection", "nope"), ("--tensors", "nope"), ("--rtol", "nan"), ("--atol", "-1")]
)
def test_nothing_compared_is_not_the_same(ask, failing, chosen):
    answer = ask("compare", failing, failing, *chosen)
    assert (answer.code, answer.out) == (2, "")


def test_the_first_difference_of_each_tensor_is_listed(ask, tmp_path):
    for name, factor in (("before", 1.0), ("after", 2.0)):
        steps = {at: {"loss": [1.0 * factor], "gradient/fc": [3.0 * factor**at]} for at in range(4)}
        made_run(steps, tmp_path / name)
    answer = ask("compare", tmp_path / "before", tmp_path / "after")
    listed = answer.out.partition("First difference of each tensor\n")[2].splitlines()[1:]
    assert [line.split()[:2] for line in listed] == [["0", "loss"], ["1", "gradient/fc"]]
