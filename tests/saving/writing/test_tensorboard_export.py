"""What TensorBoard itself reads of what the hook exports."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import smdebug
from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.trials import create_trial


def read(folder):
    found = EventAccumulator(str(folder), size_guidance={"histograms": 0, "scalars": 0, "tensors": 0})
    found.Reload()
    return found


def scalars(board, tag):
    if tag in board.Tags()["scalars"]:
        return [(event.step, event.value) for event in board.Scalars(tag)]
    return [(e.step, float(e.tensor_proto.float_val[0])) for e in board.Tensors(tag)]


def tags(board):
    return sorted({*board.Tags()["scalars"], *board.Tags()["histograms"], *board.Tags()["tensors"]})


@pytest.fixture
def exported(tmp_path):
    with smdebug.Hook(
        tmp_path / "run",
        export_tensorboard=True,
        include_collections=["weights"],
        save_config=SaveConfig(save_interval=2),
        reduction_config=ReductionConfig(["min"]),
    ) as hook:
        for step in range(6):
            with hook.step(modes.EVAL if step == 5 else modes.TRAIN):
                hook.record("loss", np.float32(step / 2))
                hook.record("dense/weight:0", np.arange(10) * step)
                hook.record("flag_weight", np.array([True]))
                if step == 3:
                    hook.save_scalar("speed", 7, timestamp=1600000000)
    return tmp_path / "run/tensorboard"


def test_tensorboard_reads_scalars(exported):
    board = read(exported / "TRAIN")
    assert scalars(board, "loss") == [(0, 0.0), (2, 1.0), (4, 2.0)]
    assert scalars(board, "scalar/speed") == [(3, 7.0)]
    assert scalars(read(exported / "EVAL"), "loss") == [(4, 2.5)]  # the training step that it follows


def test_steps_are_those_of_the_training_and_evaluations_take_none(tmp_path):
    with smdebug.Hook(tmp_path / "run", export_tensorboard=True) as hook:
        for epoch in range(3):
            for mode, count in ((modes.TRAIN, 2), (modes.EVAL, 3)):
                for _ in range(count):
                    with hook.step(mode):
                        hook.record("loss", np.float32(epoch))
    board = tmp_path / "run/tensorboard"
    assert scalars(read(board / "TRAIN"), "loss") == [(step, step // 2) for step in range(6)]
    assert scalars(read(board / "EVAL"), "loss") == [(1, 0), (3, 1), (5, 2)]


def test_tensorboard_reads_histograms(exported):
    board = read(exported / "TRAIN")
    assert tags(board) == ["loss", "scalar/speed", "weights/dense/weight_0"]
    last = board.Histograms("weights/dense/weight_0")[-1]
    assert last.step == 4
    value = last.histogram_value
    assert (value.min, value.max, value.num, value.sum) == (0, 36, 10, 180)


def test_there_is_one_file_per_saved_step(exported):
    files = sorted(path.name for path in (exported / "TRAIN").iterdir())
    assert [name.split("_")[0] for name in files] == [f"{step:012}" for step in (0, 2, 3, 4)]
    assert all(name.endswith(".tfevents") for name in files)


def test_the_folder_may_be_elsewhere(tmp_path):
    with (
        smdebug.Hook(tmp_path / "run", tensorboard_dir=str(tmp_path / "board")) as hook,
        hook.step(),
    ):
        hook.record("loss", 3.0)
    assert scalars(read(tmp_path / "board/GLOBAL"), "loss") == [(0, 3.0)]
    assert not (tmp_path / "run/tensorboard").exists()


def test_nothing_is_exported_unless_requested(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook, hook.step():
        hook.record("loss", 3.0)
    assert hook.tensorboard_dir is None
    assert not (tmp_path / "run/tensorboard").exists()


def test_in_sagemaker_only_its_own_file_sets_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(tmp_path / "tensorboard.json"))
    assert smdebug.Hook(tmp_path / "a", export_tensorboard=True).tensorboard_dir is None
    (tmp_path / "tensorboard.json").write_text('{"LocalPath": "/board"}')
    assert smdebug.Hook(tmp_path / "a").tensorboard_dir == "/board"


def test_a_board_that_cannot_be_written_costs_no_step(tmp_path, capsys):
    (tmp_path / "board").write_text("a file, no folder")
    with smdebug.Hook(tmp_path / "run", tensorboard_dir=str(tmp_path / "board")) as hook:
        for _ in range(2):
            with hook.step():
                hook.record("loss", 3.0)
                hook.save_scalar("speed", 1)
    assert len(list((tmp_path / "run/index/000000000").iterdir())) == 2
    assert capsys.readouterr().out.count("TensorBoard files could not be written") == 1


def test_odd_values_cost_no_step(tmp_path):
    with (
        smdebug.Hook(tmp_path / "run", export_tensorboard=True, save_all=True) as hook,
        hook.step(),
    ):
        hook.record("nan", np.array([np.nan, np.inf, 1.0]))
        hook.record("text", np.array(["a"]))
        hook.record("complex", np.array([1j, 2]))
        hook.record("empty", np.zeros(0))
        hook.record("lossy", 1.0)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor_names() == ["complex", "lossy", "nan", "text"]
    assert read(tmp_path / "run/tensorboard/GLOBAL").Tags()["histograms"]
