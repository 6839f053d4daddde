"""A group of tensors, and how its members are saved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from smdebug.config.parsing import json_object, patterns
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, without_negative_steps
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

ALLOWED_PARAMS = [
    "name",
    "include_regex",
    "reduction_config",
    "save_config",
    "tensor_names",
    "save_histogram",
]
C = TypeVar("C", bound="Collection")


class Collection:
    """Tensors that belong together: those whose names match `include_regex`, and those named.

    `save_config` and `reduction_config` define when to save them and what; None means as the hook's own.
    """

    def __init__(
        self,
        name: str,
        include_regex: str | Iterable[str] | None = None,
        tensor_names: Iterable[str] | None = None,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[Any, Any] | None = None,
        save_histogram: bool = True,
    ):
        if not isinstance(name, str) or not name:
            raise SMDebugTypeError(f"The name of a collection must be a string, not {name!r}")
        self.name = name
        self.include_regex = _regexes(include_regex)
        self.tensor_names = tensor_names
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    @property
    def tensor_names(self) -> set[str]:
        """The names of the known members; regexes may match more later."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names: Iterable[str] | None) -> None:
        if names is None:
            names = ()
        if not isinstance(names, list | set | tuple | frozenset):
            raise SMDebugTypeError(f"tensor_names must be a list or a set of names, not {names!r}")
        for name in names:
            if not isinstance(name, str):
                raise SMDebugTypeError(f"tensor_names must hold strings, not {name!r}")
        self._tensor_names = set(names)

    @property
    def selects_tensors(self) -> bool:
        """Whether the collection can have members: it has a regex or a name."""
        return bool(self.include_regex or self._tensor_names)

    @property
    def reduction_config(self) -> ReductionConfig | None:
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, config: ReductionConfig | None) -> None:
        if config is not None and not isinstance(config, ReductionConfig):
            raise SMDebugTypeError(f"reduction_config must be a ReductionConfig, not {config!r}")
        self._reduction_config = config

    @property
    def save_config(self) -> SaveConfig | None:
        return self._save_config

    @save_config.setter
    def save_config(self, config: SaveConfig | Mapping[Any, Any] | None) -> None:
        if config is not None and not isinstance(config, SaveConfig | Mapping):
            raise SMDebugTypeError(
                f"save_config of a collection must be a SaveConfig or a dictionary of modes, not {config!r}"
            )
        self._save_config = None if config is None else SaveConfig.parse(config)

    def include(self, t: str | Iterable[Any]) -> None:
        """Add a regex, or a nested list of regexes."""
        if isinstance(t, str):
            self.include_regex.append(t)
        elif isinstance(t, list | tuple):
            for item in t:
                self.include(item)
        else:
            raise SMDebugTypeError(f"A collection includes regexes, not {t!r}")

    def add_tensor_name(self, tname: str) -> None:
        self._tensor_names.add(tname)

    def remove_tensor_name(self, tname: str) -> None:
        self._tensor_names.discard(tname)

    def has_tensor_name(self, tname: str) -> bool:
        return tname in self._tensor_names

    @classmethod
    def from_dict(cls: type[C], params: Mapping[str, Any]) -> C:
        """Return the collection described in a collections file; unknown keys are ignored."""
        if not isinstance(params, Mapping) or not isinstance(params.get("name"), str):
            raise SMDebugValueError(f"A collection must be a dictionary with a name, not {params!r}")
        return cls(
            name=params["name"],
            # The old library writes false for a missing one.
            include_regex=params.get("include_regex") or [],
            tensor_names=params.get("tensor_names"),
            reduction_config=ReductionConfig.from_dict(params.get("reduction_config")),
            save_config=SaveConfig.from_dict(without_negative_steps(params.get("save_config"))),
            save_histogram=params.get("save_histogram", True),
        )

    @classmethod
    def from_json(cls: type[C], json_str: str | bytes) -> C:
        return cls.from_dict(json_object(json_str, "A collection"))

    def to_json_dict(self) -> dict[str, Any]:
        """Return the configuration as the collections file has it."""
        reductions, schedule = self.reduction_config, self.save_config
        return {
            "name": self.name,
            "include_regex": list(self.include_regex),
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": None if reductions is None else reductions.to_json_dict(),
            "save_config": None if schedule is None else schedule.to_json_dict(),
            "save_histogram": self.save_histogram,
        }

    def to_json(self) -> str:
        """Return the configuration as JSON text."""
        return json.dumps(self.to_json_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collection):
            return NotImplemented
        return type(self) is type(other) and self.to_json_dict() == other.to_json_dict()

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return str(self.to_json_dict())

    def __repr__(self) -> str:
        return f"<class Collection: name={self.name}>"


def _regexes(include_regex: str | Iterable[str] | None) -> list[str]:
    if isinstance(include_regex, str):
        return [include_regex]
    try:
        return patterns(include_regex, "include_regex")
    except SMDebugValueError as error:
        raise SMDebugTypeError(str(error)) from error
