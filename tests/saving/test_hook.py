"""The hook, driven as a training loop drives it, and the run it leaves behind."""

import copy
import json
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import smdebug
from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.config.collection import Collection
from smdebug.exceptions import (
    InvalidCollectionConfiguration,
    RunEnded,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.files.names import END_MARKER
from smdebug.saving.hook import BaseHook, CallbackHook
from smdebug.saving.step_clock import StepClock
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial

EVERY_STEP = SaveConfig(save_interval=1)


@pytest.fixture
def out_dir(tmp_path):
    return tmp_path / "run"


def index_of(out_dir, step, worker="worker_0"):
    return json.loads((out_dir / f"index/000000000/{step:012}_{worker}.json").read_text())


def names_at(out_dir, step, worker="worker_0"):
    return [entry["tensorname"] for entry in index_of(out_dir, step, worker)["tensor_payload"]]


def saved_steps(out_dir):
    return sorted(int(path.name[:12]) for path in (out_dir / "index").glob("*/*.json"))


def collections_of(out_dir, worker="worker_0"):
    return json.loads((out_dir / f"collections/000000000/{worker}_collections.json").read_text())


def has_ended(out_dir):
    return (out_dir / END_MARKER).exists()


class Deed(NamedTuple):
    """What a training does around one of its steps."""

    mode: smdebug.modes | None
    sets_mode: bool
    looks: bool
    saves_scalar: bool
    ends: bool


deeds = st.builds(
    Deed,
    st.sampled_from([None, modes.TRAIN, modes.EVAL]),
    *(st.booleans() for _ in range(4)),
)


@given(st.lists(deeds, max_size=40))
def test_steps_at_which_nothing_is_due_are_counted_like_all_others(done):
    schedule = SaveConfig(
        {
            modes.TRAIN: SaveConfigMode(7),
            modes.EVAL: SaveConfigMode(4, 3),
            modes.GLOBAL: SaveConfigMode(5),
        }
    )
    hook = smdebug.Hook(storage := MemoryStorage(), save_config=schedule)
    clock, expected = StepClock(), {}
    for mode, sets_mode, looks, saves_scalar, ends in done:
        if sets_mode and mode is not None:
            hook.set_mode(mode)
            hook.begin_step()
        else:
            hook.begin_step(mode)
        clock = clock.in_mode(mode or clock.mode).next()
        hook.record("loss", float(clock.step))
        if schedule.should_save_step(clock.mode, clock.mode_step):
            expected[clock.step] = ["loss"]
        if saves_scalar:
            hook.save_scalar("seen", clock.step)
            expected[clock.step] = [*expected.get(clock.step, []), "scalar/seen"]
        if looks:
            assert (hook.step, hook.mode, hook.mode_steps) == (
                *(clock.step, clock.mode),
                clock.mode_steps,
            )
        if ends:
            hook.end_step()
    hook.close()
    if not expected:
        return
    trial = create_trial(storage)
    assert trial.steps() == sorted(expected)
    for step, names in expected.items():
        assert set(trial.tensor_names(step=step)) == set(names)
        assert trial.tensor(names[0]).value(step) == step


def test_nobody_complains_of_what_is_offered_while_nothing_is_due(out_dir, caplog):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=5)) as hook:
        for _ in range(5):
            with hook.step():
                hook.record("loss", 1.0)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_run_saved_by_any_loop_is_read_back(out_dir):
    weights = np.arange(6.0).reshape(2, 3)
    with smdebug.Hook(
        out_dir, include_collections=["weights"], save_config=SaveConfig(save_interval=2)
    ) as hook:
        for step in range(5):
            with hook.step(modes.TRAIN):
                hook.record("loss", 1 / (step + 1))
                hook.record_all({"layer/weight": weights, "gradient/layer": weights})
            weights += 1

    trial = create_trial(str(out_dir))
    assert trial.steps(mode=modes.TRAIN) == [0, 2, 4]
    assert trial.tensor_names() == ["layer/weight", "loss"]
    assert trial.tensor("loss").value(4, mode=modes.TRAIN) == [0.2]
    first = trial.tensor("layer/weight").value(2, mode=modes.TRAIN)
    np.testing.assert_array_equal(first, np.arange(6.0).reshape(2, 3) + 2)
    assert trial.loaded_all_steps


def test_a_recorded_array_may_be_changed_at_once(out_dir):
    values = np.zeros(1000)
    with smdebug.Hook(out_dir, save_all=True, save_config=EVERY_STEP) as hook:
        for step in range(20):
            values[:] = step
            with hook.step():
                hook.record("values", values)
                values[:] = -1
    trial = create_trial(str(out_dir))
    assert all((trial.tensor("values").value(step) == step).all() for step in range(20))


class Untouchable:
    """Fails whoever looks inside."""

    @property
    def __array__(self):
        raise AssertionError("nobody wants this value")


def test_what_nobody_wants_is_not_even_looked_at(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        with hook.step():
            assert hook.wants("loss")
            assert not hook.wants("weight")
            hook.record("weight", Untouchable())
        with hook.step():
            assert not hook.wants("loss")
            hook.record_all({"loss": Untouchable()})
        assert not hook.wants("loss")


def test_modes_count_their_own_steps(out_dir):
    with smdebug.Hook(out_dir, save_config=EVERY_STEP) as hook:
        assert (hook.step, hook.mode, hook.mode_steps) == (-1, modes.GLOBAL, {modes.GLOBAL: -1})
        for mode in (modes.TRAIN, modes.TRAIN, modes.EVAL, modes.TRAIN):
            with hook.step(mode):
                hook.record("loss", 1.0)
        hook.set_mode(modes.PREDICT)
        assert hook.mode is modes.PREDICT
        assert hook.step == 3
        assert hook.mode_steps == {
            modes.TRAIN: 2,
            modes.EVAL: 0,
            modes.GLOBAL: 3,
            modes.PREDICT: -1,
        }
    meta = index_of(out_dir, 3)["meta"]
    assert (meta["mode"], meta["mode_step"]) == ("TRAIN", 2)


def test_a_mode_is_a_mode(out_dir):
    with pytest.raises(SMDebugValueError, match=r"modes\.TRAIN"):
        smdebug.Hook(out_dir).set_mode("TRAIN")


def test_the_number_of_a_step_can_be_kept_without_the_hook(out_dir):
    hook = smdebug.Hook(out_dir)
    hook.step()
    kept = pickle.loads(pickle.dumps({"step": hook.step}))
    assert kept == {"step": 0}
    assert type(kept["step"]) is int
    assert type(copy.deepcopy(hook.step)) is int
    assert hook.step + 1 == 1
    hook.close()


@pytest.mark.parametrize("worker", ["", "../x", "a/b", "_device", "a b", 1.5, None])
def test_a_worker_is_a_rank_or_a_name(out_dir, worker):
    with pytest.raises(SMDebugValueError, match="worker"):
        smdebug.Hook(out_dir, worker=worker)


def test_steps_may_begin_without_a_block(out_dir):
    hook = smdebug.Hook(out_dir, save_config=EVERY_STEP)
    for step in range(3):
        hook.step(modes.TRAIN)
        hook.record("loss", float(step))
    hook.close()
    assert saved_steps(out_dir) == [0, 1, 2]


# Scalars and tensors of the user's own ----------------------------------------------------------


def test_a_scalar_is_saved_at_its_own_step_whatever_the_save_config_says(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=10)) as hook:
        for step in range(4):
            with hook.step(modes.TRAIN):
                if step == 2:
                    hook.save_scalar("speed", 7, timestamp=1600000000)
    trial = create_trial(str(out_dir))
    assert trial.tensor("scalar/speed").steps() == [2]
    assert trial.tensor("scalar/speed").value(2) == [7]
    assert not any(
        "scalar/speed" in c["tensor_names"] for c in collections_of(out_dir)["collections"].values()
    )


def test_a_scalar_saved_between_steps_belongs_to_the_step_before(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        hook.save_scalar("before", 0)
        for _ in range(2):
            with hook.step(modes.EVAL):
                hook.record("loss", 1.0)
        hook.set_mode(modes.TRAIN)
        hook.save_scalar("after an unsaved step", 1)
        with hook.step():
            hook.record("loss", 2.0)
        hook.save_scalar("after a saved step", 2)
        hook.save_tensor("tensor after a saved step", [1, 2])

    assert names_at(out_dir, 0) == ["scalar/before", "loss"]
    assert names_at(out_dir, 1) == ["scalar/after an unsaved step"]
    assert index_of(out_dir, 1)["meta"]["mode"] == "EVAL"
    assert names_at(out_dir, 2) == [
        "loss",
        "scalar/after a saved step",
        "tensor after a saved step",
    ]
    assert saved_steps(out_dir) == [0, 1, 2]
    trial = create_trial(str(out_dir))
    assert trial.tensor("loss").value(2) == [2.0]
    assert trial.tensor("scalar/after a saved step").value(0, mode=modes.TRAIN) == [2]
    assert trial.tensor("tensor after a saved step").value(2).tolist() == [1, 2]


@pytest.mark.parametrize("wrong", [[1, 2], "text", "1", 1j, object(), np.zeros(0), None])
def test_a_scalar_is_one_number(out_dir, wrong):
    with smdebug.Hook(out_dir) as hook, hook.step(), pytest.raises(SMDebugTypeError, match="speed"):
        hook.save_scalar("speed", wrong)


def test_a_tensor_of_ones_own_goes_to_every_collection_named(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=5)) as hook:
        for step in range(3):
            with hook.step():
                if step == 1:
                    hook.save_tensor(
                        "mine", np.ones(2), ["weights", "new", hook.get_collection("biases")]
                    )
                    hook.save_tensor("other", 3.5)
    assert names_at(out_dir, 1) == ["mine", "other"]
    members = {n: c["tensor_names"] for n, c in collections_of(out_dir)["collections"].items()}
    assert members["weights"] == members["new"] == members["biases"] == ["mine"]
    assert members["default"] == ["other"]


def test_a_tensor_of_ones_own_is_written_raw_where_the_collection_wants_reductions(out_dir):
    with smdebug.Hook(out_dir, reduction_config=ReductionConfig(["min"])) as hook, hook.step():
        hook.save_tensor("mine", np.ones(2), "weights")
    assert names_at(out_dir, 0) == ["mine"]


def test_what_cannot_be_saved_is_left_out_with_a_warning(out_dir, capsys):
    with smdebug.Hook(out_dir, save_all=True) as hook, hook.step():
        hook.save_tensor("odd", object())
        hook.record("other", object())
        hook.record("other", object())
        hook.record("object array", np.array([object()]))
        hook.record("dates", np.array(["2026-01-01"], dtype="datetime64[D]"))
        hook.record("records", np.zeros(2, dtype=[("a", "f4")]))
        hook.record("good", 1)
    output = capsys.readouterr().out
    assert output.count("Tensor odd is not saved") == 1
    assert output.count("Tensor other is not saved") == 1
    assert names_at(out_dir, 0) == ["good"]


def test_recording_outside_of_a_step_is_pointed_out(out_dir, capsys):
    with smdebug.Hook(out_dir) as hook:
        hook.record("loss", 1.0)
    assert "no step runs" in capsys.readouterr().out


def test_empty_tensors_are_not_written_but_belong_to_their_collections(out_dir):
    with smdebug.Hook(out_dir) as hook, hook.step():
        hook.record("loss", np.zeros(0))
        hook.record("my_loss", 1.0)
    assert names_at(out_dir, 0) == ["my_loss"]
    assert collections_of(out_dir)["collections"]["losses"]["tensor_names"] == ["loss", "my_loss"]


# What is saved ----------------------------------------------------------------------------------


def test_reductions_are_saved_under_their_names(out_dir):
    values = np.array([[3.0, -4.0], [0.0, 0.0]])
    wanted = ReductionConfig(["min", "median"], ["mean"], ["l1", "l2"], save_shape=True)
    with (
        smdebug.Hook(out_dir, include_collections=["weights"], reduction_config=wanted) as hook,
        hook.step(),
    ):
        hook.record("weight:0", values)
        values[:] = 0
    assert names_at(out_dir, 0) == [
        f"smdebug/reductions/{name}/weight" for name in ("min", "median", "l1", "l2", "abs_mean")
    ]
    assert index_of(out_dir, 0)["shape_payload"] == [
        {"tensorname": "weight:0", "originalname": "weight:0", "shape": [2, 2]}
    ]
    tensor = create_trial(str(out_dir)).tensor("weight")
    assert tensor.reduction_value(0, "l2") == 5
    assert tensor.reduction_value(0, "mean", abs=True) == 1.75


def test_large_tensors_are_reduced_without_a_copy(out_dir, monkeypatch):
    monkeypatch.setattr("smdebug.saving.open_step.COPIED_FOR_REDUCTIONS", 100)
    values = np.full(1000, 2.0)
    wanted = ReductionConfig(["max", "mean"])
    with (
        smdebug.Hook(out_dir, include_collections=["weights"], reduction_config=wanted) as hook,
        hook.step(),
    ):
        hook.record("weight", values)
        assert hook.writer.size < 1000
        values[:] = 0
    assert create_trial(str(out_dir)).tensor("weight").reduction_value(0, "max") == 2


def test_value_and_shape_can_be_saved_together(out_dir):
    wanted = ReductionConfig(save_raw_tensor=True, save_shape=True)
    with (
        smdebug.Hook(out_dir, include_collections=["weights"], reduction_config=wanted) as hook,
        hook.step(),
    ):
        hook.record("weight", np.ones((2, 3)))
    tensor = create_trial(str(out_dir)).tensor("weight")
    assert tensor.value(0).shape == (2, 3)
    assert tensor.shape(0) == (2, 3)


def test_collections_may_be_configured_until_the_first_step(out_dir):
    with smdebug.Hook(out_dir, include_collections=["mine"]) as hook:
        mine = hook.get_collection("mine")
        mine.include("^my_")
        mine.save_config = SaveConfig(save_interval=2)
        hook.add_collection(Collection("losses", ["never"]))
        for _ in range(3):
            with hook.step():
                hook.record_all({"my_tensor": 1, "loss": 2})
    assert saved_steps(out_dir) == [0, 2]
    assert names_at(out_dir, 0) == ["my_tensor"]
    with pytest.raises(SMDebugTypeError):
        hook.add_collection("x")


def test_include_regex_saves_what_it_matches(out_dir):
    with smdebug.Hook(out_dir, include_regex=["relu"]) as hook, hook.step():
        hook.record_all({"relu_1": 1.0, "tanh": 1.0})
    assert names_at(out_dir, 0) == ["relu_1"]
    assert collections_of(out_dir)["collections"]["default"]["tensor_names"] == ["relu_1"]


def test_save_all_saves_all(out_dir):
    with smdebug.Hook(out_dir, save_all=True) as hook, hook.step():
        hook.record_all({"a": 1, "b": 2})
    assert names_at(out_dir, 0) == ["a", "b"]


def test_a_collection_without_tensors_is_refused_when_the_first_step_begins(out_dir):
    hook = smdebug.Hook(out_dir)
    hook.get_collection("mine")
    with pytest.raises(InvalidCollectionConfiguration, match="mine"):
        hook.step()
    hook.get_collection("mine").include("x")
    with hook.step():
        hook.record("loss", 1.0)
    hook.close()


def test_asking_whether_something_is_saved(out_dir):
    with smdebug.Hook(out_dir, save_config=SaveConfig(save_interval=2)) as hook:
        assert not hook.should_save_tensor_or_collection("loss", "losses")
        with hook.step():
            assert hook.should_save_tensor_or_collection("x", CollectionKeys.LOSSES)
            assert hook.should_save_tensor_or_collection("loss", "nothing")
            assert not hook.should_save_tensor_or_collection("x", "nothing")
        with hook.step():
            assert not hook.should_save_tensor_or_collection("loss", "losses")


def test_whether_a_hook_was_configured_at_all(out_dir):
    assert smdebug.Hook(out_dir).has_default_hook_configuration()
    assert not smdebug.Hook(out_dir, include_collections=["weights"]).has_default_configuration()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"reduction_config": "min"}, SMDebugTypeError),
        ({"save_config": 10}, SMDebugTypeError),
        ({"save_all": "perhaps"}, SMDebugValueError),
        ({"checksum": "md5"}, SMDebugValueError),
        ({"num_workers": 0}, SMDebugValueError),
        ({"include_collections": 3}, SMDebugValueError),
    ],
)
def test_a_wrong_configuration_is_refused_by_the_constructor(out_dir, wrong, error):
    with pytest.raises(error):
        smdebug.Hook(out_dir, **wrong)


# The files --------------------------------------------------------------------------------------


def test_index_files_say_which_attempt_wrote_them_after_which_step(out_dir):
    schedule = SaveConfig({modes.TRAIN: SaveConfigMode(3), modes.EVAL: SaveConfigMode(1)})
    with smdebug.Hook(out_dir, save_config=schedule) as hook:
        for step in range(6):
            with hook.step(modes.EVAL if step == 4 else modes.TRAIN):
                hook.record("loss", 1.0)
        run_id = hook.run_id
    metas = [index_of(out_dir, step)["meta"] for step in saved_steps(out_dir)]
    assert [meta["previous_step"] for meta in metas] == [None, 0, 3]
    assert {(meta["run_id"], meta["training_run"]) for meta in metas} == {(run_id, 0)}
    assert all(meta["saved_at"] > 1.6e9 for meta in metas)
    assert collections_of(out_dir)["_meta"] == {
        "num_workers": 1,
        "run_id": run_id,
        "training_run": 0,
    }


def test_names_learnt_later_are_in_the_collections_file_in_the_end(out_dir):
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


def test_true_checksums_can_be_asked_for(out_dir):
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


def test_a_hook_that_saw_no_step_still_tells_of_its_collections(out_dir):
    smdebug.Hook(out_dir).close()
    assert has_ended(out_dir)
    assert collections_of(out_dir)


def test_a_hook_saves_wherever_a_storage_does():
    storage = MemoryStorage("somewhere")
    with smdebug.Hook(storage) as hook, hook.step():
        hook.record("loss", 1.0)
    assert storage.exists("index/000000000/000000000000_worker_0.json")
    assert hook.out_dir == storage.location


# The end ----------------------------------------------------------------------------------------


def test_closing_twice_changes_nothing(out_dir):
    hook = smdebug.Hook(out_dir)
    hook.close()
    hook.close()
    with hook.step():
        hook.record("loss", 1.0)
        hook.save_scalar("x", 1.0)
    assert saved_steps(out_dir) == []


def test_a_crashed_training_leaves_no_end_marker_but_the_step_it_crashed_in(out_dir):
    with pytest.raises(ZeroDivisionError), smdebug.Hook(out_dir, save_config=EVERY_STEP) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        with hook.step():
            hook.record("loss", float("nan"))
            1 / 0
    assert not has_ended(out_dir)
    assert names_at(out_dir, 1) == ["loss"]
    assert index_of(out_dir, 1)["meta"]["interrupted"] is True
    assert "interrupted" not in index_of(out_dir, 0)["meta"]


def test_leaving_with_success_is_an_end(out_dir):
    with pytest.raises(SystemExit), smdebug.Hook(out_dir):
        raise SystemExit(0)
    assert has_ended(out_dir)


def test_leaving_with_a_failure_is_not(out_dir):
    with pytest.raises(SystemExit), smdebug.Hook(out_dir):
        raise SystemExit(1)
    assert not has_ended(out_dir)


def test_sagemaker_marks_the_end_itself(out_dir, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    with smdebug.Hook(out_dir) as hook, hook.step():
        hook.record("loss", 1.0)
    assert saved_steps(out_dir) == [0]
    assert not has_ended(out_dir)


def test_a_place_with_a_finished_run_is_refused(out_dir):
    smdebug.Hook(out_dir).close()
    with pytest.raises(RunEnded, match="Choose another out_dir"):
        smdebug.Hook(out_dir)


def test_out_dir_is_required():
    with pytest.raises(RuntimeError, match="out_dir"):
        smdebug.Hook()


# Workers ----------------------------------------------------------------------------------------


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


def test_two_hooks_at_one_place_are_told(out_dir, capsys):
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


# Layers -----------------------------------------------------------------------------------------


class LayerHook(CallbackHook):
    def __init__(self, out_dir, **more):
        manager = smdebug.saving.hook.NeutralCollections(create_default=True)
        super().__init__(
            manager, ["losses"], out_dir=out_dir, save_all=True, save_config=EVERY_STEP, **more
        )


def test_layers_number_their_tensors_through_calls_and_nesting(out_dir):
    x = np.ones(2)
    with LayerHook(out_dir) as hook:
        for _ in range(2):
            with hook.step():
                hook.record_inputs("relu", (x, None, [x, (x, "no tensor")]))
                hook.record_outputs("relu", {"a": x, "b": x})
                hook.record_inputs("relu", x)
                hook.record_tensor_value("nll_loss", x)
    expected = [f"relu_input_{n}" for n in range(3)] + ["relu_output_0", "relu_output_1"]
    expected += ["relu_input_3", "nll_loss_output_0"]
    assert names_at(out_dir, 0) == names_at(out_dir, 1) == expected


def test_only_tensors_of_the_framework_count_as_tensors(out_dir):
    class Tensor:
        def __init__(self, values):
            self._values = np.asarray(values)

        def __array__(self, dtype=None, copy=None):
            return self._values

    class Parameter(Tensor):
        pass

    with LayerHook(out_dir, data_type_name="Tensor") as hook, hook.step():
        hook.record_inputs("layer", [np.ones(1), Tensor([1, 2]), Parameter([3])])
    assert names_at(out_dir, 0) == ["layer_input_0", "layer_input_1"]


def test_a_base_hook_counts_from_where_it_is_told(out_dir):
    manager = smdebug.saving.hook.NeutralCollections(create_default=True)
    hook = BaseHook(manager, ["losses"], None, 0, out_dir)
    assert hook.step == hook.init_step == 0
    hook.set_mode(modes.EVAL)
    assert hook.mode_steps == {modes.GLOBAL: 0, modes.EVAL: 0}
    hook.close()
