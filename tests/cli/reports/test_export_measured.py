"""`smdebug export` of a run that was measured, read by the libraries that own the formats."""

from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.exceptions import DamagedFile, SMDebugValueError
from smdebug.export import Selection, export_npz, export_parquet, export_tensorboard
from smdebug.files.names import event_key
from smdebug.numbers.rows import COLUMNS
from smdebug.trials import create_trial

STEPS = 25
MEASURED = [*range(11), 20]


def loss_at(step):
    return 2.0 / (step + 1)


@pytest.fixture
def run(tmp_path):
    random = np.random.default_rng(0)
    with smdebug.Hook(tmp_path / "run") as hook:
        for step in range(STEPS):
            with hook.step(modes.TRAIN):
                hook.record("loss", loss_at(step))
                hook.record("fc.weight", random.normal(size=(4, 3)).astype(np.float32))
                hook.record("gradient/fc.weight", random.normal(size=(4, 3)).astype(np.float32))
        with hook.step(modes.EVAL):
            hook.record("loss", 9.0)
    return str(tmp_path / "run")


def test_tensorboard_shows_statistics_and_every_value_of_a_scalar(ask, run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    answer = ask("export", "tensorboard", run, "-o", tmp_path / "board", "--json")
    curves = 2 * len(MEASURED) * (len(COLUMNS) - 1)
    assert (answer.code, answer.json["values"]) == (0, curves + STEPS + 1)
    board = EventAccumulator(str(tmp_path / "board" / "TRAIN"))
    board.Reload()
    losses = {point.step: point.value for point in board.Scalars("loss")}
    assert losses == pytest.approx({step: loss_at(step) for step in range(STEPS)})
    points = board.Scalars("gradient/fc.weight/abs_mean")
    trial = create_trial(run)
    assert {point.step: point.value for point in points} == pytest.approx(
        {step: trial.statistics(step).row("gradient/fc.weight")["abs_mean"] for step in MEASURED}
    )
    assert all(point.wall_time > 1e9 for point in points)
    evaluated = EventAccumulator(str(tmp_path / "board" / "EVAL"))
    evaluated.Reload()
    assert [(point.step, point.value) for point in evaluated.Scalars("loss")] == [(STEPS - 1, 9.0)]


def test_npz_has_an_array_per_statistic(run, tmp_path):
    export_npz(run, tmp_path / "run.npz")
    trial = create_trial(run)
    with np.load(tmp_path / "run.npz") as arrays:
        assert arrays["fc.weight/step"].tolist() == MEASURED
        for statistic in COLUMNS:
            rows = [trial.statistics(step).row("fc.weight")[statistic] for step in MEASURED]
            np.testing.assert_array_equal(arrays[f"fc.weight/{statistic}"], np.float32(rows))
        assert arrays["loss/step"].tolist() == list(range(STEPS + 1))
        np.testing.assert_array_equal(arrays["loss/value"][:-1], list(map(loss_at, range(STEPS))))
        assert arrays["loss/mode"].tolist() == ["TRAIN"] * STEPS + ["EVAL"]
        assert arrays["loss@10"] == loss_at(10)


def test_parquet_has_a_row_per_tensor_and_step(run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export_parquet(run, tmp_path / "run.parquet")
    rows = parquet.read_table(tmp_path / "run.parquet").to_pylist()
    losses = {row["step"]: row for row in rows if row["tensor"] == "loss"}
    assert len(rows) == 2 * len(MEASURED) + len(losses)  # each step of a scalar once
    assert sorted(losses) == list(range(STEPS + 1))
    assert {step: row["mean"] for step, row in losses.items() if row["mode"] == "TRAIN"} == {
        step: loss_at(step) for step in range(STEPS)
    }
    assert {losses[10]["source"], losses[17]["source"]} == {"saved", "series"}
    (row,) = [row for row in rows if row["tensor"] == "fc.weight" and row["step"] == 20]
    assert (row["source"], row["kind"], row["shape"]) == ("measured", "parameters", [4, 3])
    known = create_trial(run).statistics(20).row("fc.weight")
    assert {name: row[name] for name in COLUMNS} == pytest.approx(known)


def test_a_selection_holds_for_what_was_measured(run, tmp_path):
    export_npz(run, tmp_path / "a.npz", Selection(regex="^gradient", steps=(5,)))
    with np.load(tmp_path / "a.npz") as arrays:
        assert {name.rpartition("/")[0] for name in arrays} == {"gradient/fc.weight"}
        assert arrays["gradient/fc.weight/step"].tolist() == [5]
    export_npz(run, tmp_path / "b.npz", Selection(collection="losses", steps=(5, 10)))
    with np.load(tmp_path / "b.npz") as arrays:
        assert arrays["loss/step"].tolist() == [5, 10]
        assert set(arrays) == {"loss@5", "loss@10", "loss/step", "loss/value", "loss/mode"}
    with pytest.raises(SMDebugValueError, match="nothing to export"):
        export_tensorboard(run, tmp_path / "c", Selection(regex="no such"))


def test_several_workers_are_kept_apart(tmp_path):
    options = {"num_workers": 2, "include_workers": "all"}
    hooks = [smdebug.Hook(tmp_path / "run", worker=worker, **options) for worker in range(2)]
    for worker, hook in enumerate(hooks):
        with hook.step(modes.TRAIN):
            hook.record("loss", float(worker))
            hook.record("fc.weight", np.full((2, 2), worker, np.float32))
    for hook in reversed(hooks):
        hook.close()
    export_npz(str(tmp_path / "run"), tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as arrays:
        assert arrays["fc.weight/max:worker_1"].tolist() == [1.0]
        assert arrays["loss/value:worker_0"].tolist() == [0.0]
    export_npz(str(tmp_path / "run"), tmp_path / "second.npz", Selection(worker="worker_1"))
    with np.load(tmp_path / "second.npz") as arrays:
        assert arrays["fc.weight/max"].tolist() == [1.0]


def test_damaged_statistics_are_left_out_and_named(ask, run, tmp_path):
    file = Path(run) / event_key(4, "worker_0")
    row = create_trial(run).statistics(4).column("abs_mean")
    data = bytearray(file.read_bytes())
    data[data.index(row[:1].tobytes())] ^= 1
    file.write_bytes(data)
    answer = ask("export", "npz", run, "-o", tmp_path / "run.npz")
    assert answer.code == 3
    assert "1 event file is damaged" in answer.err
    with pytest.raises(DamagedFile):
        export_npz(run, tmp_path / "strict.npz")


def test_tensorboard_has_an_evaluation_at_the_training_step_that_it_follows(tmp_path):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for epoch in range(2):
            for _ in range(20):
                with hook.step(modes.TRAIN):
                    hook.record("loss", 1.0)
            for batch in range(3):
                with hook.step(modes.EVAL):
                    hook.record("loss", float(epoch + batch))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    export_tensorboard(tmp_path / "run", tmp_path / "board")
    found = {}
    for mode in ("TRAIN", "EVAL"):
        events = EventAccumulator(str(tmp_path / "board" / mode))
        events.Reload()
        found[mode] = [(event.step, event.value) for event in events.Scalars("loss")]
    assert found["EVAL"] == [(19, 1.0), (39, 2.0)]
    assert [step for step, _ in found["TRAIN"]] == list(range(40))
