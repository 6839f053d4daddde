"""Lines of scripts and tests written for the old library, as their authors wrote them."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from unittest.mock import patch

import boto3
import numpy as np
import pytest

from smdebug.core.collection_manager import CollectionManager
from smdebug.core.config_constants import (
    CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR,
    LOG_DUPLICATION_THRESHOLD,
)
from smdebug.core.index_reader import LocalIndexReader, ReadIndexFilesCache, S3IndexReader
from smdebug.core.locations import TensorFileLocation
from smdebug.core.logger import DuplicateLogFilter, get_logger
from smdebug.core.modes import ModeKeys
from smdebug.core.state_store import StateStore
from smdebug.core.writer import FileWriter
from smdebug.saving.hooks import singleton
from smdebug.trials import create_trial
from tests.support.mocked_aws import mocked_aws


@pytest.fixture
def bucket():
    """An empty bucket `runs`."""
    with mocked_aws():
        boto3.client("s3").create_bucket(Bucket="runs")
        yield "s3://runs"


@pytest.fixture
def checkpoints(tmp_path, monkeypatch):
    """A folder of checkpoints that the configuration file names."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    config = tmp_path / "checkpointconfig.json"
    config.write_text(json.dumps({"LocalPath": str(folder)}))
    monkeypatch.setenv(CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR, str(config))
    return folder


def write_steps(path: str, steps: int) -> None:
    for step in range(steps):
        with FileWriter(trial_dir=path, step=step, worker="worker_0") as writer:
            writer.write_tensor(tdata=np.ones(3), tname="loss", mode=ModeKeys.TRAIN, mode_step=step)


# Writers, readers, locations


def test_an_event_file_is_located_in_a_trial_dir():
    location = TensorFileLocation(step_num=12, worker_name="worker_0")
    assert (
        location.get_file_location(trial_dir="/tmp/run")
        == "/tmp/run/events/000000000012/000000000012_worker_0.tfevents"
    )


def test_a_local_index_reader_lists_sorted_files(tmp_path):
    write_steps(str(tmp_path), 3)
    files = LocalIndexReader(str(tmp_path)).list_index_files()
    assert files == sorted(files)
    assert [Path(file).name for file in files] == [f"{n:012}_worker_0.json" for n in range(3)]


def test_an_s3_index_reader_lists_files_and_the_last_token(bucket):
    write_steps(f"{bucket}/run", 2)
    files, token = S3IndexReader(f"{bucket}/run").list_index_files()
    assert [file.rpartition("/")[2] for file in files] == [
        "000000000000_worker_0.json",
        "000000000001_worker_0.json",
    ]
    assert token == files[-1]
    assert S3IndexReader(f"{bucket}/run").list_index_files(token) == ([], token)


def test_a_cache_of_read_index_files_drops_what_is_behind_start_after():
    cache = ReadIndexFilesCache()
    cache.cache_limit = 3
    for n in range(3):
        cache.add(f"index_{n}", None)
    assert not cache.has_not_read("index_0")
    cache.add("index_3", "index_1")
    assert cache.lookup_set == {"index_2", "index_3"}
    assert cache.has_not_read("index_0")
    assert not cache.has_not_read("index_3")


def test_an_exported_collection_manager_is_found_by_create_trial(tmp_path):
    path = str(tmp_path)
    manager = CollectionManager()
    manager.add("default")
    manager.get("default").add_tensor_name("loss")
    manager.export(path, "worker_0_collections.json")
    write_steps(path, 1)
    trial = create_trial(path)
    assert trial.tensor_names(collection="default") == ["loss"]


@pytest.mark.parametrize("mode", [None, ModeKeys.GLOBAL])
def test_a_tensor_without_a_mode_is_global(tmp_path, mode):
    CollectionManager().export(str(tmp_path), "worker_0_collections.json")
    writer = FileWriter(trial_dir=str(tmp_path), step=0, worker="worker_0")
    writer.write_tensor(tdata=np.ones(2), tname="x", mode=mode, mode_step=0)
    writer.close()
    trial = create_trial(str(tmp_path))
    assert trial.tensor("x").steps() == [0]
    assert trial.mode(0) is None or trial.mode(0) is ModeKeys.GLOBAL


def test_an_empty_entry_of_the_metadata_means_nothing_yet(checkpoints):
    empty = {
        "training-run": "",
        "latest-global-step-saved": "",
        "latest-global-step-seen": "",
        "latest-mode-step": "",
    }
    (checkpoints / "metadata.json").write_text(json.dumps([empty]))
    assert StateStore().get_last_saved_state() == empty
    assert StateStore().last_state() is None
    reached = {
        "training-run": 1,
        "latest-global-step-saved": 10,
        "latest-global-step-seen": 12,
        "latest-mode-step": {"TRAIN": 12, "EVAL": ""},
    }
    (checkpoints / "metadata.json").write_text(json.dumps([empty, reached]))
    assert StateStore().get_last_saved_state() == reached


@pytest.mark.parametrize("entry", [["epoch-3"], {"epoch": 3}, "e"])
def test_the_metadata_may_hold_entries_of_one_element(checkpoints, entry):
    store = StateStore()
    store.update_state({"epoch": 2})
    store.update_state(entry)
    assert store.get_last_saved_state() == entry
    assert json.loads((checkpoints / "metadata.json").read_text()) == [{"epoch": 2}, entry]
    assert StateStore().get_last_saved_state() == entry
    assert StateStore().last_state() is None


def test_a_checkpoint_is_updated_when_a_file_of_it_changes(checkpoints):
    store = StateStore()
    assert not store.is_checkpoint_updated()
    (checkpoints / "model.ckpt").write_text("1")
    assert store.is_checkpoint_updated()
    assert not store.is_checkpoint_updated()
    (checkpoints / "metadata.json").write_text("[]")
    (checkpoints / "metadata.json.sagemaker-uploaded").write_text("[]")
    assert not store.is_checkpoint_updated()
    os.utime(checkpoints / "model.ckpt", (10, 10))
    assert store.is_checkpoint_updated()


# Names that are imported


def test_the_helpers_are_imported_from_utils():
    from smdebug.core import utils

    assert utils.get_logger() is get_logger()
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:processing-job/report"
    assert utils.get_aws_region_from_processing_job_arn(arn) == "eu-west-1"


def test_private_names_of_the_telemetry_are_imported_and_do_nothing():
    from smdebug.core import utils
    from smdebug.core.utils import _prepare_telemetry_url, _send_telemetry

    assert _prepare_telemetry_url("arn:aws:sagemaker:eu-west-1:1:processing-job/x") == ""
    assert _send_telemetry(url="https://nowhere.invalid", timeout=3) == ""
    with patch("smdebug.core.utils._prepare_telemetry_url", return_value="patched"):
        assert utils._prepare_telemetry_url() == "patched"
    assert not hasattr(utils, "_nothing_like_it")


def test_the_constants_of_the_profiler_are_imported():
    from smdebug.core.config_constants import PROFILER_REPORT_VERSION, PROFILER_TELEMETRY_URL
    from smdebug.profiler.profiler_constants import (
        CONVERT_TO_MICROSECS,
        DEFAULT_PREFIX,
        HOROVODTIMELINE_SUFFIX,
        SMDATAPARALLELTIMELINE_SUFFIX,
        TRACE_DIRECTORY_FORMAT,
    )

    assert CONVERT_TO_MICROSECS == 1_000_000
    assert TRACE_DIRECTORY_FORMAT == "%Y%m%d%H"
    names = (DEFAULT_PREFIX, HOROVODTIMELINE_SUFFIX, SMDATAPARALLELTIMELINE_SUFFIX)
    assert all(isinstance(name, str) for name in (*names, PROFILER_REPORT_VERSION))
    assert PROFILER_TELEMETRY_URL.endswith(".invalid")


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mxnet", "xgboost"])
def test_get_hook_is_none_where_the_framework_version_is_not_supported(framework, monkeypatch):
    from importlib import import_module

    monkeypatch.setattr(singleton, "_hook", None)
    with patch(
        "smdebug.core.config_validator.is_framework_version_supported", return_value=False
    ) as supported:
        assert import_module(f"smdebug.{framework}").get_hook() is None
        assert supported.called


def test_the_logger_lets_a_message_through_three_times():
    (duplicates,) = (f for f in get_logger().filters if isinstance(f, DuplicateLogFilter))
    duplicates.seen.clear()
    logged = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())
    get_logger().addHandler(handler)
    try:
        for _ in range(LOG_DUPLICATION_THRESHOLD + 2):
            get_logger().warning("the same message")
        for step in range(5):
            get_logger().warning("step %d", step)
    finally:
        get_logger().removeHandler(handler)
    assert logged == ["the same message"] * LOG_DUPLICATION_THRESHOLD + [f"step {step}" for step in range(5)]
