"""Where this library deviates from the old one: a test for each row of the table in docs/migrating.md."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.analysis.utils import no_refresh, parse_list_from_str
from smdebug.core.access_layer import TSAccessS3
from smdebug.core.logger import DuplicateLogFilter
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import get_numpy_reduction
from smdebug.core.utils import setup_profiler_report
from smdebug.exceptions import (
    DamagedFile,
    LegacyKeras,
    MissingCollectionFiles,
    RunEnded,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.profiler.profiler_config_parser import ProfilerConfigParser
from smdebug.rules.action import Actions
from smdebug.tensorflow.legacy import refuse_legacy_keras
from smdebug.trials import create_trial
from tests.compatibility.conftest import OLD_RUN
from tests.docs.pages import ROOT, text_of
from tests.support.mocked_aws import mocked_aws

EVERY_STEP = smdebug.SaveConfig(save_interval=1)
PAGE = ROOT / "docs" / "migrating.md"
ROW = re.compile(r"^\|.*\| `(test_\w+)` \|$", re.MULTILINE)


@pytest.fixture
def path(tmp_path):
    """The path of a new run."""
    return str(tmp_path / "run")


def save(path: str, values: dict[str, object], steps: int = 1, **options: object) -> None:
    with smdebug.Hook(path, save_config=EVERY_STEP, save_all=True, **options) as hook:
        for _ in range(steps):
            with hook.step():
                for name, value in values.items():
                    hook.record(name, value)


def test_every_deviation_in_the_table_has_its_test():
    named = ROW.findall(text_of(PAGE))
    tests = [name for name in globals() if name.startswith("test_")]
    tests.remove("test_every_deviation_in_the_table_has_its_test")
    assert len(named) == len(set(named))
    assert sorted(named) == sorted(tests)


# Saving


def test_a_hook_with_only_a_path_follows_the_default_plan(path):
    with smdebug.Hook(path) as hook:
        hook.observes = True  # as the hooks of frameworks do
        for _ in range(12):
            with hook.step():
                hook.record("loss", 1.0)
    trial = create_trial(path)
    assert trial.steps() == [*range(11), 11]
    assert len(trial.series("loss")) == 12


# Reading


def test_a_tensor_saved_with_its_shape_has_a_value():
    assert create_trial(str(OLD_RUN)).tensor("weight/dense:0").value(0).shape == (4, 3)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint16", "uint32", "uint64", "complex64"])
def test_types_are_read_as_they_were_saved(path, dtype):
    save(path, {"x": np.arange(3, dtype=dtype)})
    assert create_trial(path).tensor("x").value(0).dtype == dtype


def test_norms_are_of_all_elements():
    matrix = np.array([[3.0, 0.0], [0.0, -4.0]])
    assert get_numpy_reduction("l2", matrix) == 5
    assert get_numpy_reduction("l1", matrix) == 7


def test_std_and_variance_are_of_the_population(path):
    config = smdebug.ReductionConfig(reductions=["std", "variance"])
    save(path, {"x": np.array([1.0, 3.0])}, reduction_config=config)
    tensor = create_trial(path).tensor("x")
    assert (tensor.reduction_value(0, "std"), tensor.reduction_value(0, "variance")) == (1, 1)


def test_a_mode_without_steps_has_no_tensors():
    assert create_trial(str(OLD_RUN)).tensor_names(mode=ModeKeys.PREDICT) == []


def test_asking_for_a_collection_does_not_add_it():
    trial = create_trial(str(OLD_RUN))
    assert trial.collection("no such") is not None
    assert "no such" not in trial.collections()


def test_a_wrong_path_is_an_error(tmp_path):
    with pytest.raises(MissingCollectionFiles):
        create_trial(str(tmp_path / "no such run"), wait_seconds=0)


def test_a_damaged_index_file_is_skipped(path):
    save(path, {"x": 1.0}, steps=2)
    (file,) = Path(path).glob("index/*/000000000001_worker_0.json")
    file.write_text("{")
    trial = create_trial(path)
    assert trial.steps() == [0]
    assert len(trial.damaged_files) == 1


def test_a_flipped_bit_is_an_error(path):
    save(path, {"x": np.arange(100.0)})
    (file,) = Path(path).glob("events/*/*.tfevents")
    data = bytearray(file.read_bytes())
    data[data.index(np.float64(50).tobytes())] ^= 1
    file.write_bytes(data)
    with pytest.raises(DamagedFile):
        create_trial(path).tensor("x").value(0)


def test_an_index_file_cannot_point_outside_the_run(path):
    save(path, {"x": 1.0}, steps=2)
    (file,) = Path(path).glob("index/*/000000000001_worker_0.json")
    file.write_text(file.read_text().replace('"events/', '"../events/'))
    assert create_trial(path).steps() == [0]


def test_an_exception_inside_no_refresh_restores_it():
    trial = create_trial(str(OLD_RUN))
    before = trial.dynamic_refresh
    with pytest.raises(KeyError), no_refresh(trial):
        raise KeyError
    assert trial.dynamic_refresh is before


def test_profiles_are_not_read():
    with pytest.raises(SMDebugNotImplementedError, match="profiler"):
        create_trial(str(OLD_RUN), profiler=True)


# Saving


def test_a_place_that_cannot_be_written_does_not_stop_the_training(path, monkeypatch, capsys):
    monkeypatch.setenv("SMDEBUG_WRITE_PATIENCE_SECONDS", "0.1")
    hook = smdebug.Hook(path, save_config=EVERY_STEP)
    (Path(path)).mkdir(exist_ok=True)
    (Path(path) / "events").write_text("a file where a folder has to be")
    for _ in range(3):
        with hook.step():
            hook.record("loss", 1.0)
    hook.close()
    assert f"could not write step 0 to {path}" in capsys.readouterr().out


def test_the_claim_of_a_killed_process_is_taken_over(path):
    Path(path).mkdir()
    (Path(path) / "claim.smd").touch()
    save(path, {"x": 1.0})
    assert create_trial(path).steps() == [0]


def test_a_crashed_training_leaves_no_end_marker(path):
    with pytest.raises(ZeroDivisionError), smdebug.Hook(path, save_config=EVERY_STEP) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        1 / 0
    assert not (Path(path) / "training_job_end.ts").exists()


def test_a_finished_run_is_not_saved_to_again(path):
    save(path, {"x": 1.0})
    with pytest.raises(RunEnded):
        smdebug.Hook(path)
    assert issubclass(RunEnded, RuntimeError)


def test_a_scalar_between_steps_belongs_to_the_last_step(path):
    with smdebug.Hook(path, save_config=EVERY_STEP) as hook:
        for _ in range(2):
            with hook.step(ModeKeys.TRAIN):
                hook.record("loss", 1.0)
        hook.save_scalar("accuracy", 0.5)
        with hook.step(ModeKeys.EVAL):
            hook.record("loss", 1.0)
    trial = create_trial(path)
    assert trial.tensor("scalar/accuracy").steps(mode=ModeKeys.TRAIN) == [1]
    assert trial.tensor("scalar/accuracy").steps(mode=ModeKeys.EVAL) == []


def test_a_tensor_saved_after_the_export_is_in_its_collection(path):
    with smdebug.Hook(path, save_config=EVERY_STEP) as hook:
        for step in range(3):
            with hook.step():
                hook.record("loss", 1.0)
                if step == 2:
                    hook.save_tensor("late", np.ones(2), collections_to_write="mine")
    assert create_trial(path).tensor_names(collection="mine") == ["late"]


# Configuration


def test_reductions_may_be_spelled_as_people_spell_them():
    config = smdebug.ReductionConfig(reductions="median,l2,abs_mean", save_raw_tensor="True")
    assert config.save_raw_tensor is True


def test_a_save_interval_of_0_is_refused_at_once():
    with pytest.raises(SMDebugValueError):
        smdebug.SaveConfig(save_interval=0)


def test_steps_and_modes_may_be_given_as_text():
    assert smdebug.SaveConfigMode(save_steps="1,2").save_steps == [1, 2]
    config = smdebug.SaveConfig.from_dict({"train": {"save_interval": "3"}})
    assert config.get_save_config(ModeKeys.TRAIN).save_interval == 3


def test_text_in_the_configuration_of_the_profiler_is_not_evaluated(tmp_path, monkeypatch):
    file = tmp_path / "profilerconfig.json"
    monkeypatch.setenv("SMPROFILER_CONFIG_PATH", str(file))
    harmful = f"open({str(tmp_path / 'made')!r}, 'w')"
    file.write_text(json.dumps({"ProfilingParameters": {"DetailedProfilingConfig": harmful}}))
    with suppress(SMDebugError):
        ProfilerConfigParser()
    assert not (tmp_path / "made").exists()


def test_legacy_keras_is_refused(tmp_path, monkeypatch):
    (tmp_path / "tf_keras.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    refuse_legacy_keras()
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    with pytest.raises(LegacyKeras):
        refuse_legacy_keras()


# Rules, helpers


def test_actions_with_a_wrong_parameter_are_refused():
    for wrong in ({"name": "email"}, {"name": "stoptraining", "training_job_prefix": "a_b"}):
        with pytest.raises(SMDebugValueError):
            Actions([wrong], "MyRule")
        assert len(Actions(json.dumps([wrong]), "MyRule")) == 0


def test_the_values_of_actions_keep_their_case():
    actions = Actions('{"name": "StopTraining", "training_job_prefix": "My-Job"}', "MyRule")
    assert "My-Job" in [value for action in actions._actions for value in vars(action).values()]


def test_a_list_of_another_type_is_a_type_error():
    with pytest.raises(SMDebugTypeError):
        parse_list_from_str(3)


def test_repeated_log_messages_are_compared_with_their_values():
    import logging

    duplicates = DuplicateLogFilter()
    record = [logging.makeLogRecord({"msg": "%s is missing", "args": (name,)}) for name in "abcde"]
    assert all(map(duplicates.filter, record))


def test_nothing_is_sent_to_the_makers(monkeypatch):
    import socket

    monkeypatch.setattr(socket, "socket", None)  # any connection would fail
    assert setup_profiler_report("arn:aws:sagemaker:us-east-1:1:processing-job/x") is None


def test_a_bucket_is_never_created():
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("moto")
    with mocked_aws():
        file = TSAccessS3("no-such-bucket", "key")
        file.write(b"x")
        with pytest.raises(SMDebugError):
            file.close()
        assert boto3.client("s3").list_buckets()["Buckets"] == []


def test_a_collection_that_selects_nothing_stops_no_training(tmp_path):
    with smdebug.Hook(tmp_path / "run", include_collections=["weight"]) as hook:
        hook.get_collection("weight")
        with hook.step():
            hook.record("loss", 1.0)
    assert create_trial(str(tmp_path / "run")).tensor_names() == ["loss"]
