"""Resuming from the step of the checkpoint."""

import json
import os

import pytest

import smdebug
from smdebug import SaveConfig, modes
from smdebug.saving.place.resume import SavedState, StateStore


@pytest.fixture
def checkpoints(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    config = tmp_path / "checkpointconfig.json"
    config.write_text(json.dumps({"LocalPath": str(folder)}))
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    return folder


def records(checkpoints):
    return json.loads((checkpoints / "metadata.json").read_text())


def train(out_dir, steps, checkpoints=None, at=(), mode=modes.TRAIN):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        for _ in range(steps):
            with hook.step(mode):
                hook.record("loss", 1.0)
            if hook.step in at:
                (checkpoints / f"model{int(hook.step)}").write_text("weights")
    return hook


def test_the_steps_of_a_checkpoint_are_noted_beside_it(tmp_path, checkpoints):
    hook = train(tmp_path / "run", 6, checkpoints, at=[0, 2])
    assert [record.pop("latest-global-step-saved") for record in records(checkpoints)] == [0, 2]
    assert records(checkpoints)[1] == {
        "training-run": 0,
        "latest-global-step-saved": 2,
        "latest-global-step-seen": 3,
        "latest-mode-step": {"TRAIN": 3, "GLOBAL": 3},
        "run-id": hook.run_id,
    }


def test_a_resumed_training_continues_the_count(tmp_path, checkpoints):
    first = train(tmp_path / "run", 6, checkpoints, at=[0, 2])
    again = smdebug.Hook(tmp_path / "again", save_config=SaveConfig(save_interval=2))
    assert (again.step, again.init_step, again.training_run) == (3, 3, 1)
    assert again.mode is modes.GLOBAL
    assert again.mode_steps == {modes.GLOBAL: 3, modes.TRAIN: 3}
    with again.step(modes.TRAIN):
        again.record("loss", 1.0)
    with again.step(modes.EVAL):
        again.record("loss", 1.0)
    again.close()
    assert again.mode_steps == {modes.GLOBAL: 5, modes.TRAIN: 4, modes.EVAL: 0}
    index = tmp_path / "again/index/000000000/000000000004_worker_0.json"
    meta = json.loads(index.read_text())["meta"]
    assert (meta["mode_step"], meta["training_run"], meta["previous_step"]) == (4, 1, None)
    assert meta["run_id"] == first.run_id


def test_a_checkpoint_rewritten_at_equal_size_is_seen(checkpoints):
    model = checkpoints / "model"
    model.write_text("weights")
    store = StateStore()
    assert not store.is_checkpoint_updated()
    model.write_text("WEIGHTS")
    os.utime(model, ns=(1, 1))
    assert store.is_checkpoint_updated()
    assert not store.is_checkpoint_updated()


def test_upload_marks_and_our_own_records_are_not_checkpoints(checkpoints):
    store = StateStore()
    (checkpoints / "model.sagemaker-uploaded").write_text("")
    store.update_state(SavedState(0, 3, {modes.TRAIN: 3}).to_record(None))
    assert not store.is_checkpoint_updated()


def test_the_furthest_record_counts(checkpoints):
    store = StateStore()
    for run, step in ((0, 8), (1, 9), (0, 4)):
        store.update_state(SavedState(run, step, {modes.EVAL: 2}).to_record(2))
    assert StateStore().last_state() == SavedState(1, 9, {modes.EVAL: 2})
    assert StateStore().get_last_saved_state()["latest-global-step-seen"] == 9


@pytest.mark.parametrize("notes", ["", "{", "{}x", "[1]", '[{"training-run": 0}]', "3"])
def test_unreadable_records_are_ignored(checkpoints, notes, capsys):
    (checkpoints / "metadata.json").write_text(notes)
    assert StateStore().last_state() is None
    assert "could not be read" in capsys.readouterr().out


def test_without_a_checkpoint_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(tmp_path / "none"))
    store = StateStore()
    assert not store.is_active
    assert not store.is_checkpoint_updated()
    store.update_state({"training-run": 0})
    assert store.get_last_saved_state() is None
