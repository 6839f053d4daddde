"""Several hooks at one place: workers, devices and attempts."""

import logging

import pytest

import smdebug
from smdebug.files.names import CLAIM
from smdebug.saving.place import claim
from smdebug.trials import create_trial
from tests.saving.saved_files import EVERY_STEP, collections_of, has_ended, index_of
from tests.support.faulty_storage import FaultyStorage, failing


def run_workers(out_dir, include_workers, names=("worker_0", "worker_1")):
    hooks = [
        smdebug.Hook(
            out_dir,
            worker=name,
            num_workers=2,
            include_workers=include_workers,
            save_config=EVERY_STEP,
        )
        for name in names
    ]
    for _ in range(2):
        for hook in hooks:
            with hook.step():
                hook.record("loss", 1.0)
    return hooks


def test_all_workers_save_if_asked_to(out_dir):
    first, second = run_workers(out_dir, "all")
    second.close()
    assert not has_ended(out_dir)
    first.close()
    assert has_ended(out_dir)
    assert first.run_id == second.run_id
    trial = create_trial(str(out_dir))
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.num_workers == 2
    assert trial.steps() == [0, 1]
    assert collections_of(out_dir, "worker_1")["_meta"]["num_workers"] == 2


def test_only_the_chief_saves_otherwise(out_dir):
    for hook in run_workers(out_dir, "one"):
        hook.close()
    trial = create_trial(str(out_dir))
    assert trial.workers() == ["worker_0"]
    assert trial.num_workers == 1
    assert has_ended(out_dir)


def test_devices_are_workers_too(out_dir):
    devices = [f"/job:worker/replica:0/task:0/device:GPU:{number}" for number in range(2)]
    for hook in reversed(run_workers(out_dir, "all", devices)):
        hook.close()
    assert create_trial(str(out_dir)).workers() == devices
    assert has_ended(out_dir)


def test_two_hooks_at_one_place_cause_a_warning(out_dir, capsys):
    first = smdebug.Hook(out_dir, save_config=EVERY_STEP)
    second = smdebug.Hook(out_dir, save_config=EVERY_STEP)
    for hook, loss in ((first, 1.0), (second, 2.0)):
        with hook.step():
            hook.record("loss", loss)
    assert "this one saves nothing" in capsys.readouterr().out
    assert (first.first_process, second.first_process) == (True, False)
    second.close()
    assert not has_ended(out_dir)
    first.close()
    assert create_trial(str(out_dir)).tensor("loss").value(0) == [1.0]


def test_saving_to_an_unfinished_run_is_another_attempt_of_it(out_dir, capsys):
    with pytest.raises(ZeroDivisionError), smdebug.Hook(out_dir) as crashed, crashed.step():
        hook_loss = 1 / 0
        crashed.record("loss", hook_loss)
    with pytest.raises(ZeroDivisionError), smdebug.Hook(out_dir) as crashed, crashed.step():
        crashed.record("loss", 1.0)
        1 / 0
    with smdebug.Hook(out_dir) as again, again.step():
        again.record("loss", 2.0)
    assert again.run_id == crashed.run_id
    assert again.training_run == crashed.training_run + 1
    assert index_of(out_dir, 0)["meta"]["training_run"] == again.training_run
    assert "unfinished run" in capsys.readouterr().out


def test_a_claim_that_cannot_be_renewed_costs_no_step(monkeypatch, log_records):
    storage = FaultyStorage(lambda number, call, key: failing() if key == CLAIM and renewing else None)
    renewing: list[bool] = []
    monkeypatch.setattr(claim, "RENEWED_EVERY", 0.0)
    with smdebug.Hook(storage, save_config=EVERY_STEP) as hook:
        for step in range(2):
            with hook.step():
                hook.record("loss", float(step))
            renewing.append(True)
    assert create_trial(storage.storage).steps() == [0, 1]
    logged = [record.getMessage() for record in log_records if record.levelno >= logging.WARNING]
    assert len([text for text in logged if "claim on" in text and "could not be renewed" in text]) == 1
    assert not [text for text in logged if "Lost" in text]
