"""Code and tests written against the old library find every name at its old address."""

import importlib
import subprocess
import sys

import pytest

FRAMEWORK_NAMES = (
    "get_hook set_hook del_hook Collection CollectionKeys SaveConfig SaveConfigMode ReductionConfig "
    "modes create_trial"
)
ADDRESSES = {
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


@pytest.mark.parametrize("module", ADDRESSES)
def test_every_name_has_its_old_address(module):
    found = importlib.import_module(module)
    missing = [name for name in ADDRESSES[module].split() if not hasattr(found, name)]
    assert not missing


def test_the_old_addresses_lead_to_the_same_classes():
    import smdebug
    from smdebug.core.modes import ModeKeys
    from smdebug.core.save_config import SaveConfig
    from smdebug.trials import create_trial
    from smdebug.trials.utils import create_trial as from_utils
    from tornasole.trials import create_trial as older

    assert smdebug.modes is ModeKeys
    assert smdebug.SaveConfig is SaveConfig
    assert create_trial is from_utils is older


def test_reading_and_rules_load_neither_boto3_nor_protobuf_nor_a_framework():
    script = (
        "import sys, smdebug.trials, smdebug.rules\n"
        "heavy = {'boto3', 'botocore', 'google.protobuf', 'torch', 'tensorflow', 'mxnet', 'xgboost'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == "[]"
