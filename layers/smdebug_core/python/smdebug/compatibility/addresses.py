"""Where the modules of the old library live now.

A module whose value is a module is another name for it: both are one object, so that what is patched at the
old address is patched. A module whose value is a dictionary offers the names in it, each from its own module.
A package offers the modules below it as well.
"""

from __future__ import annotations

from collections.abc import Mapping

ADDRESSES: Mapping[str, str | Mapping[str, str]] = {
    "smdebug.analysis": {},
    "smdebug.analysis.utils": {
        "smdebug.trials.refreshing": "no_refresh refresh",
        "smdebug.compatibility.utils": "parse_bool parse_list_from_str",
    },
    "smdebug.core": {},
    "smdebug.core.access_layer": {
        "smdebug.compatibility.access_files": "TSAccessFile TSAccessS3",
        "smdebug.compatibility.training_end": (
            "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC ENV_RULE_STOP_SIGNAL_FILENAME check_dir_exists "
            "has_training_ended is_rule_signalled_gracetime_passed training_has_ended"
        ),
    },
    "smdebug.core.access_layer.base": "smdebug.compatibility.access_files",
    "smdebug.core.access_layer.file": "smdebug.compatibility.access_files",
    "smdebug.core.access_layer.s3": "smdebug.compatibility.access_files",
    "smdebug.core.access_layer.s3handler": "smdebug.compatibility.buckets",
    "smdebug.core.access_layer.utils": {
        "smdebug.compatibility.buckets": "delete_s3_prefixes",
        "smdebug.compatibility.training_end": (
            "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC END_OF_JOB_FILENAME ENV_RULE_STOP_SIGNAL_FILENAME "
            "GRACETIME_ENV check_dir_exists file_exists has_training_ended "
            "is_rule_signalled_gracetime_passed training_has_ended"
        ),
    },
    "smdebug.core.collection": {
        "smdebug.config.collection": "ALLOWED_PARAMS Collection",
        "smdebug.config.keys": (
            "CollectionKeys DEFAULT_MXNET_COLLECTIONS DEFAULT_PYTORCH_COLLECTIONS "
            "DEFAULT_TF_COLLECTIONS DEFAULT_XGBOOST_COLLECTIONS NON_HISTOGRAM_COLLECTIONS "
            "NON_REDUCTION_COLLECTIONS SCALAR_COLLECTIONS SM_METRIC_COLLECTIONS SUMMARIES_COLLECTIONS"
        ),
    },
    "smdebug.core.collection_manager": "smdebug.config.collection_manager",
    "smdebug.core.config_constants": "smdebug.config.constants",
    "smdebug.core.config_validator": "smdebug.config.validator",
    "smdebug.core.error_handling_agent": "smdebug.saving.hooks.error_agent",
    "smdebug.core.hook": {
        "smdebug.saving.hooks.hook": "CallbackHook",
        "smdebug.saving.hooks.base_hook": "BaseHook ScalarCache",
    },
    "smdebug.core.hook_utils": "smdebug.saving.place.places",
    "smdebug.core.index_reader": "smdebug.trials.live.index_reader",
    "smdebug.core.json_config": {
        "smdebug.config.constants": "CONFIG_FILE_PATH_ENV_STR DEFAULT_WORKER_NAME",
        "smdebug.config.json_config": (
            "DEFAULT_RESOURCE_CONFIG_FILE DEFAULT_SAGEMAKER_OUTDIR "
            "add_collections_to_manager collect_hook_config_params create_hook_from_json_config "
            "get_include_collections get_json_config_as_dict get_node_id_from_resource_config "
            "get_tensorboard_dir_from_json_config parse_save_config_dict parse_save_config_modes_dict"
        ),
    },
    "smdebug.core.locations": {
        "smdebug.compatibility.locations": (
            "IndexFileLocationUtils TensorFileLocation TensorboardFileLocation TraceFileLocation"
        ),
        "smdebug.trials.live.index_reader": "TensorLocation TensorShape",
    },
    "smdebug.core.logger": "smdebug.logger",
    "smdebug.core.modes": {
        "smdebug.mode_keys": "ALLOWED_MODES ALLOWED_MODE_NAMES ModeKeys str_to_mode_keys",
        "smdebug.compatibility.utils": "MODE_PLUGIN_NAME MODE_STEP_PLUGIN_NAME",
    },
    "smdebug.core.reader": "smdebug.compatibility.reader",
    "smdebug.core.reduction_config": "smdebug.config.reduction_config",
    "smdebug.core.reductions": "smdebug.numbers.reductions",
    "smdebug.core.s3_utils": {"smdebug.compatibility.buckets": "list_s3_objects"},
    "smdebug.core.sagemaker_utils": "smdebug.config.environment",
    "smdebug.core.save_config": "smdebug.config.save_config",
    "smdebug.core.singleton_utils": "smdebug.saving.hooks.singleton",
    "smdebug.core.state_store": "smdebug.saving.place.resume",
    "smdebug.core.tensor": {
        "smdebug.compatibility.tensor_steps": "ModeSteps Step",
        "smdebug.trials.progress": "StepState",
        "smdebug.trials.tensor": "Tensor",
    },
    "smdebug.core.tfevent": {},
    "smdebug.core.tfevent.event_file_reader": "smdebug.compatibility.event_files",
    "smdebug.core.tfevent.event_file_writer": "smdebug.compatibility.event_files",
    "smdebug.core.tfevent.events_writer": "smdebug.compatibility.event_files",
    "smdebug.core.tfevent.index_file_writer": "smdebug.compatibility.index_files",
    "smdebug.core.tfevent.proto": {},
    "smdebug.core.tfevent.proto.attr_value_pb2": "smdebug.files.proto.attr_value_pb2",
    "smdebug.core.tfevent.proto.event_pb2": "smdebug.files.proto.event_pb2",
    "smdebug.core.tfevent.proto.graph_pb2": "smdebug.files.proto.graph_pb2",
    "smdebug.core.tfevent.proto.node_def_pb2": "smdebug.files.proto.node_def_pb2",
    "smdebug.core.tfevent.proto.resource_handle_pb2": "smdebug.files.proto.resource_handle_pb2",
    "smdebug.core.tfevent.proto.summary_pb2": "smdebug.files.proto.summary_pb2",
    "smdebug.core.tfevent.proto.tensor_pb2": "smdebug.files.proto.tensor_pb2",
    "smdebug.core.tfevent.proto.tensor_shape_pb2": "smdebug.files.proto.tensor_shape_pb2",
    "smdebug.core.tfevent.proto.types_pb2": "smdebug.files.proto.types_pb2",
    "smdebug.core.tfevent.proto.versions_pb2": "smdebug.files.proto.versions_pb2",
    "smdebug.core.tfevent.summary": "smdebug.compatibility.summaries",
    "smdebug.core.tfevent.timeline_file_writer": "smdebug.compatibility.timelines",
    "smdebug.core.tfevent.util": "smdebug.compatibility.summaries",
    "smdebug.core.tfrecord": {},
    "smdebug.core.tfrecord._crc32c": {"smdebug.files.checksum": "crc32c"},
    "smdebug.core.tfrecord.record_reader": "smdebug.compatibility.records",
    "smdebug.core.tfrecord.record_writer": "smdebug.compatibility.records",
    "smdebug.core.tfrecord.tensor_reader": "smdebug.compatibility.records",
    "smdebug.core.utils": "smdebug.compatibility.utils",
    "smdebug.core.writer": "smdebug.compatibility.writer",
    "smdebug.mxnet": {
        "smdebug": "CollectionKeys ReductionConfig SaveConfig SaveConfigMode modes",
        "smdebug.compatibility.mxnet.collection": "Collection",
        "smdebug.compatibility.mxnet.hook": "Hook",
        "smdebug.compatibility.mxnet.singleton_utils": "get_hook",
        "smdebug.saving.hooks.singleton": "del_hook set_hook",
        "smdebug.trials": "create_trial",
    },
    "smdebug.mxnet.collection": "smdebug.compatibility.mxnet.collection",
    "smdebug.mxnet.hook": "smdebug.compatibility.mxnet.hook",
    "smdebug.mxnet.singleton_utils": "smdebug.compatibility.mxnet.singleton_utils",
    "smdebug.profiler": {},
    "smdebug.profiler.profiler_config_parser": "smdebug.compatibility.profiler_config_parser",
    "smdebug.profiler.profiler_constants": "smdebug.compatibility.profiler_constants",
    "smdebug.pytorch.utils": {
        "smdebug.compatibility.framework_helpers": (
            "get_reduction_of_data is_pt_1_5 is_pt_1_6 is_pt_1_7 is_pt_1_8 is_pt_1_9"
        ),
    },
    "smdebug.tensorflow.hook": {
        "smdebug.tensorflow.keras": "KerasHook",
        "smdebug.tensorflow.session": "EstimatorHook SessionHook",
    },
    "smdebug.tensorflow.utils": {
        "smdebug.compatibility.framework_helpers": (
            "TFDistributionStrategy does_tf_support_mixed_precision_training tensor_can_be_saved"
        ),
        "smdebug.tensorflow.tf_config": (
            "get_chief_worker_from_tf_config get_num_workers_from_tf_config "
            "get_worker_id_from_tf_config is_parameter_server_strategy load_tf_config_json"
        ),
    },
    "smdebug.xgboost.utils": {
        "smdebug.compatibility.framework_helpers": (
            "is_xgb_1_3_and_later is_xgb_1_5_and_later is_xgb_1_7_and_later"
        ),
        "smdebug.xgboost.data": "get_dmatrix parse_tree_model",
    },
    "tornasole": {"smdebug": "modes"},
    "tornasole.analysis": {},
    "tornasole.analysis.utils": {
        "smdebug.trials.refreshing": "no_refresh refresh",
        "smdebug.compatibility.utils": "parse_bool parse_list_from_str",
    },
    "tornasole.exceptions": "smdebug.exceptions",
    "tornasole.rules": {"smdebug.rules": "RequiredTensors Rule invoke invoke_rule"},
    "tornasole.rules.generic": "smdebug.rules.generic",
    "tornasole.rules.req_tensors": "smdebug.rules.req_tensors",
    "tornasole.rules.rule": "smdebug.rules.rule",
    "tornasole.rules.rule_invoker": "smdebug.rules.rule_invoker",
    "tornasole.trials": {"smdebug.trials": "LocalTrial S3Trial Trial create_trial"},
    "tornasole_rules": {"smdebug": "modes"},
}
