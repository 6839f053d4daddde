"""Whatever the storage does, the training ends, with the result it would have had without a hook."""

import logging

import numpy as np
import pytest

import smdebug
from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.exceptions import SMDebugValueError
from smdebug.saving.hooks import hook as hook_module
from smdebug.saving.place import deadline
from smdebug.storage.memory import MemoryStorage
from tests.support.faulty_storage import Blocking, FaultyStorage, failing, tearing

STEPS = 5


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(hook_module.BaseHook, "write_patience", 0.2)
    monkeypatch.setattr(deadline, "ANSWERS_WITHIN", 0.2)


@pytest.fixture
def patient(monkeypatch, _impatient):
    """Let a busy machine stall a thread without the hook giving up."""
    monkeypatch.setattr(hook_module.BaseHook, "write_patience", 30)
    monkeypatch.setattr(deadline, "ANSWERS_WITHIN", 30)


@pytest.fixture
def log_records():
    """The messages of the logger, the most severe first."""
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("smdebug")
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def train(hook=None):
    """A small regression; the weights it ends with."""
    random = np.random.default_rng(5)
    weights = random.normal(size=(20, 3))
    inputs, target = random.normal(size=(50, 20)), random.normal(size=(50, 3))
    for _ in range(STEPS):
        if hook is not None:
            hook.step(modes.TRAIN)
        error = inputs @ weights - target
        gradient = inputs.T @ error / len(inputs)
        if hook is not None:
            hook.record_all({"loss": (error**2).mean(), "gradient/w": gradient, "weight": weights})
            hook.save_scalar("speed", 1.0)
        weights -= 0.1 * gradient
    if hook is not None:
        hook.close()
    return weights


def test_the_environment_sets_the_patience_and_the_size_of_the_queue(monkeypatch, log_records):
    monkeypatch.setattr(hook_module.BaseHook, "write_patience", 3600)
    monkeypatch.setenv("SMDEBUG_WRITE_PATIENCE_SECONDS", "0.1")
    monkeypatch.setenv("SMDEBUG_WRITE_QUEUE_MB", "0.001")
    hang = Blocking()
    hook = hook_at(FaultyStorage.from_call(2, hang))
    train(hook)
    hang.release()
    assert any("no progress for 0.1 s" in record.getMessage() for record in log_records)
    assert hook.recorder.run.writer.background._max_bytes == 1048
    for wrong in ("soon", "-1"):
        monkeypatch.setenv("SMDEBUG_WRITE_PATIENCE_SECONDS", wrong)
        with pytest.raises(SMDebugValueError, match="SMDEBUG_WRITE_PATIENCE_SECONDS"):
            hook_at(MemoryStorage())


def hook_at(storage, **settings):
    return smdebug.Hook(
        storage,
        include_collections=["weights", "gradients"],
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(["min"], save_raw_tensor=True),
        export_tensorboard=True,
        **settings,
    )


def calls_of_a_training():
    storage = FaultyStorage()
    train(hook_at(storage))
    return len(storage.calls)


ALONE = train()
CALLS = calls_of_a_training()


@pytest.mark.parametrize("at", range(CALLS))
@pytest.mark.parametrize("fault", [failing(), tearing, failing(MemoryError("none left"))])
@pytest.mark.usefixtures("patient")
def test_one_call_that_fails_costs_at_most_its_step(at, fault, log_records):
    storage = FaultyStorage.at_call(at, fault)
    np.testing.assert_array_equal(train(hook_at(storage)), ALONE)
    written = list(storage.list("index/"))
    assert len(written) >= STEPS - 1
    assert storage.exists("training_job_end.ts") or ("write", "training_job_end.ts") in storage.calls


@pytest.mark.parametrize("at", range(0, CALLS, 3))
def test_a_storage_that_fails_for_good_is_reported_once(at, log_records):
    storage = FaultyStorage.from_call(at, failing())
    np.testing.assert_array_equal(train(hook_at(storage)), ALONE)
    loud = [record.getMessage() for record in log_records if record.levelno >= logging.ERROR]
    about_steps = [message for message in loud if "TensorBoard" not in message]
    lost = STEPS - len(list(storage.list("index/")))
    assert len(about_steps) == (1 if lost else 0)


@pytest.mark.parametrize("at", [0, 1, 2, 5, 9])
def test_a_storage_that_hangs_does_not_hang_the_training(at, log_records):
    hang = Blocking()
    storage = FaultyStorage.from_call(at, hang)
    np.testing.assert_array_equal(train(hook_at(storage)), ALONE)
    assert [record for record in log_records if record.levelno >= logging.WARNING]
    hang.release()


@pytest.mark.usefixtures("patient")
def test_the_training_continues_without_permission_to_read(log_records):
    class Closed(FaultyStorage):
        def exists(self, key):
            failing()()

        def read(self, key, span=None):
            failing()()

    storage = Closed()
    np.testing.assert_array_equal(train(hook_at(storage)), ALONE)
    assert len(list(storage.list("index/"))) == STEPS


def test_running_out_of_memory_while_copying_turns_the_hook_off(monkeypatch, log_records):
    def no_memory(*args, **kwargs):
        raise MemoryError("none left")

    monkeypatch.setattr("smdebug.saving.recording.open_step.OpenStep.record", no_memory)
    np.testing.assert_array_equal(train(hook_at(FaultyStorage())), ALONE)
    assert sum("no longer saves anything" in record.getMessage() for record in log_records) == 1


def test_what_is_wrong_with_a_place_is_reported_where_it_begins_and_where_it_ends(
    tmp_path, log_records, patient
):
    (tmp_path / "file").touch()
    for _ in range(2):  # a second hook says it again
        log_records.clear()
        alone, watched = train(), train(smdebug.Hook(tmp_path / "file" / "run"))
        assert np.array_equal(alone, watched)
        reasons = [record.getMessage() for record in log_records if "part of the path" in record.getMessage()]
        at_first, first_step, at_the_end = (
            reason for reason in reasons if record_level(log_records, reason) > logging.DEBUG
        )
        assert "could not be claimed" in at_first
        assert "could not write step 0" in first_step
        assert "wrote 0 steps" in at_the_end


def record_level(log_records, message):
    return next(record.levelno for record in log_records if record.getMessage() == message)
