"""Values that are saved between two steps, added to the step before."""

import numpy as np
import pytest

import smdebug
from smdebug.saving.recording import late_tensors
from smdebug.trials import create_trial
from tests.saving.saved_files import EVERY_STEP, names_at


def trained(place, late, steps=2):
    """Save `late(hook)` after each step."""
    with smdebug.Hook(str(place), save_all=True, save_config=EVERY_STEP) as hook:
        for _ in range(steps):
            with hook.step():
                hook.record("loss", 1.0)
            hook.flush()
            late(hook)
    return create_trial(str(place))


@pytest.mark.parametrize(
    "value", [np.zeros(2, "datetime64[s]"), np.array([object()]), np.array([1, 2], object), "a\0b"]
)
def test_a_late_value_that_cannot_be_saved_costs_itself_alone(value, out_dir, log_records):
    def late(hook):
        hook.save_tensor("before", np.ones(2))
        hook.save_tensor("odd" if isinstance(value, np.ndarray) else value, value)
        hook.save_scalar("after", 0.5)

    trial = trained(out_dir, late)
    assert trial.steps() == [0, 1]
    assert not trial.missing_steps
    assert [name for name in names_at(out_dir, 1) if name in ("odd", "a\0b")] == []
    assert trial.tensor("before").value(1).tolist() == [1, 1]
    assert trial.tensor("scalar/after").value(1) == 0.5
    assert any("is not saved" in record.getMessage() for record in log_records)


@pytest.mark.parametrize("is_too_large", [False, True])
def test_a_step_too_large_to_be_written_again_stays_as_it_is(is_too_large, out_dir, monkeypatch, log_records):
    size = 8 * 5000
    monkeypatch.setattr(late_tensors, "LARGEST_REWRITTEN", size if is_too_large else size + 1000)
    with smdebug.Hook(str(out_dir), save_all=True, save_config=EVERY_STEP) as hook:
        with hook.step():
            hook.record("loss", np.zeros(5000))
        hook.flush()
        hook.save_scalar("late", 0.5)
    trial = create_trial(str(out_dir))
    assert trial.tensor_names() == (["loss"] if is_too_large else ["loss", "scalar/late"])
    assert not trial.missing_steps
    said = [record.getMessage() for record in log_records if "scalar/late" in record.getMessage()]
    assert len(said) == is_too_large


def test_late_values_of_a_step_that_saved_nothing_make_it_one(out_dir):
    with smdebug.Hook(str(out_dir), include_collections=["gradients"], save_config=EVERY_STEP) as hook:
        with hook.step():
            pass
        hook.save_tensor("mine", np.ones(2))
        with hook.step():
            hook.record("gradient/w", np.ones(2))
        hook.flush()
        hook.save_tensor("mine", np.zeros(2))
        hook.save_tensor("mine", np.full(2, 7))
    assert names_at(out_dir, 0) == ["mine"]
    trial = create_trial(str(out_dir))
    assert trial.tensor("mine").steps() == [0, 1]
    assert trial.tensor("mine").value(1).tolist() == [7, 7], "the last one counts"
    assert trial.tensor("gradient/w").value(1).tolist() == [1, 1]
