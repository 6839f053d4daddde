"""The addresses under which code for the old library finds configuration and hooks."""

import importlib
import subprocess
import sys

import pytest

ADDRESSES = {
    "smdebug": "modes SaveConfig SaveConfigMode ReductionConfig CollectionKeys Hook __version__",
    "smdebug.core.modes": "ModeKeys ALLOWED_MODES ALLOWED_MODE_NAMES str_to_mode_keys "
    "MODE_PLUGIN_NAME MODE_STEP_PLUGIN_NAME",
    "smdebug.core.save_config": "SaveConfig SaveConfigMode",
    "smdebug.core.reduction_config": "ReductionConfig ALLOWED_REDUCTIONS ALLOWED_NORMS",
    "smdebug.core.collection": "Collection CollectionKeys SCALAR_COLLECTIONS SM_METRIC_COLLECTIONS "
    "SUMMARIES_COLLECTIONS NON_REDUCTION_COLLECTIONS NON_HISTOGRAM_COLLECTIONS "
    "DEFAULT_TF_COLLECTIONS DEFAULT_PYTORCH_COLLECTIONS DEFAULT_MXNET_COLLECTIONS "
    "DEFAULT_XGBOOST_COLLECTIONS",
    "smdebug.core.collection_manager": "CollectionManager",
    "smdebug.core.json_config": "get_json_config_as_dict collect_hook_config_params "
    "get_include_collections add_collections_to_manager create_hook_from_json_config "
    "parse_save_config_dict parse_save_config_modes_dict get_tensorboard_dir_from_json_config "
    "get_node_id_from_resource_config CONFIG_FILE_PATH_ENV_STR DEFAULT_WORKER_NAME "
    "DEFAULT_SAGEMAKER_OUTDIR DEFAULT_RESOURCE_CONFIG_FILE",
    "smdebug.core.config_constants": "CLAIM_FILENAME DEFAULT_WORKER_NAME DEFAULT_COLLECTIONS_FILE_NAME "
    "DEFAULT_SAGEMAKER_OUTDIR DEFAULT_SAVED_COLLECTIONS METADATA_FILENAME LOG_DUPLICATION_THRESHOLD "
    "DEFAULT_SAGEMAKER_METRICS_PATH CONFIG_FILE_PATH_ENV_STR TENSORBOARD_CONFIG_FILE_PATH_ENV_STR "
    "CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR INCOMPLETE_STEP_WAIT_WINDOW_KEY "
    "INCOMPLETE_STEP_WAIT_WINDOW_DEFAULT TRAINING_END_DELAY_REFRESH_KEY "
    "TRAINING_END_DELAY_REFRESH_DEFAULT MISSING_EVENT_FILE_RETRY_LIMIT_KEY DEFAULT_CONFIG_FILE_PATH "
    "DEFAULT_SAGEMAKER_TENSORBOARD_PATH DEFAULT_CHECKPOINT_CONFIG_FILE DEFAULT_RESOURCE_CONFIG_FILE",
    "smdebug.core.config_validator": "ConfigValidator get_config_validator reset_config_validator",
    "smdebug.core.hook": "BaseHook CallbackHook ScalarCache",
    "smdebug.core.hook_utils": "verify_and_get_out_dir get_tensorboard_dir",
    "smdebug.core.state_store": "StateStore",
    "smdebug.core.singleton_utils": "get_hook set_hook del_hook",
    "smdebug.core.sagemaker_utils": "is_sagemaker_job",
    "smdebug.core.error_handling_agent": "ErrorHandlingAgent BASE_ERROR_MESSAGE",
    "smdebug.core.logger": "get_logger DuplicateLogFilter MaxLevelFilter",
    "smdebug.profiler.profiler_config_parser": "ProfilerConfigParser get_profiler_config_parser",
}


@pytest.mark.parametrize("module", ADDRESSES)
def test_the_old_address_leads_to_everything_it_had(module):
    found = importlib.import_module(module)
    missing = [name for name in ADDRESSES[module].split() if not hasattr(found, name)]
    assert missing == []
    if module.startswith("smdebug.core."):
        assert found.__doc__.startswith("For code written against smdebug: ")


def test_what_the_constants_say():
    constants = importlib.import_module("smdebug.core.config_constants")
    assert constants.CLAIM_FILENAME == "claim.smd"
    assert constants.DEFAULT_SAVED_COLLECTIONS == ["losses"]
    assert constants.DEFAULT_SAGEMAKER_METRICS_PATH == "SAGEMAKER_METRICS_DIRECTORY"


def test_importing_smdebug_loads_next_to_nothing():
    script = (
        "import sys, smdebug; smdebug.modes; "
        "print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'google', 'boto3', 'json')])"
    )
    path = ":".join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": path},
    )
    assert done.stdout.strip() == "[]"


def test_smdebug_has_no_other_names():
    smdebug = importlib.import_module("smdebug")
    with pytest.raises(AttributeError, match="nothing_like_it"):
        smdebug.nothing_like_it
    assert "Hook" in dir(smdebug)


def test_the_library_can_be_switched_off(monkeypatch):
    validator = importlib.import_module("smdebug.core.config_validator").ConfigValidator("any")
    assert validator.validate_training_job()
    monkeypatch.setenv("USE_SMDEBUG", "False")
    assert not validator.validate_training_job()
    assert not validator.validate_profiler_config()
