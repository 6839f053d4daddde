"""For code written against smdebug: small helpers that other people's scripts and tests import.

Nothing in this library uses them.
"""

from smdebug.config.validator import FRAMEWORK, is_framework_version_supported
from smdebug.core.utils.lists import (
    flatten,
    index,
    load_json_as_dict,
    match_inc,
    merge_two_dicts,
    split,
    step_in_range,
)
from smdebug.core.utils.paths import (
    deserialize_tf_device,
    ensure_dir,
    get_immediate_subdirectories,
    get_path_to_collections,
    get_path_to_events_directory,
    get_relative_event_file_path,
    get_worker_name_from_collection_file,
    is_s3,
    list_collection_files_in_directory,
    list_files_in_directory,
    parse_worker_name_from_file,
    remove_file_if_exists,
    serialize_tf_device,
)
from smdebug.core.utils.process import (
    check_smdataparallel_env,
    check_smmodelparallel_training,
    get_aws_region_from_processing_job_arn,
    get_distributed_worker,
    get_node_id,
    get_region,
    get_tb_worker,
    is_first_process,
    remove_claim_file,
    setup_profiler_report,
)
from smdebug.core.utils.simulators import SagemakerSimulator, ScriptSimulator
from smdebug.core.utils.values import (
    make_numpy_array,
    size_and_shape,
    validate_custom_tensor_value,
)
from smdebug.logger import get_logger
from smdebug.saving.error_agent import ErrorHandlingAgent

error_handling_agent = ErrorHandlingAgent.get_error_handling_agent()

__all__ = [
    "FRAMEWORK",
    "SagemakerSimulator",
    "ScriptSimulator",
    "check_smdataparallel_env",
    "check_smmodelparallel_training",
    "deserialize_tf_device",
    "ensure_dir",
    "error_handling_agent",
    "flatten",
    "get_aws_region_from_processing_job_arn",
    "get_distributed_worker",
    "get_immediate_subdirectories",
    "get_logger",
    "get_node_id",
    "get_path_to_collections",
    "get_path_to_events_directory",
    "get_region",
    "get_relative_event_file_path",
    "get_tb_worker",
    "get_worker_name_from_collection_file",
    "index",
    "is_first_process",
    "is_framework_version_supported",
    "is_s3",
    "list_collection_files_in_directory",
    "list_files_in_directory",
    "load_json_as_dict",
    "make_numpy_array",
    "match_inc",
    "merge_two_dicts",
    "parse_worker_name_from_file",
    "remove_claim_file",
    "remove_file_if_exists",
    "serialize_tf_device",
    "setup_profiler_report",
    "size_and_shape",
    "split",
    "step_in_range",
    "validate_custom_tensor_value",
]
