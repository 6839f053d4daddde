"""Observations from the hook's side to the reader's, through the files of a run."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.exceptions import DamagedFile, SMDebugValueError, TensorUnavailableForStep
from smdebug.files.observations import FACTS, LAYOUT, ObservationLayout, ObservedTensor, json_array
from smdebug.numbers.digests import content_digest
from smdebug.numbers.rows import COLUMNS, MEASURED, SAMPLE_BYTES, SAMPLE_SIZE
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.arrays.measurer import measure
from smdebug.saving.observations import step_observations
from smdebug.saving.observations.observer import Observer
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.planning.step_clock import StepClock
from smdebug.trials import create_trial
from smdebug.trials.observations.whole_run import Observations, ObservationsUnavailable


def observe(observations, kind, arrays, *, digest=False):
    for name, array in arrays.items():
        tensor = ObservedTensor(name, array.shape, str(array.dtype))
        observations.observe(kind, tensor, measure(array, digest=digest))


def observer_of_arrays():
    return Observer(FrameworkAdapter(), lambda message, kind: None)


def clock_at(step, mode=modes.TRAIN):
    return StepClock.resumed(step, {mode: step}, untouched=-1).in_mode(mode)


def hook_of_observations(place):
    every_step = smdebug.SaveConfig(save_interval=1)
    return smdebug.Hook(place, include_regex=["^smdebug/"], save_config=every_step)


@pytest.fixture
def run(tmp_path):
    """A run, and a function that writes the observations of its next step and returns a fresh reader."""
    hook = hook_of_observations(tmp_path / "run")

    def write(observations):
        with hook.step(modes.TRAIN):
            for name, make, _ in observations.hand_over(int(hook.step)).tensors():
                hook.record(name, make())

    def read():
        hook.close()
        return Observations(create_trial(str(tmp_path / "run")))

    return write, read


def test_a_step_without_observations_writes_nothing():
    assert StepObservations().hand_over(0).is_empty


def test_statistics_are_read_by_name(run):
    write, read = run
    weight, bias = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([-1.0, 1.0])
    observations = StepObservations()
    observe(observations, "parameters", {"weight": weight, "bias": bias})
    observe(observations, "gradients", {"g": bias})
    write(observations)

    found = read().statistics(0)
    assert found.names == ["weight", "bias", "g"]
    assert found.kinds == ("parameters", "parameters", "gradients")
    assert found.row("weight")["max"] == 5
    assert found.column("mean").tolist() == pytest.approx([2.5, 0, 0])
    assert found.of("gradients").names == ["g"]
    assert "bias" in found
    assert "other" not in found
    assert found.tensors[0].shape == (2, 3)
    with pytest.raises(SMDebugValueError, match="Known are count, non_finite"):
        found.column("median")
    with pytest.raises(TensorUnavailableForStep):
        found.row("other")


def test_names_are_written_once_and_again_when_there_are_new_ones(run):
    write, read = run
    observations = StepObservations()
    array = np.ones(3)
    for names in (["a"], ["a"], ["b", "a"], ["a"]):
        observe(observations, "outputs", dict.fromkeys(names, array))
        write(observations)

    reader = read()
    assert reader._trial.tensor(LAYOUT).steps() == [0, 2]
    assert reader.statistics(1).names == ["a"]
    assert reader.statistics(2).names == ["a", "b"]
    assert reader.statistics(3).column("count").tolist() == [3, 0]
    assert np.isnan(reader.statistics(3).row("b")["mean"])


def test_a_tensor_that_changes_its_shape_has_a_new_layout(run):
    write, read = run
    observations = StepObservations()
    for size in (2, 5):
        array = np.ones(size)
        observe(observations, "inputs", {"x": array})
        write(observations)
    reader = read()
    assert [reader.statistics(step).tensors[0].shape for step in (0, 1)] == [(2,), (5,)]


def test_samples_and_digests_are_read_by_name(run):
    write, read = run
    small, large = np.array([1.5, 2.5]), np.arange(1000.0)
    observations = StepObservations()
    observe(observations, "parameters", {"small": small, "large": large}, digest=True)
    observe(observations, "gradients", {"gradient/small": small})
    write(observations)
    reader = read()
    samples = reader.samples("parameters", 0)
    assert samples["small"].tolist() == [1.5, 2.5]
    assert len(samples["large"]) == SAMPLE_SIZE
    assert reader.digests("parameters", 0) == {
        "small": content_digest(small),
        "large": content_digest(large),
    }
    with pytest.raises(ObservationsUnavailable):
        reader.digests("gradients", 0)


def test_samples_of_many_tensors_share_their_budget(run):
    write, read = run
    observations = StepObservations()
    arrays = {f"t{number}": np.arange(500.0) for number in range(2_000)}
    observe(observations, "outputs", arrays)
    write(observations)
    reader = read()
    saved = reader._trial.tensor("smdebug/samples/outputs").value(0)
    assert saved.nbytes <= SAMPLE_BYTES
    assert len(reader.samples("outputs", 0)["t1999"]) == SAMPLE_BYTES // 4 // 2_000


def test_facts_of_a_step_are_listed_with_lasting_ones(run):
    write, read = run
    observations = StepObservations()
    observations.note_lasting(optimizer="SGD")
    for rate in (0.1, float("inf"), np.float32(0.5)):
        observations.note(rate=rate)
        write(observations)
    reader = read()
    assert [reader.facts(step)["rate"] for step in range(3)] == [0.1, "inf", 0.5]
    assert reader.facts(2)["optimizer"] == "SGD"
    assert reader.steps() == [0, 1, 2]
    assert reader.steps(kind="gradients") == []


def test_scalars_of_unsaved_steps_are_written_with_the_next_saved_one(run):
    write, read = run
    observer = observer_of_arrays()
    for step in range(5):
        observer.carry("loss", 10.0 - step, clock_at(step))
    assert observer.carries_series
    write(observer.observations)
    observer.carry("loss", 7.5, clock_at(5, modes.EVAL))
    observer.carry("loss", 4.0, clock_at(6))
    observer.carry("loss", 4.5, clock_at(6))
    write(observer.observations)

    reader = read()
    loss = reader.series("loss")
    assert loss.steps.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert loss.values.tolist() == [10, 9, 8, 7, 6, 7.5, 4.5]
    assert loss.of(modes.EVAL).values.tolist() == [7.5]
    assert reader.series_names() == ["loss"]


def test_series_that_nothing_writes_do_not_grow_without_end():
    observer = Observer(FrameworkAdapter(), lambda message, kind: None, most_carried=100)
    for step in range(1000):
        observer.carry("loss", 1.0, clock_at(step))
    ((_, make, _),) = observer.hand_over(clock_at(999)).tensors()
    saved_steps = make()[:, 0]
    assert 50 <= len(saved_steps) <= 101
    assert saved_steps[-1] == 999


def test_tensors_beyond_the_limit_are_left_out_and_counted(monkeypatch, run):
    monkeypatch.setattr(step_observations, "MAX_ROWS", 2)
    write, read = run
    observations = StepObservations()
    array = np.ones(2)
    observe(observations, "outputs", dict.fromkeys("abcd", array))
    assert observations.left_out == 2
    write(observations)
    assert read().statistics(0).names == ["a", "b"]


def test_a_run_without_observations_raises_an_error_with_the_reason(tmp_path):
    with smdebug.Hook(tmp_path / "run", include_collections=["losses"]) as hook, hook.step():
        hook.record("loss", 1.0)
    reader = Observations(create_trial(str(tmp_path / "run")))
    assert not reader.exist
    with pytest.raises(ObservationsUnavailable, match="was configured to save chosen tensors"):
        reader.statistics(0)


HOSTILE = {
    "no text": np.ones(3),
    "no JSON": np.frombuffer(b"{", np.uint8),
    "no object": np.frombuffer(b"[1]", np.uint8),
    "no tensors": json_array({"tensors": 5}),
    "no rows": json_array({"tensors": {"outputs": {"a": 1}}}),
    "a row of other things": json_array({"tensors": {"outputs": [["a", [-1], "float32"]]}}),
    "a row too short": json_array({"tensors": {"outputs": [["a"]]}}),
    "nested without end": np.frombuffer(b"[" * 100_000, np.uint8),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_damaged_layout_is_an_error_that_names_the_place(kind):
    with pytest.raises(DamagedFile, match="layout of run"):
        ObservationLayout.from_array(HOSTILE[kind], "layout of run")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (FACTS, json_array({"layout": "0"})),
        ("smdebug/statistics/outputs", np.ones((3, len(COLUMNS)), np.float32)),
        ("smdebug/statistics/outputs", np.ones((1, len(COLUMNS)))),
        ("smdebug/statistics/outputs", np.ones(4, np.float32)),
    ],
)
def test_observations_that_do_not_fit_together_are_damage(tmp_path, name, content):
    observations = StepObservations()
    array = np.ones(2)
    observe(observations, "outputs", {"a": array})
    written = {key: make() for key, make, _ in observations.hand_over(0).tensors()} | {name: content}
    with (
        smdebug.Hook(tmp_path / "run", include_regex=["^smdebug/"], include_collections=[]) as hook,
        hook.step(),
    ):
        hook.record_all(written)
    with pytest.raises(DamagedFile):
        Observations(create_trial(str(tmp_path / "run"))).statistics(0)


def test_columns_unknown_to_an_older_writer_are_nan(tmp_path):
    observations = StepObservations()
    array = np.ones(2)
    observe(observations, "outputs", {"a": array})
    written = {key: make() for key, make, _ in observations.hand_over(0).tensors()}
    written["smdebug/statistics/outputs"] = written["smdebug/statistics/outputs"][:, : len(MEASURED)]
    with (
        smdebug.Hook(tmp_path / "run", include_regex=["^smdebug/"], include_collections=[]) as hook,
        hook.step(),
    ):
        hook.record_all(written)
    found = Observations(create_trial(str(tmp_path / "run"))).statistics(0)
    assert found.row("a")["max"] == 1
    assert np.isnan(found.row("a")["p50"])


def test_the_old_reader_finds_ordinary_tensors_with_json_in_them(run):
    write, read = run
    observations = StepObservations()
    observations.note(rate=0.5)
    write(observations)
    text = read()._trial.tensor(FACTS).value(0).tobytes()
    assert json.loads(text) == {"rate": 0.5, "layout": 0}
