"""A hook from a JSON file, as SageMaker's `DebugHookConfig` writes it.

    {"LocalPath": "/opt/ml/output/tensors",
     "HookParameters": {"save_interval": "100", "eval.save_interval": "10"},
     "CollectionConfigurations": [
        {"CollectionName": "gradients", "CollectionParameters": {"reductions": "min,max,abs_mean"}}],
     "DebugRuleConfigurations": [
        {"RuleConfigurationName": "vanishing", "RuleParameters": {"rule_to_invoke": "VanishingGradient"}}]}

A value is taken from the first of these that has it: the collection's parameter for that mode
(`train.save_interval`), the collection's for every mode, the hook's for that mode, the hook's for every
mode, the default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from smdebug.config.constants import (
    CHECKPOINT_DIR_KEY,
    CONFIG_COLLECTION_CONFIG_KEY,
    CONFIG_COLLECTION_NAME_KEY,
    CONFIG_COLLECTION_PARAMS_KEY,
    CONFIG_DRYRUN_KEY,
    CONFIG_HOOK_PARAMS_KEY,
    CONFIG_INCLUDE_REGEX_KEY,
    CONFIG_INCLUDE_WORKERS_KEY,
    CONFIG_OUTDIR_KEY,
    CONFIG_RDN_CFG_KEY,
    CONFIG_REDUCTION_CONFIGS_KEY,
    CONFIG_RULES_KEY,
    CONFIG_SAVE_ALL_KEY,
    CONFIG_SAVE_CONFIGS_KEY,
    DEFAULT_RESOURCE_CONFIG_FILE,
    DEFAULT_SAGEMAKER_OUTDIR,
    EXPORT_TENSORBOARD_KEY,
    TENSORBOARD_DIR_KEY,
)
from smdebug.config.environment import (
    checkpoint_config_file_path,
    config_file_path,
    tensorboard_config_file_path,
)
from smdebug.config.parsing import Default, json_object, patterns, truth, whole_numbers
from smdebug.config.patterns import searcher
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SAVE_CONFIG_FIELDS, SaveConfig, SaveConfigMode
from smdebug.config.unknown_names import unknown_keys
from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.config.collection import Collection
    from smdebug.config.collection_manager import CollectionManager

Parameters = Mapping[str, Any]
ModeParameters = Mapping[ModeKeys, Parameters]

SAVE_CONFIG_MODES_KEY = "save_config_modes"


class _Hook(Protocol):
    @property
    def collection_manager(self) -> CollectionManager: ...

    def set_rules(self, rules: Any) -> None: ...


H = TypeVar("H", bound=_Hook)


def create_hook_from_json_config(
    hook_cls: Callable[..., H],
    json_config_path: str | None,
    default_values: Parameters | None = None,
) -> H:
    """Return a hook of that class, configured by the JSON file; raise FileNotFoundError if it is missing."""
    described = get_json_config_as_dict(json_config_path)
    for problem in unknown_keys(described):  # of collections the first step warns
        get_logger().warning("%s It is ignored", problem)
    parameters = collect_hook_config_params(described)
    with_defaults = _over(parameters[SAVE_CONFIG_MODES_KEY], default_values or {})
    parameters[SAVE_CONFIG_MODES_KEY] = with_defaults
    hook = hook_cls(
        out_dir=parameters["out_dir"],
        export_tensorboard=parameters.get(EXPORT_TENSORBOARD_KEY, False),
        tensorboard_dir=parameters.get(TENSORBOARD_DIR_KEY),
        dry_run=parameters.get(CONFIG_DRYRUN_KEY, False),
        reduction_config=parameters.get(CONFIG_RDN_CFG_KEY),
        save_config=_save_config(with_defaults),
        include_regex=parameters.get(CONFIG_INCLUDE_REGEX_KEY),
        include_collections=get_include_collections(described) or None,
        include_workers=parameters.get(CONFIG_INCLUDE_WORKERS_KEY, Default("one")),
        save_all=parameters.get(CONFIG_SAVE_ALL_KEY, False),
    )
    add_collections_to_manager(hook.collection_manager, described, parameters)
    if rules := described.get(CONFIG_RULES_KEY):
        hook.set_rules({CONFIG_RULES_KEY: rules})
    return hook


def check_hook_config(params_dict: Parameters) -> None:
    """Raise `SMDebugValueError` if a hook would refuse the parameters; set up nothing."""
    parameters = collect_hook_config_params(params_dict)
    _save_config(parameters[SAVE_CONFIG_MODES_KEY])
    for name, given in _collections(params_dict):
        _save_config(parse_save_config_modes_dict(given))
        _reduction_config(given, None)
        truth(given.get("save_histogram", True), f"save_histogram of {name}")
        _check_patterns(given)
    _check_patterns(_parameters(params_dict.get(CONFIG_HOOK_PARAMS_KEY), CONFIG_HOOK_PARAMS_KEY))


def _check_patterns(given: Parameters) -> None:
    for pattern in patterns(given.get(CONFIG_INCLUDE_REGEX_KEY), "include_regex"):
        searcher(pattern)


def get_json_config_as_dict(json_config_path: str | None = None) -> dict[str, Any]:
    """Return the JSON file at that path, or else at `SMDEBUG_CONFIG_FILE_PATH`."""
    path = json_config_path or config_file_path()
    return json_object(Path(path).read_bytes(), f"The configuration file {path}")


def collect_hook_config_params(params_dict: Parameters) -> dict[str, Any]:
    """Return the parameters of the hook itself."""
    given = _parameters(params_dict.get(CONFIG_HOOK_PARAMS_KEY), CONFIG_HOOK_PARAMS_KEY)
    collected: dict[str, Any] = {
        CONFIG_RDN_CFG_KEY: _reduction_config(given, None),
        CONFIG_REDUCTION_CONFIGS_KEY: {},
        CONFIG_SAVE_CONFIGS_KEY: {},
        CONFIG_INCLUDE_REGEX_KEY: patterns(given.get(CONFIG_INCLUDE_REGEX_KEY), "include_regex") or None,
        "out_dir": params_dict.get(CONFIG_OUTDIR_KEY) or DEFAULT_SAGEMAKER_OUTDIR,
        SAVE_CONFIG_MODES_KEY: parse_save_config_modes_dict(given),
        EXPORT_TENSORBOARD_KEY: truth(given.get(EXPORT_TENSORBOARD_KEY, False), EXPORT_TENSORBOARD_KEY),
        TENSORBOARD_DIR_KEY: given.get(TENSORBOARD_DIR_KEY),
    }
    for flag in (CONFIG_SAVE_ALL_KEY, CONFIG_DRYRUN_KEY):
        if flag in given:
            collected[flag] = truth(given[flag], flag)
    if CONFIG_INCLUDE_WORKERS_KEY in given:
        collected[CONFIG_INCLUDE_WORKERS_KEY] = str(given[CONFIG_INCLUDE_WORKERS_KEY])
    return collected


def get_include_collections(params_dict: Parameters) -> list[str]:
    """Return the names of the configured collections, all of which are included."""
    return list(dict.fromkeys(name for name, _ in _collections(params_dict)))


def add_collections_to_manager(
    collection_manager: CollectionManager, params_dict: Parameters, hook_params: Parameters
) -> None:
    """Set up the configured collections; several entries of a collection are merged."""
    wishes: dict[str, list[Parameters]] = {}
    for name, given in _collections(params_dict):
        wishes.setdefault(name, []).append(given)
    modes = hook_params[SAVE_CONFIG_MODES_KEY]
    of_hook = hook_params.get(CONFIG_RDN_CFG_KEY)
    for name, entries in wishes.items():
        collection = collection_manager.get(name)
        schedules = [_save_config(parse_save_config_modes_dict(entry, modes)) for entry in entries]
        collection.save_config = reduce(_both_schedules, schedules)
        reductions = [_reduction_config(entry, of_hook) for entry in entries]
        if any(reductions):
            whole = of_hook or ReductionConfig(save_raw_tensor=True)
            first, *others = [config or whole for config in reductions]
            collection.reduction_config = first.with_(*others)
        for entry in entries:
            _include(collection, patterns(entry.get(CONFIG_INCLUDE_REGEX_KEY), "include_regex"))
        histograms = [truth(entry.get("save_histogram", True), "save_histogram") for entry in entries]
        collection.save_histogram = any(histograms)


def parse_save_config_modes_dict(
    params: Parameters, base_config_modes: ModeParameters | None = None
) -> dict[ModeKeys, dict[str, Any]]:
    """Return the settings of every mode; missing ones come from `base_config_modes`."""
    for_every_mode = parse_save_config_dict(params)
    return {
        mode: {
            **(base_config_modes or {}).get(mode, {}),
            **for_every_mode,
            **parse_save_config_dict(params, mode),
        }
        for mode in ModeKeys
    }


def parse_save_config_dict(params: Parameters, mode: ModeKeys | None = None) -> dict[str, Any]:
    """Return the settings of a mode (`train.save_interval`), or of all modes (`save_interval`)."""
    if mode is not None and not isinstance(mode, ModeKeys):
        raise SMDebugValueError(f"{mode!r} is not a mode")
    prefix = "" if mode is None else f"{mode.name.lower()}."
    given = _parameters(params, "Save parameters")
    settings = {field: given[prefix + field] for field in SAVE_CONFIG_FIELDS if prefix + field in given}
    if "save_steps" in settings:
        settings["save_steps"] = whole_numbers(settings["save_steps"], prefix + "save_steps")
    return settings


def get_tensorboard_dir_from_json_config() -> str | None:
    """Return the folder for TensorBoard files in a SageMaker job, or None."""
    return _local_path(tensorboard_config_file_path(), "LocalPath")


def get_checkpoint_dir_from_json_config() -> str | None:
    """Return the folder of the training's checkpoints, or None."""
    return _local_path(checkpoint_config_file_path(), CHECKPOINT_DIR_KEY)


def get_node_id_from_resource_config() -> str | None:
    """Return this host's name in a SageMaker job, or None."""
    return _local_path(DEFAULT_RESOURCE_CONFIG_FILE, "current_host")


def _local_path(config_file: str, key: str) -> str | None:
    try:
        value = json.loads(Path(config_file).read_bytes()).get(key)
    except (OSError, ValueError, AttributeError):
        return None
    return value if isinstance(value, str) and value else None


def _collections(params_dict: Parameters) -> Iterable[tuple[str, Parameters]]:
    configured = params_dict.get(CONFIG_COLLECTION_CONFIG_KEY) or []
    if not isinstance(configured, list):
        raise SMDebugValueError(f"'{CONFIG_COLLECTION_CONFIG_KEY}' must be a list in JSON config.")
    for entry in configured:
        name = entry.get(CONFIG_COLLECTION_NAME_KEY) if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name:
            raise SMDebugValueError(f"Must specify '{CONFIG_COLLECTION_NAME_KEY}' in JSON config.")
        yield name, _parameters(entry.get(CONFIG_COLLECTION_PARAMS_KEY), f"Parameters of {name}")


def _parameters(given: Any, what: str) -> dict[str, Any]:
    """Return the parameters by lower-case name, without those that are null."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SMDebugValueError(f"{what} must be a JSON object, not {given!r}")
    return {str(key).strip().lower(): value for key, value in given.items() if value is not None}


def _reduction_config(given: Parameters, of_hook: ReductionConfig | None) -> ReductionConfig | None:
    """Return the requested reductions, or None if the parameters do not mention any.

    Named reductions replace all others; flags alone leave the rest unchanged.
    """
    flags = {key: given[key] for key in ("save_raw_tensor", "save_shape") if key in given}
    if given.get("reductions"):
        return ReductionConfig.from_dict({"reductions": given["reductions"], **flags})
    if not flags:
        return None
    before = of_hook or ReductionConfig(save_raw_tensor=True)
    return ReductionConfig.from_dict({**before.to_json_dict(), **flags})


def _save_config(modes: ModeParameters) -> SaveConfig:
    return SaveConfig({mode: SaveConfigMode.from_dict(settings) for mode, settings in modes.items()})


def _over(modes: ModeParameters, defaults: Parameters) -> dict[ModeKeys, Parameters]:
    return {mode: {**defaults, **settings} for mode, settings in modes.items()}


def _both_schedules(first: SaveConfig, second: SaveConfig) -> SaveConfig:
    return SaveConfig(
        {mode: _combined(first.get_save_config(mode), second.get_save_config(mode)) for mode in ModeKeys}
    )


def _combined(first: SaveConfigMode, second: SaveConfigMode) -> SaveConfigMode:
    """Return the more frequent of two schedules, for the steps of both."""
    ends = (first.end_step, second.end_step)
    return SaveConfigMode(
        min(first.save_interval, second.save_interval),
        min(first.start_step, second.start_step),
        None if None in ends else max(end for end in ends if end is not None),
        sorted({*first.save_steps, *second.save_steps}),
    )


def _include(collection: Collection, regexes: Iterable[str]) -> None:
    for regex in regexes:
        if regex not in collection.include_regex:
            collection.include(regex)
