"""What a step has changed of parameters that are arrays, as those of Keras and JAX."""

import numpy as np
import pytest

from smdebug.numbers.rows import SAMPLE_SIZE
from smdebug.saving.arrays import array_updates
from smdebug.saving.arrays.array_updates import ArrayUpdates


def test_the_change_of_each_parameter_is_returned_once():
    updates = ArrayUpdates()
    assert not updates
    before = {"w": np.array([1.0, 2.0]), "count": np.array([3]), "empty": np.zeros(0), "gone": np.ones(2)}
    updates.before_step(before)
    assert updates
    after = {"w": np.array([1.5, 1.0]), "count": np.array([4]), "empty": np.zeros(0), "new": np.ones(1)}
    assert {name: change.tolist() for name, change in updates.after_step(after)} == {"update/w": [0.5, -1.0]}
    assert not updates
    assert list(updates.after_step(after)) == []


def test_a_parameter_that_has_another_shape_has_no_update():
    updates = ArrayUpdates()
    updates.before_step({"w": np.ones(2), "v": np.ones(2)})
    assert [name for name, _ in updates.after_step({"w": np.ones(3), "v": np.ones(2)})] == ["update/v"]


@pytest.mark.parametrize(("limit", "is_sampled"), [(4000, False), (3999, True)])
def test_parameters_beyond_the_memory_for_copies_are_compared_by_a_sample(limit, is_sampled, monkeypatch):
    monkeypatch.setattr(array_updates, "MIN_BYTES", limit)
    updates = ArrayUpdates()
    assert not updates.are_sampled
    updates.before_step({"w": np.zeros(500), "other": np.zeros(10**6, int)})
    assert updates.are_sampled is is_sampled
    ((_, change),) = updates.after_step({"w": np.ones(500)})
    assert change.tolist() == [1.0] * (SAMPLE_SIZE if is_sampled else 500)


def test_short_floats_of_other_libraries_have_updates_too():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (ml_dtypes.bfloat16, np.float16):
        updates = ArrayUpdates()
        updates.before_step({"w": np.array([1, 2], dtype)})
        assert len(list(updates.after_step({"w": np.array([2, 2], dtype)}))) == 1
