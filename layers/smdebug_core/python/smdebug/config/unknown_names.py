"""Unknown names in the configuration of a hook, each with the known name that it resembles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from smdebug.config.constants import (
    CONFIG_COLLECTION_CONFIG_KEY,
    CONFIG_COLLECTION_NAME_KEY,
    CONFIG_COLLECTION_PARAMS_KEY,
    CONFIG_DRYRUN_KEY,
    CONFIG_HOOK_PARAMS_KEY,
    CONFIG_INCLUDE_REGEX_KEY,
    CONFIG_INCLUDE_WORKERS_KEY,
    CONFIG_OUTDIR_KEY,
    CONFIG_RULES_KEY,
    CONFIG_SAVE_ALL_KEY,
    EXPORT_TENSORBOARD_KEY,
    TENSORBOARD_DIR_KEY,
)
from smdebug.config.keys import CollectionKeys
from smdebug.config.save_config import SAVE_CONFIG_FIELDS
from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import did_you_mean

COLLECTIONS = tuple(sorted(value for name, value in vars(CollectionKeys).items() if not name.startswith("_")))
"""The collections that hooks know without a pattern. Which of them have tensors depends on the framework."""
_SECTIONS = (
    CONFIG_OUTDIR_KEY,
    CONFIG_HOOK_PARAMS_KEY,
    CONFIG_COLLECTION_CONFIG_KEY,
    CONFIG_RULES_KEY,
    "S3OutputPath",  # of SageMaker's DebugHookConfig, whose job saves to LocalPath
)
_SAVED_HOW = (
    CONFIG_INCLUDE_REGEX_KEY,
    "reductions",
    "save_raw_tensor",
    "save_shape",
    "save_histogram",
    *SAVE_CONFIG_FIELDS,
    *(f"{mode.name.lower()}.{field}" for mode in ModeKeys for field in SAVE_CONFIG_FIELDS),
)
_HOOK_PARAMETERS = (
    *_SAVED_HOW,
    CONFIG_INCLUDE_WORKERS_KEY,
    CONFIG_SAVE_ALL_KEY,
    CONFIG_DRYRUN_KEY,
    EXPORT_TENSORBOARD_KEY,
    TENSORBOARD_DIR_KEY,
)


def unknown_names(described: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each unknown key and collection in a hook's JSON."""
    return [*unknown_keys(described), *_unknown_collections(described)]


def unknown_keys(described: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each unknown key in a hook's JSON."""
    return list(_unknown(described))


def unknown_collection(name: str, known: Iterable[str] = COLLECTIONS) -> str:
    """Return what to say of a collection that does not exist, or has no tensors."""
    return (
        f"There is no collection {name}, and no pattern that selects its tensors.{did_you_mean(name, known)}"
        f' Give it one: hook.get_collection("{name}").include("regex")'
    )


def _unknown(described: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown_keys(described, _SECTIONS, "The configuration of a hook", fold=False)
    parameters = described.get(CONFIG_HOOK_PARAMS_KEY)
    if isinstance(parameters, Mapping):
        yield from _unknown_keys(parameters, _HOOK_PARAMETERS, CONFIG_HOOK_PARAMS_KEY)
    collections = described.get(CONFIG_COLLECTION_CONFIG_KEY)
    for entry in collections if isinstance(collections, list) else []:
        if not isinstance(entry, Mapping):
            continue
        name = str(entry.get(CONFIG_COLLECTION_NAME_KEY))
        known = (CONFIG_COLLECTION_NAME_KEY, CONFIG_COLLECTION_PARAMS_KEY)
        yield from _unknown_keys(entry, known, f"Collection {name}", fold=False)
        given = entry.get(CONFIG_COLLECTION_PARAMS_KEY)
        given = given if isinstance(given, Mapping) else {}
        yield from _unknown_keys(given, _SAVED_HOW, f"Collection {name}")


def _unknown_collections(described: Mapping[str, Any]) -> Iterator[str]:
    collections = described.get(CONFIG_COLLECTION_CONFIG_KEY)
    for entry in collections if isinstance(collections, list) else []:
        if not isinstance(entry, Mapping):
            continue
        name = str(entry.get(CONFIG_COLLECTION_NAME_KEY))
        given = entry.get(CONFIG_COLLECTION_PARAMS_KEY)
        given = given if isinstance(given, Mapping) else {}
        selects = any(str(key).strip().lower() == CONFIG_INCLUDE_REGEX_KEY for key in given)
        if name not in COLLECTIONS and not selects:
            yield (
                f"There is no collection {name}, and no include_regex that selects its tensors."
                f"{did_you_mean(name, COLLECTIONS) or _all_of(COLLECTIONS)}"
            )


def _unknown_keys(
    given: Mapping[str, Any], known: Iterable[str], what: str, *, fold: bool = True
) -> Iterator[str]:
    known = tuple(known)
    for key in map(str, given):
        if (key.strip().lower() if fold else key) not in known:
            yield f"{what} has no {key}.{did_you_mean(key, known) or _all_of(known)}"


def _all_of(known: Iterable[str]) -> str:
    plain = [name for name in known if "." not in name]
    return f" There are {', '.join(plain)}."
