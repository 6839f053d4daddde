"""The files that the hook writes."""

import smdebug
from smdebug import SaveConfig, SaveConfigMode, modes
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from tests.saving.saved_files import EVERY_STEP, collections_of, has_ended, index_of, saved_steps


def test_index_files_name_their_attempt_and_the_previous_step(out_dir):
    schedule = SaveConfig({modes.TRAIN: SaveConfigMode(3), modes.EVAL: SaveConfigMode(1)})
    with smdebug.Hook(out_dir, save_config=schedule) as hook:
        for step in range(6):
            with hook.step(modes.EVAL if step == 4 else modes.TRAIN):
                hook.record("loss", 1.0)
        run_id = hook.run_id
    metas = [index_of(out_dir, step)["meta"] for step in saved_steps(out_dir)]
    assert [meta["previous_step"] for meta in metas] == [None, 0, 3]
    assert [meta["steps_before"] for meta in metas] == [0, 1, 2]
    assert {(meta["run_id"], meta["training_run"]) for meta in metas} == {(run_id, 0)}
    assert all(meta["saved_at"] > 1.6e9 for meta in metas)
    meta = collections_of(out_dir)["_meta"]
    assert meta.pop("file_crc32c") >= 0
    assert meta == {
        "num_workers": 1,
        "run_id": run_id,
        "training_run": 0,
        "closed": True,
        "last_step": 4,
        "steps_written": 3,
    }


def test_later_names_are_in_the_final_collections_file(out_dir):
    with smdebug.Hook(out_dir, save_config=EVERY_STEP) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        hook.flush()
        assert collections_of(out_dir)["collections"]["losses"]["tensor_names"] == ["loss"]
        with hook.step():
            hook.record("late_loss", 1.0)
    assert collections_of(out_dir)["collections"]["losses"]["tensor_names"] == ["late_loss", "loss"]


def test_the_collections_file_can_be_written_at_any_time(out_dir):
    hook = smdebug.Hook(out_dir, include_collections=["weights"])
    hook.export_collections()
    assert "weights" in collections_of(out_dir)["collections"]
    hook.close()


def test_true_checksums_can_be_requested(out_dir):
    with smdebug.Hook(out_dir, checksum="tfrecord") as hook, hook.step():
        hook.record("loss", 1.0)
    (events,) = out_dir.glob("events/*/*.tfevents")
    assert events.read_bytes()[-4:] != bytes.fromhex("b3c02d06")
    assert create_trial(str(out_dir)).tensor("loss").value(0) == [1.0]


def test_a_dry_run_writes_no_tensors(out_dir):
    with smdebug.Hook(out_dir, dry_run=True, save_all=True) as hook, hook.step():
        hook.record("loss", 1.0)
        hook.save_scalar("x", 1)
    assert not (out_dir / "events").exists()
    assert not (out_dir / "index").exists()
    assert has_ended(out_dir)
    assert collections_of(out_dir)


def test_a_hook_without_steps_still_writes_its_collections(out_dir):
    smdebug.Hook(out_dir).close()
    assert has_ended(out_dir)
    assert collections_of(out_dir)


def test_a_hook_saves_wherever_a_storage_does():
    storage = MemoryStorage("somewhere")
    with smdebug.Hook(storage) as hook, hook.step():
        hook.record("loss", 1.0)
    assert storage.exists("index/000000000/000000000000_worker_0.json")
    assert hook.out_dir == storage.location
