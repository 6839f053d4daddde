"""For code written against smdebug: `smdebug.config.json_config` reads a hook's JSON."""

from smdebug.config.constants import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_RESOURCE_CONFIG_FILE,
    DEFAULT_SAGEMAKER_OUTDIR,
    DEFAULT_WORKER_NAME,
)
from smdebug.config.json_config import (
    add_collections_to_manager,
    collect_hook_config_params,
    create_hook_from_json_config,
    get_include_collections,
    get_json_config_as_dict,
    get_node_id_from_resource_config,
    get_tensorboard_dir_from_json_config,
    parse_save_config_dict,
    parse_save_config_modes_dict,
)

__all__ = [
    "CONFIG_FILE_PATH_ENV_STR",
    "DEFAULT_RESOURCE_CONFIG_FILE",
    "DEFAULT_SAGEMAKER_OUTDIR",
    "DEFAULT_WORKER_NAME",
    "add_collections_to_manager",
    "collect_hook_config_params",
    "create_hook_from_json_config",
    "get_include_collections",
    "get_json_config_as_dict",
    "get_node_id_from_resource_config",
    "get_tensorboard_dir_from_json_config",
    "parse_save_config_dict",
    "parse_save_config_modes_dict",
]
