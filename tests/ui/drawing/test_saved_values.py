"""The charts of a run that saved tensors: their budget, and the sentence about what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug
from smdebug.ui.drawing import charts


@pytest.fixture
def run(tmp_path):
    """A run of 4 steps, each with a tensor of 400 bytes."""
    every_step = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(tmp_path / "a", save_all=True, save_config=every_step) as hook:
        for step in range(4):
            with hook.step():
                hook.record("weight", np.full(100, step, np.float32))
    return tmp_path


def test_a_run_within_the_budget_is_shown_whole(serve, run):
    client = serve(run)
    answer = client.get(f"/api/run/{client.run('a')}")
    assert [kind["name"] for kind in answer["kinds"]] == ["weights"]
    assert answer["notes"] == []


def test_the_page_says_from_which_step_on_values_are_left_out(serve, run, monkeypatch):
    monkeypatch.setattr(charts, "MOST_BYTES", 700)
    client = serve(run)
    answer = client.get(f"/api/run/{client.run('a')}")
    assert answer["notes"] == [
        "Some saved values are left out of the heat maps, from step 2 on: "
        "the page reads at most 1 GB of them."
    ]
