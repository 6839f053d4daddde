import os
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.analysis.utils import parse_bool, parse_list_from_str
from smdebug.core.locations import (
    IndexFileLocationUtils,
    TensorboardFileLocation,
    TensorFileLocation,
)
from smdebug.core.modes import ModeKeys
from smdebug.core.utils import (
    SagemakerSimulator,
    ScriptSimulator,
    deserialize_tf_device,
    flatten,
    get_path_to_collections,
    get_path_to_events_directory,
    get_region,
    get_relative_event_file_path,
    get_worker_name_from_collection_file,
    index,
    is_first_process,
    is_s3,
    list_files_in_directory,
    load_json_as_dict,
    make_numpy_array,
    match_inc,
    merge_two_dicts,
    parse_worker_name_from_file,
    remove_claim_file,
    serialize_tf_device,
    size_and_shape,
    split,
    step_in_range,
    validate_custom_tensor_value,
)
from smdebug.exceptions import (
    IndexReaderException,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.pytorch import get_hook, set_hook

DEVICE = "/job:worker/replica:0/task:0/device:GPU:0"


def test_a_name_is_included_if_any_pattern_occurs_in_it():
    assert match_inc("conv0_relu_output_0", ["tanh", "relu_out"])
    assert not match_inc("conv0_relu_output_0", [])


def test_flatten_keeps_tuples_whole():
    assert flatten([1, [2, [3, (4, [5])]], []]) == [1, 2, 3, (4, [5])]


def test_a_comma_separated_string_is_split_and_stripped():
    assert split("a, b ,c") == ["a", "b", "c"]
    assert split("") == [""]


def test_the_second_of_two_merged_dictionaries_wins():
    assert merge_two_dicts({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2}


def test_json_is_read_from_text_dictionaries_and_none():
    assert load_json_as_dict(None) is None
    assert load_json_as_dict("None") is None
    assert load_json_as_dict({"a": 1}) == {"a": 1}
    assert load_json_as_dict('{"a": 1}') == {"a": 1}
    with pytest.raises(SMDebugValueError, match="list"):
        load_json_as_dict([1])
    with pytest.raises(SMDebugValueError, match="not JSON"):
        load_json_as_dict("{")


def test_only_lower_case_s3_paths_are_on_s3():
    assert is_s3("s3://bucket/a/b") == (True, "bucket", "a/b")
    assert is_s3("s3://bucket") == (True, "bucket", "")
    assert is_s3("S3://bucket/a") == (False, None, None)
    assert is_s3("/tmp/s3://x") == (False, None, None)


def test_folders_of_a_run_end_with_a_slash():
    assert get_path_to_collections("run") == "run/collections/000000000/"
    assert get_path_to_events_directory("run/") == "run/events/"


@pytest.mark.parametrize("worker", ["worker_0", DEVICE, "a__b"])
def test_workers_are_parsed_from_file_names(worker):
    location = TensorFileLocation(12, worker)
    assert parse_worker_name_from_file(location.get_file_location("run__x")) == worker
    assert TensorFileLocation.load_filename(location.get_filename()) == location


def test_a_worker_is_parsed_from_the_path_of_its_collections_file():
    path = "run/collections/000000000/worker_3_collections.json"
    assert get_worker_name_from_collection_file(path) == "worker_3"
    with pytest.raises(SMDebugValueError, match=r"elsewhere/worker_3_collections\.json"):
        get_worker_name_from_collection_file("elsewhere/worker_3_collections.json")


def test_other_files_have_no_worker():
    with pytest.raises(IndexReaderException, match=r"Invalid File Found: run/notes\.txt"):
        parse_worker_name_from_file("run/notes.txt")


def test_devices_are_written_without_slashes_and_colons():
    assert serialize_tf_device(DEVICE) == "_job-worker_replica-0_task-0_device-GPU-0"
    assert deserialize_tf_device(serialize_tf_device(DEVICE)) == DEVICE


def test_a_range_includes_its_begin_and_excludes_its_end():
    assert [s for s in range(6) if step_in_range((2, 4), s)] == [2, 3]
    assert step_in_range((None, None), 10**12)


def test_values_become_arrays_as_saved():
    assert make_numpy_array(3).shape == (1,)
    assert make_numpy_array("text").shape == (1,)
    assert make_numpy_array([1, 2]).tolist() == [1, 2]
    assert make_numpy_array({"a": 1}).shape == ()
    with pytest.raises(TypeError):
        make_numpy_array(object())
    assert not validate_custom_tensor_value(object(), make_numpy_array)
    assert validate_custom_tensor_value([1.5], make_numpy_array)
    assert size_and_shape(np.zeros((2, 3), np.float32)) == (24, (2, 3))
    assert size_and_shape("four") == (4, [4])


def test_index_returns_the_place_in_a_sorted_list():
    assert index([1, 3, 5], 3) == 1
    with pytest.raises(ValueError, match="4"):
        index([1, 3, 5], 4)


def test_the_path_of_an_event_file_is_relative_to_the_run():
    assert get_relative_event_file_path("/data/run/events/1/1_w.tfevents") == "events/1/1_w.tfevents"
    with pytest.raises(SMDebugRuntimeError, match="notes"):
        get_relative_event_file_path("/data/notes")


def test_a_blank_region_is_none(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "")
    assert get_region() is None
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert get_region() == "eu-west-1"


def test_files_are_listed_below_a_folder(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.json").touch()
    (tmp_path / "y.txt").touch()
    assert [Path(p).name for p in list_files_in_directory(str(tmp_path))] == ["x.json", "y.txt"]
    assert len(list_files_in_directory(str(tmp_path), r".*\.json$")) == 1


def test_a_claim_can_be_taken_and_removed(tmp_path):
    assert is_first_process(str(tmp_path))
    assert (tmp_path / "claim.smd").exists()
    assert not is_first_process(str(tmp_path))
    remove_claim_file(str(tmp_path))
    assert is_first_process(str(tmp_path))
    assert is_first_process("s3://nobody/asks")


def test_a_folder_holds_a_thousand_index_files():
    where = IndexFileLocationUtils
    assert where.get_index_prefix_for_step(1999) == "000000001"
    assert where.next_index_prefix_for_step(1999) == "000000002"
    key = where.get_index_key_for_step("run", 1999, "worker_0")
    assert key == "run/index/000000001/000000001999_worker_0.json"
    assert where.parse_step_from_index_file_name(key) == 1999
    assert where.get_prefix_from_index_file(key) == "run"
    with pytest.raises(IndexReaderException):
        where.parse_step_from_index_file_name("run/index/readme")


def test_tensorboard_files_are_in_a_folder_for_their_mode():
    location = TensorboardFileLocation(7, "12_host", ModeKeys.EVAL)
    assert location.get_file_location("tb") == "tb/EVAL/000000000007_12_host.tfevents"


def test_a_simulated_job_has_its_json_configuration_and_leaves_no_files(tmp_path, monkeypatch):
    out_dir = tmp_path / "out"
    config = tmp_path / "hook.json"
    contents = f'{{"LocalPath": "{out_dir}", "HookParameters": {{"save_interval": "7"}}}}'
    with SagemakerSimulator(
        json_config_path=str(config),
        json_file_contents=contents,
        tensorboard_dir=str(tmp_path / "t"),
    ):
        assert os.environ["TRAINING_JOB_NAME"] == "sm_job"
        hook = smdebug.Hook.create_from_json_file()
        assert hook.out_dir == str(out_dir)
        assert hook.save_config.get_save_config(ModeKeys.TRAIN).save_interval == 7
        hook.close()
    assert "TRAINING_JOB_NAME" not in os.environ
    assert not config.exists()


def test_a_simulated_script_starts_without_a_hook_and_without_output(tmp_path):
    out_dir = tmp_path / "out"
    out_dir.mkdir()
    with ScriptSimulator(out_dir=str(out_dir)) as simulator:
        assert not out_dir.exists()
        set_hook(smdebug.Hook(simulator.out_dir))
    assert not out_dir.exists()
    assert get_hook() is None


@pytest.mark.parametrize(
    ("argument", "meant"),
    [(None, []), ("", []), ("a, b", ["a", " b"]), (["a"], ["a"]), (("a", "b"), ["a", "b"])],
)
def test_a_list_is_parsed_as_it_always_was(argument, meant):
    assert parse_list_from_str(argument) == meant
    assert parse_list_from_str("a;b", delimiter=";") == ["a", "b"]


def test_what_is_not_a_list_is_refused():
    with pytest.raises(SMDebugTypeError, match="not 5"):
        parse_list_from_str(5)


@pytest.mark.parametrize(
    ("argument", "meant"), [(True, True), ("True", True), ("false", False), (None, "default")]
)
def test_a_boolean_is_parsed_as_it_always_was(argument, meant):
    assert parse_bool(argument, "default") == meant


def test_what_is_not_a_boolean_is_a_value_error():
    for argument in ("yes", "", 7):
        with pytest.raises(SMDebugValueError):
            parse_bool(argument, True)
