"""The statistics of every tensor where it was measured last."""

import numpy as np
import pytest

import smdebug


@pytest.fixture
def numbers_of(tmp_path, serve):
    """Train with these tensors of each step, and return what the page gets of a kind."""

    def ask(kind, tensors_of, steps=3):
        with smdebug.Hook(str(tmp_path / "run")) as hook:
            for step in range(steps):
                with hook.step(smdebug.modes.TRAIN):
                    hook.record("loss", 1.0)
                    hook.record_all(tensors_of(step))
        client = serve(tmp_path / "run")
        return client.get(f"/api/run/{client.run()}/numbers?kind={kind}")

    return ask


def test_each_tensor_has_its_shape_and_the_numbers_of_its_last_step(numbers_of):
    found = numbers_of(
        "outputs",
        lambda step: {
            "a_output_0": np.full((4, 2), step, np.float32),
            **({"b_output_0": np.full(3, -1.0)} if step == 1 else {}),
        },
    )
    assert found["names"] == ["a_output_0", "b_output_0"]
    assert found["shapes"] == ["4 × 2", "3"]
    assert (found["first"], found["last"]) == ([2, 1], [2, 1])
    assert found["low"]["max"] == found["high"]["max"] == [2.0, -1.0]
    assert found["low"]["count"] == [8.0, 3.0]
