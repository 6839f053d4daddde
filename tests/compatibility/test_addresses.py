"""Code and tests written against the old library find every name at its old address."""

import importlib
import importlib.util
import pickle
import pkgutil
import subprocess
import sys
from unittest import mock

import pytest

import smdebug
from smdebug.compatibility.addresses import ADDRESSES
from smdebug.exceptions import FrameworkMissing
from tests.support.looking import each

FRAMEWORK_NAMES = (
    "get_hook set_hook del_hook Collection CollectionKeys SaveConfig SaveConfigMode ReductionConfig "
    "modes create_trial"
)
NAMES = {
    "smdebug": "modes SaveConfig SaveConfigMode ReductionConfig CollectionKeys __version__ Hook",
    "smdebug.pytorch": FRAMEWORK_NAMES,
    "smdebug.mxnet": FRAMEWORK_NAMES,
    "smdebug.tensorflow": FRAMEWORK_NAMES,
    "smdebug.xgboost": FRAMEWORK_NAMES,
    **{
        f"smdebug.{framework}.{module}": names
        for framework in ("pytorch", "mxnet", "tensorflow", "xgboost")
        for module, names in (
            ("collection", "Collection CollectionManager CollectionKeys"),
            ("singleton_utils", "get_hook set_hook del_hook"),
        )
    },
    "smdebug.tensorflow.constants": "TF_DEFAULT_SAVED_COLLECTIONS",
    "smdebug.trials": "create_trial Trial LocalTrial S3Trial",
    "smdebug.trials.utils": "create_trial",
    "smdebug.trials.trial": "Trial",
    "smdebug.trials.local_trial": "LocalTrial",
    "smdebug.trials.s3_trial": "S3Trial",
    "smdebug.rules": "Rule invoke_rule RequiredTensors RequiredTensorsForTrial",
    "smdebug.rules.rule": "Rule",
    "smdebug.rules.rule_invoker": "invoke_rule",
    "smdebug.rules.req_tensors": "RequiredTensors RequiredTensorsForTrial",
    "smdebug.rules.action": "Actions",
    "smdebug.rules.action.action": "Actions",
    "smdebug.rules.action.message_action": "MessageAction",
    "smdebug.rules.action.stop_training_action": "StopTrainingAction",
    "smdebug.rules.generic": "VanishingGradient ExplodingTensor SimilarAcrossRuns WeightUpdateRatio "
    "AllZero UnchangedTensor LossNotDecreasing",
    "smdebug.exceptions": "SMDebugError SMDebugTypeError SMDebugRuntimeError "
    "SMDebugNotImplementedError SMDebugValueError InvalidCollectionConfiguration "
    "StepNotYetAvailable StepUnavailable TensorUnavailable TensorUnavailableForStep "
    "ShapeUnavailableForStep InvalidWorker NoMoreData NoMoreProfilerData "
    "RuleEvaluationConditionMet InsufficientInformationForRuleInvocation MissingCollectionFiles "
    "IndexReaderException SMDebugCustomerError",
    "smdebug.analysis.utils": "no_refresh refresh parse_list_from_str parse_bool",
    "smdebug.core.modes": "ModeKeys ALLOWED_MODES ALLOWED_MODE_NAMES str_to_mode_keys "
    "MODE_PLUGIN_NAME MODE_STEP_PLUGIN_NAME",
    "smdebug.core.save_config": "SaveConfig SaveConfigMode",
    "smdebug.core.reduction_config": "ReductionConfig ALLOWED_REDUCTIONS ALLOWED_NORMS",
    "smdebug.core.collection": "Collection CollectionKeys SCALAR_COLLECTIONS SM_METRIC_COLLECTIONS "
    "SUMMARIES_COLLECTIONS NON_REDUCTION_COLLECTIONS NON_HISTOGRAM_COLLECTIONS "
    "DEFAULT_TF_COLLECTIONS DEFAULT_PYTORCH_COLLECTIONS DEFAULT_MXNET_COLLECTIONS "
    "DEFAULT_XGBOOST_COLLECTIONS",
    "smdebug.core.collection_manager": "CollectionManager",
    "smdebug.core.reductions": "get_numpy_reduction get_reduction_tensor_name "
    "reverse_reduction_tensor_name REDUCTIONS_PREFIX",
    "smdebug.core.tensor": "Tensor StepState ModeSteps Step",
    "smdebug.core.locations": "TensorFileLocation TensorboardFileLocation TensorLocation TensorShape "
    "IndexFileLocationUtils TraceFileLocation",
    "smdebug.core.json_config": "get_json_config_as_dict collect_hook_config_params "
    "get_include_collections add_collections_to_manager create_hook_from_json_config "
    "parse_save_config_dict parse_save_config_modes_dict get_tensorboard_dir_from_json_config "
    "get_node_id_from_resource_config CONFIG_FILE_PATH_ENV_STR DEFAULT_WORKER_NAME "
    "DEFAULT_SAGEMAKER_OUTDIR DEFAULT_RESOURCE_CONFIG_FILE",
    "smdebug.core.config_constants": "CLAIM_FILENAME DEFAULT_WORKER_NAME "
    "DEFAULT_COLLECTIONS_FILE_NAME DEFAULT_SAGEMAKER_OUTDIR DEFAULT_SAVED_COLLECTIONS "
    "METADATA_FILENAME LOG_DUPLICATION_THRESHOLD DEFAULT_SAGEMAKER_METRICS_PATH "
    "CONFIG_FILE_PATH_ENV_STR TENSORBOARD_CONFIG_FILE_PATH_ENV_STR "
    "CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR INCOMPLETE_STEP_WAIT_WINDOW_KEY "
    "INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT TRAINING_END_DELAY_REFRESH_KEY "
    "TRAINING_END_DELAY_REFRESH_DEFAULT MISSING_EVENT_FILE_RETRY_LIMIT_KEY "
    "DEFAULT_CONFIG_FILE_PATH DEFAULT_SAGEMAKER_TENSORBOARD_PATH DEFAULT_CHECKPOINT_CONFIG_FILE "
    "DEFAULT_RESOURCE_CONFIG_FILE",
    "smdebug.core.config_validator": "ConfigValidator get_config_validator reset_config_validator",
    "smdebug.core.writer": "FileWriter",
    "smdebug.core.reader": "FileReader",
    "smdebug.core.index_reader": "IndexReader LocalIndexReader S3IndexReader ReadIndexFilesCache",
    "smdebug.core.hook": "BaseHook CallbackHook ScalarCache",
    "smdebug.core.hook_utils": "verify_and_get_out_dir get_tensorboard_dir",
    "smdebug.core.state_store": "StateStore",
    "smdebug.core.logger": "get_logger DuplicateLogFilter MaxLevelFilter",
    "smdebug.core.error_handling_agent": "ErrorHandlingAgent BASE_ERROR_MESSAGE",
    "smdebug.core.access_layer": "TSAccessFile TSAccessS3 check_dir_exists training_has_ended "
    "has_training_ended is_rule_signalled_gracetime_passed ENV_RULE_STOP_SIGNAL_FILENAME "
    "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC",
    "smdebug.core.access_layer.file": "TSAccessFile get_temp_path SMDEBUG_TEMP_PATH_SUFFIX",
    "smdebug.core.access_layer.s3": "TSAccessS3",
    "smdebug.core.access_layer.utils": "delete_s3_prefixes file_exists",
    "smdebug.core.access_layer.s3handler": "S3Handler ListRequest ReadObjectRequest DeleteRequest",
    "smdebug.core.s3_utils": "list_s3_objects",
    "smdebug.core.sagemaker_utils": "is_sagemaker_job",
    "smdebug.core.singleton_utils": "get_hook set_hook del_hook",
    "smdebug.core.tfevent.event_file_writer": "EventFileWriter",
    "smdebug.core.tfevent.event_file_reader": "EventFileReader get_tensor_data",
    "smdebug.core.tfevent.events_writer": "EventsWriter",
    "smdebug.core.tfevent.index_file_writer": "IndexWriter Index EventWithIndex",
    "smdebug.core.tfevent.util": "make_tensor_proto _get_proto_dtype",
    "smdebug.core.tfevent.summary": "scalar_summary histogram_summary",
    "smdebug.core.tfevent.timeline_file_writer": "TimelineFileWriter",
    "smdebug.core.tfevent.proto.event_pb2": "Event",
    "smdebug.core.tfevent.proto.summary_pb2": "Summary",
    "smdebug.core.tfevent.proto.tensor_pb2": "TensorProto",
    "smdebug.core.tfevent.proto.tensor_shape_pb2": "TensorShapeProto",
    "smdebug.core.tfevent.proto.graph_pb2": "GraphDef",
    "smdebug.core.tfevent.proto.node_def_pb2": "NodeDef",
    "smdebug.core.tfevent.proto.attr_value_pb2": "AttrValue",
    "smdebug.core.tfevent.proto.resource_handle_pb2": "",
    "smdebug.core.tfevent.proto.types_pb2": "DT_FLOAT",
    "smdebug.core.tfevent.proto.versions_pb2": "VersionDef",
    "smdebug.core.tfrecord.record_writer": "RecordWriter CHECKSUM_MAGIC_BYTES masked_crc32c",
    "smdebug.core.tfrecord.record_reader": "RecordReader",
    "smdebug.core.tfrecord.tensor_reader": "TensorReader",
    "smdebug.core.tfrecord._crc32c": "crc32c",
    "smdebug.core.utils": "match_inc flatten split merge_two_dicts load_json_as_dict is_s3 "
    "get_path_to_collections get_path_to_events_directory get_worker_name_from_collection_file "
    "parse_worker_name_from_file serialize_tf_device deserialize_tf_device step_in_range "
    "size_and_shape make_numpy_array validate_custom_tensor_value index "
    "get_relative_event_file_path ensure_dir get_immediate_subdirectories list_files_in_directory "
    "list_collection_files_in_directory remove_file_if_exists get_region get_tb_worker get_node_id "
    "get_distributed_worker is_first_process remove_claim_file FRAMEWORK "
    "is_framework_version_supported check_smdataparallel_env check_smmodelparallel_training "
    "setup_profiler_report SagemakerSimulator ScriptSimulator error_handling_agent",
    "smdebug.profiler.profiler_config_parser": "ProfilerConfigParser get_profiler_config_parser",
    "smdebug.profiler.profiler_constants": "CONVERT_TO_MICROSECS",
    "tornasole": "modes",
    "tornasole.trials": "create_trial",
    "tornasole.rules": "Rule",
    "tornasole.rules.rule_invoker": "invoke_rule",
    "tornasole.rules.generic": "VanishingGradient ExplodingTensor SimilarAcrossRuns "
    "WeightUpdateRatio AllZero UnchangedTensor LossNotDecreasing",
    "tornasole.exceptions": "NoMoreData StepUnavailable TensorUnavailable",
    "tornasole.analysis.utils": "no_refresh refresh",
    "tornasole_rules": "modes",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_has_its_old_address(module):
    found = importlib.import_module(module)
    missing = [name for name in NAMES[module].split() if not hasattr(found, name)]
    assert not missing


# The table

WHOLE = {name: home for name, home in ADDRESSES.items() if isinstance(home, str)}
ENTRIES = [
    (module, name, home)
    for module, homes in ADDRESSES.items()
    if not isinstance(homes, str)
    for home, names in homes.items()
    for name in names.split()
]


def imported(module):
    """The module, or None if that needs a framework that is not installed."""
    try:
        return importlib.import_module(module)
    except FrameworkMissing:
        return None


@pytest.mark.parametrize("module", WHOLE)
def test_an_address_that_stands_for_a_module_is_that_module(module):
    home = imported(WHOLE[module])
    assert imported(module) is home
    # Below another name of a package, Python would load its modules a second time.
    assert not hasattr(home, "__path__")


@pytest.mark.parametrize(("module", "name", "home"), ENTRIES)
def test_a_name_is_the_same_object_as_at_home(module, name, home):
    if imported(home) is not None:
        there = getattr(importlib.import_module(home), name)
        assert getattr(importlib.import_module(module), name) is there


def test_every_address_is_listed_below_its_package_and_loaded_once():
    for address in each(ADDRESSES, at_least=70):
        package, _, name = address.rpartition(".")
        if package in ADDRESSES:
            assert name in dir(importlib.import_module(package))
        if imported(address) is not None:
            assert importlib.import_module(address) is sys.modules[address]


def test_an_address_that_has_a_file_would_hide_the_table():
    for address in each(set(ADDRESSES) - {"tornasole", "tornasole_rules"}, at_least=70):
        path = smdebug.__path__[0] + "/" + address.removeprefix("smdebug.").replace(".", "/")
        assert not importlib.machinery.PathFinder.find_spec(address, [path.rpartition("/")[0]])


# How Python code uses it


def run_python(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )


@pytest.mark.parametrize(
    "code",
    [
        "import smdebug.core.access_layer.file; smdebug.core.access_layer.file.TSAccessFile",
        "import smdebug.core.tfevent.proto.event_pb2 as e; e.Event",
        "from smdebug.core.tfevent.proto import event_pb2; event_pb2.Event",
        "from smdebug.core import modes, utils; modes.ModeKeys, utils.flatten",
        "import smdebug.core; smdebug.core.modes.ModeKeys",
        "import tornasole.rules.rule; tornasole.rules.rule.Rule",
        "import tornasole; tornasole.rules.Rule, tornasole.modes.TRAIN",
        "from tornasole.exceptions import *; StepNotYetAvailable",
        "from smdebug.core.modes import *; ModeKeys, ALLOWED_MODES",
        "from smdebug.core.utils import *; flatten, get_logger",
        "import smdebug.mxnet as smd; smd.get_hook, smd.SaveConfig",
        "import smdebug.trials, smdebug.rules, smdebug.analysis.utils",
    ],
)
def test_old_imports_work_in_a_new_process(code):
    completed = run_python(code)
    assert completed.returncode == 0, completed.stderr


def test_old_modules_are_found_without_being_loaded():
    code = (
        "import sys; from importlib.util import find_spec\n"
        "assert find_spec('smdebug.core.writer') and find_spec('tornasole.rules.generic')\n"
        "assert find_spec('smdebug.nothing') is None\n"
        "assert 'smdebug.compatibility.writer' not in sys.modules"
    )
    completed = run_python(code)
    assert completed.returncode == 0, completed.stderr


def test_pkgutil_lists_and_resolves_old_modules():
    import smdebug.core

    names = {module.name for module in pkgutil.iter_modules(smdebug.core.__path__)}
    assert {"modes", "writer", "tfevent"} <= names
    walked = {
        module.name: module.ispkg for module in pkgutil.walk_packages(smdebug.core.__path__, "smdebug.core.")
    }
    assert set(walked) == {name for name in ADDRESSES if name.startswith("smdebug.core.")}
    assert walked["smdebug.core.tfevent"]
    assert not walked["smdebug.core.tfevent.summary"]
    assert pkgutil.resolve_name("smdebug.core.modes:ModeKeys") is smdebug.modes
    assert pkgutil.resolve_name("smdebug.core.modes.ModeKeys") is smdebug.modes


def test_what_was_pickled_under_an_old_name_is_loaded():
    assert pickle.loads(b"csmdebug.core.modes\nModeKeys\n.") is smdebug.modes
    from smdebug.core.locations import TensorFileLocation

    location = TensorFileLocation(3, "worker_0")
    assert pickle.loads(pickle.dumps(location)) == location


@pytest.mark.parametrize(
    ("patched", "home"),
    [
        ("smdebug.core.sagemaker_utils.is_sagemaker_job", "smdebug.config.environment"),
        ("smdebug.core.json_config.DEFAULT_RESOURCE_CONFIG_FILE", "smdebug.config.json_config"),
        ("smdebug.core.tensor.StepState", "smdebug.trials.progress"),
    ],
)
def test_what_is_patched_at_an_old_address_is_patched_at_home(patched, home):
    name = patched.rpartition(".")[2]
    before = getattr(importlib.import_module(home), name)
    with mock.patch(patched, "patched"):
        assert getattr(importlib.import_module(home), name) == "patched"
    assert getattr(importlib.import_module(home), name) is before


# Wrong names


def test_a_wrong_name_is_an_attribute_error_that_says_what_there_is():
    import smdebug.core.tensor

    assert not hasattr(smdebug.core.tensor, "Tensors")
    with pytest.raises(AttributeError, match=r"no Tensors here\. Did you mean Tensor\?"):
        smdebug.core.tensor.Tensors
    with pytest.raises(AttributeError, match=r"It has ModeSteps, Step, StepState, Tensor\."):
        smdebug.core.tensor.xyz


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (
            "from smdebug.core.tensor import StepStates",
            ImportError,
            r"smdebug\.core\.tensor has no StepStates here\. Did you mean StepState\?",
        ),
        (
            "from smdebug.core.save_config import SaveConfigs",
            ImportError,
            r"smdebug\.config\.save_config",
        ),
        (
            "import smdebug.core.mode",
            ModuleNotFoundError,
            r"Did you mean modes\? docs/migrating\.md names what is not offered\.",
        ),
        ("from smdebug.core import mode", ImportError, "Did you mean modes"),
        (
            "import smdebug.profiler.analysis.utils",
            ModuleNotFoundError,
            r"smdebug\.profiler has no analysis here",
        ),
        ("import smdebug.nothing", ModuleNotFoundError, r"'smdebug\.nothing'"),
    ],
)
def test_a_wrong_import_says_what_there_is(code, error, sentence):
    with pytest.raises(error, match=sentence):
        exec(code, {})


def test_an_unknown_rule_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchRule"):
        importlib.import_module("tornasole.rules.generic").NoSuchRule


def test_smdebug_has_no_other_names():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        smdebug.nothing_like_it
    assert "Hook" in dir(smdebug)


# What an import costs


def test_reading_and_rules_load_neither_boto3_nor_protobuf_nor_a_framework():
    script = (
        "import sys, smdebug.trials, smdebug.rules\n"
        "heavy = {'boto3', 'botocore', 'google.protobuf', 'torch', 'tensorflow', 'mxnet', 'xgboost'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run_python(script).stdout.strip() == "[]"


def test_importing_smdebug_loads_no_large_module_and_not_the_table():
    script = (
        "import sys, smdebug; smdebug.modes; "
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'google', 'boto3', 'json') "
        "or m == 'smdebug.compatibility.addresses'])"
    )
    assert run_python(script).stdout.strip() == "[]"


# Values


def test_the_constants_have_their_old_values():
    constants = importlib.import_module("smdebug.core.config_constants")
    assert constants.CLAIM_FILENAME == "claim.smd"
    assert constants.DEFAULT_SAVED_COLLECTIONS == ["losses"]
    assert constants.DEFAULT_SAGEMAKER_METRICS_PATH == "SAGEMAKER_METRICS_DIRECTORY"


def test_the_library_can_be_switched_off(monkeypatch):
    validator = importlib.import_module("smdebug.core.config_validator").ConfigValidator("any")
    assert validator.validate_training_job()
    monkeypatch.setenv("USE_SMDEBUG", "False")
    assert not validator.validate_training_job()
    assert not validator.validate_profiler_config()
