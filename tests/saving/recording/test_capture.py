"""Values that a training records: what is saved of them, measured, or left out with one warning."""

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.saving.arrays.adapter import Caveat, FrameworkAdapter
from smdebug.trials import create_trial
from tests.saving.saved_files import EVERY_STEP, collections_of, names_at


class Broken:
    """A value whose conversion fails."""

    shape = (2,)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("on a device that is gone")


def warnings(log_records):
    said = [record.getMessage() for record in log_records if record.levelname != "INFO"]
    return [text for text in said if not text.startswith("No loss was seen")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Broken(), "Tensor odd is not saved: on a device that is gone"),
        (np.zeros(2, "datetime64[s]"), "Tensor odd is not saved"),
        (object(), "Tensor odd is not saved"),
    ],
)
def test_a_value_that_cannot_be_saved_is_named_once_and_the_others_are_saved(
    value, said, out_dir, log_records
):
    with smdebug.Hook(str(out_dir), save_all=True, save_config=EVERY_STEP) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("odd", value)
                hook.record("x", np.ones(2))
    assert [text for text in warnings(log_records) if text.startswith(said)] == warnings(log_records)
    assert len(warnings(log_records)) == 1
    assert names_at(out_dir, 2) == ["x"]


def test_an_empty_tensor_belongs_to_its_collections_and_has_no_value(out_dir):
    with smdebug.Hook(str(out_dir), save_all=True, save_config=EVERY_STEP) as hook, hook.step():
        hook.record("gradient/w", np.zeros((0, 3)))
        hook.record("x", np.ones(2))
    assert names_at(out_dir, 0) == ["x"]
    assert collections_of(out_dir)["collections"]["gradients"]["tensor_names"] == ["gradient/w"]


@pytest.mark.parametrize(
    ("value", "is_said"),
    [
        (np.array(["a", "b"]), True),
        (np.array([1 + 2j, 3]), True),
        (np.zeros((0, 3)), False),
        (3.5, False),
        (np.float32(3), False),
        (True, False),
        (np.ones(2), False),
    ],
)
def test_what_has_no_statistics_is_said_once_unless_there_is_nothing_to_measure(
    value, is_said, out_dir, log_records
):
    with smdebug.Hook(str(out_dir)) as hook:
        for name in ("a_output_0", "b_output_0"):
            with hook.step(modes.TRAIN):
                hook.record(name, value)
                hook.record("loss", 1.0)
    said = [text for text in warnings(log_records) if "is not measured" in text]
    assert len(said) == is_said
    assert create_trial(str(out_dir)).steps() == [0, 1]


def test_a_value_that_breaks_while_it_is_measured_is_named(out_dir, log_records):
    with smdebug.Hook(str(out_dir)) as hook, hook.step(modes.TRAIN):
        hook.record("odd_output_0", Broken())
        hook.record("loss", 1.0)
    assert "on a device that is gone" in " ".join(warnings(log_records))
    assert "loss" in names_at(out_dir, 0)


def test_what_is_lost_of_a_value_is_said_once_for_its_kind(out_dir, log_records):
    class Lossy(FrameworkAdapter):
        """Says of sparse tensors that they are saved as dense ones."""

        def caveat(self, name, value):
            return (
                Caveat(f"{name} is saved as a dense tensor", "dense") if name.startswith("sparse") else None
            )

    class LossyHook(smdebug.Hook):
        """A hook of that framework."""

        adapter = Lossy()

    with LossyHook(str(out_dir), save_all=True, save_config=EVERY_STEP) as hook, hook.step():
        for name in ("sparse_a", "sparse_b", "x"):
            hook.record(name, np.ones(2))
    assert warnings(log_records) == ["sparse_a is saved as a dense tensor"]
    assert names_at(out_dir, 0) == ["sparse_a", "sparse_b", "x"]
