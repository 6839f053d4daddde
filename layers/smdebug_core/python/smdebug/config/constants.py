"""Environment variables, file names and defaults, by the names other people import them under."""

from __future__ import annotations

from smdebug.files.names import CLAIM

CONFIG_FILE_PATH_ENV_STR = "SMDEBUG_CONFIG_FILE_PATH"
TENSORBOARD_CONFIG_FILE_PATH_ENV_STR = "TENSORBOARD_CONFIG_FILE_PATH"
CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR = "CHECKPOINT_CONFIG_FILE_PATH"
USE_SMDEBUG_ENV_VAR = "USE_SMDEBUG"
TRAINING_JOB_NAME_ENV_VAR = "TRAINING_JOB_NAME"
CALLABLE_CACHE_ENV_VAR = "SMDEBUG_KERAS_CALLABLE_CACHE_TYPE"
PAPERMILL_EXECUTION_ENV_VAR = "PAPERMILL_EXECUTION"
INCOMPLETE_STEP_WAIT_WINDOW_KEY = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT = 1000
TRAINING_END_DELAY_REFRESH_KEY = "SMDEBUG_TRAINING_END_DELAY_REFRESH"
TRAINING_END_DELAY_REFRESH_DEFAULT = 1
MISSING_EVENT_FILE_RETRY_LIMIT_KEY = "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"
MISSING_EVENT_FILE_RETRY_LIMIT = 100
WRITE_PATIENCE_SECONDS_KEY = "SMDEBUG_WRITE_PATIENCE_SECONDS"
ORIGIN_KEY = "SMDEBUG_ORIGIN"  # "versions": nothing else is kept of where a run comes from
KEPT_NAMES_KEY = "SMDEBUG_NOT_SECRET"  # names of values that are kept, by commas
WRITE_QUEUE_MB_KEY = "SMDEBUG_WRITE_QUEUE_MB"
# The name of a variable, not a path: that is what the old library held under this name.
DEFAULT_SAGEMAKER_METRICS_PATH = "SAGEMAKER_METRICS_DIRECTORY"

DEFAULT_CONFIG_FILE_PATH = "/opt/ml/input/config/debughookconfig.json"
DEFAULT_SAGEMAKER_TENSORBOARD_PATH = "/opt/ml/input/config/tensorboardoutputconfig.json"
DEFAULT_CHECKPOINT_CONFIG_FILE = "/opt/ml/input/config/checkpointconfig.json"
DEFAULT_RESOURCE_CONFIG_FILE = "/opt/ml/input/config/resourceconfig.json"
DEFAULT_SAGEMAKER_OUTDIR = "/opt/ml/output/tensors"

CONFIG_OUTDIR_KEY = "LocalPath"
CHECKPOINT_DIR_KEY = "LocalPath"
CONFIG_HOOK_PARAMS_KEY = "HookParameters"
CONFIG_COLLECTION_CONFIG_KEY = "CollectionConfigurations"
CONFIG_COLLECTION_NAME_KEY = "CollectionName"
CONFIG_COLLECTION_PARAMS_KEY = "CollectionParameters"
CONFIG_DRYRUN_KEY = "dry_run"
CONFIG_INCLUDE_REGEX_KEY = "include_regex"
CONFIG_INCLUDE_WORKERS_KEY = "include_workers"
CONFIG_RDN_CFG_KEY = "reduction_config"
CONFIG_REDUCTION_CONFIGS_KEY = "reduction_configs"
CONFIG_RULES_KEY = "DebugRuleConfigurations"
CONFIG_SAVE_ALL_KEY = "save_all"
CONFIG_SAVE_CONFIGS_KEY = "save_configs"
EXPORT_TENSORBOARD_KEY = "export_tensorboard"
TENSORBOARD_DIR_KEY = "tensorboard_dir"

CLAIM_FILENAME = CLAIM
DEFAULT_WORKER_NAME = "worker_0"
DEFAULT_COLLECTIONS_FILE_NAME = "worker_0_collections.json"
DEFAULT_SAVED_COLLECTIONS = ["losses"]
DEFAULT_CALLABLE_CACHE = "CACHE_PER_MODE"
LOG_DUPLICATION_THRESHOLD = 3

PROFILER_REPORT_VERSION = "v1"
# Nothing calls it, and the name cannot be resolved: this library sends no telemetry.
PROFILER_TELEMETRY_URL = "https://telemetry.{region}.invalid"

METADATA_FILENAME = "metadata.json"
METADATA_FILENAME_S3_UPLOADED = "metadata.json.sagemaker-uploaded"
SAGEMAKER_UPLOADED_MARK = "sagemaker-uploaded"
TRAINING_RUN = "training-run"
LATEST_GLOBAL_STEP_SAVED = "latest-global-step-saved"
LATEST_GLOBAL_STEP_SEEN = "latest-global-step-seen"
LATEST_MODE_STEP = "latest-mode-step"
