"""When to save: at which steps, in each mode."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug.config.parsing import json_object, whole_number, whole_numbers
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ALLOWED_MODE_NAMES, ModeKeys

DEFAULT_SAVE_INTERVAL = 500
DEFAULT_START_STEP = 0


class SaveConfigMode:
    """The steps to save in one mode: every `save_interval`-th from `start_step` up to, and without,
    `end_step`, and those in `save_steps` besides."""

    def __init__(
        self,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: Iterable[int] | str | None = None,
    ):
        self.save_interval = (
            DEFAULT_SAVE_INTERVAL if save_interval is None else whole_number(save_interval, "save_interval")
        )
        self.save_steps = whole_numbers(save_steps, "save_steps")
        self.start_step = DEFAULT_START_STEP if start_step is None else whole_number(start_step, "start_step")
        self.end_step = None if end_step is None else whole_number(end_step, "end_step")
        if self.save_interval < 1:
            raise SMDebugValueError(
                f"save_interval must be at least 1, not {self.save_interval}. "
                "To save nothing at an interval, give an end_step of 0."
            )
        self._refuse_negative_steps()

    def should_save_step(self, step_num: int) -> bool:
        """Whether to save this step of the mode."""
        if step_num in self.save_steps:
            return True
        within = self.start_step <= step_num and (self.end_step is None or step_num < self.end_step)
        return within and step_num % self.save_interval == 0

    def _refuse_negative_steps(self) -> None:
        for name, step, end in (
            ("start_step", self.start_step, "from the first"),
            ("end_step", self.end_step, "to the last"),
        ):
            if step is not None and step < 0:
                raise SMDebugValueError(
                    f"{name} must not be negative, but is {step}: steps count from 0. "
                    f"Leave {name} out to save {end} step."
                )
        negative = [step for step in self.save_steps if step < 0]
        if negative:
            raise SMDebugValueError(
                f"save_steps must not be negative, but holds {negative[0]}: steps count from 0. Name the "
                "steps themselves; the last step of a training is not known before it ends."
            )

    @classmethod
    def from_dict(
        cls, params: Mapping[str, Any] | None, default_values: Mapping[str, Any] | None = None
    ) -> SaveConfigMode | None:
        """Return the schedule of those values; missing ones come from `default_values`."""
        if params is None:
            return None
        values = {**(default_values or {}), **params}
        return cls(**{field: values.get(field) for field in SAVE_CONFIG_FIELDS})

    def to_json_dict(self) -> dict[str, Any]:
        """Return the configuration as the collections file has it."""
        return {
            "save_interval": self.save_interval,
            "save_steps": list(self.save_steps),
            "start_step": self.start_step,
            "end_step": self.end_step,
        }

    def to_json(self) -> str:
        """Return the configuration as JSON text."""
        return json.dumps(self.to_json_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SaveConfigMode):
            return NotImplemented
        return type(self) is type(other) and self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]  # its fields are mutable

    def __repr__(self) -> str:
        return (
            f"<class SaveConfig: save_interval={self.save_interval}, save_steps={self.save_steps}, "
            f"start_step={self.start_step}, end_step={self.end_step}>"
        )


SAVE_CONFIG_FIELDS = ("save_interval", "start_step", "end_step", "save_steps")


class SaveConfig:
    """When to save, in each mode: `SaveConfig(save_interval=100)` for all alike, or a dictionary
    from modes to `SaveConfigMode`."""

    def __init__(
        self,
        mode_save_configs: Mapping[ModeKeys, SaveConfigMode | None] | None = None,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: Iterable[int] | str | None = None,
    ):
        self.mode_save_configs: dict[ModeKeys, SaveConfigMode | None]
        if mode_save_configs is None:
            steps = whole_numbers(save_steps, "save_steps")
            self.mode_save_configs = {
                mode: SaveConfigMode(save_interval, start_step, end_step, steps) for mode in ModeKeys
            }
            return
        if not isinstance(mode_save_configs, Mapping):
            raise SMDebugValueError(
                "mode_save_configs must be a dictionary from modes to SaveConfigMode, "
                f"not {mode_save_configs!r}"
            )
        for mode, schedule in mode_save_configs.items():
            _check(mode, schedule)
        # A copy, because missing modes are added to it.
        self.mode_save_configs = {
            **mode_save_configs,
            **{mode: None for mode in ModeKeys if mode not in mode_save_configs},
        }

    def should_save_step(self, mode: ModeKeys, step_num: int) -> bool:
        """Whether to save this step, counted within the mode."""
        return self.get_save_config(mode).should_save_step(step_num)

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode:
        """Return the steps to save in a mode."""
        schedule = self.mode_save_configs.get(mode)
        if schedule is None:
            raise SMDebugValueError(
                f"{self!r} has no setting for mode {getattr(mode, 'name', mode)}. Set it with "
                "set_save_config, or fill it with merge_default_save_config."
            )
        return schedule

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode | None) -> None:
        """Set the steps to save in a mode; None means the default."""
        _check(mode, save_config_mode)
        self.mode_save_configs[mode] = save_config_mode

    def merge_default_save_config(self, default_save_config: SaveConfig) -> None:
        """Fill in missing modes from `default_save_config`, or else with the defaults."""
        for mode, schedule in self.mode_save_configs.items():
            if schedule is None:
                default = default_save_config.mode_save_configs.get(mode)
                self.mode_save_configs[mode] = default or SaveConfigMode()

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> SaveConfig:
        return cls({mode: SaveConfigMode(**save_config_mode.to_json_dict()) for mode in ModeKeys})

    @classmethod
    def from_dict(
        cls, params: Mapping[Any, Any] | None, default_values: Mapping[str, Any] | None = None
    ) -> SaveConfig | None:
        """Create a config from `{"TRAIN": {"save_interval": 10}}`; modes may be names or ModeKeys."""
        if params is None:
            return None
        if not isinstance(params, Mapping):
            raise SMDebugTypeError(f"A save config must be a dictionary of modes, not {params!r}")
        schedules: dict[ModeKeys, SaveConfigMode | None] = {}
        for key, value in params.items():
            if value is None or isinstance(value, SaveConfigMode):
                schedules[_mode(key)] = value
            elif isinstance(value, Mapping):
                schedules[_mode(key)] = SaveConfigMode.from_dict(value, default_values)
            else:
                raise SMDebugValueError(f"The save config of mode {key} must be a dictionary, not {value!r}")
        return cls(schedules)

    @classmethod
    def from_json(cls, json_str: str | bytes) -> SaveConfig:
        config = cls.from_dict(json_object(json_str, "A save config"))
        assert config is not None
        return config

    @classmethod
    def parse(cls, obj: object) -> SaveConfig:
        """Return a SaveConfig for None, a SaveConfig, a SaveConfigMode, or a dictionary."""
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, Mapping):
            config = cls.from_dict(obj)
            assert config is not None
            return config
        raise SMDebugTypeError(
            f"save_config must be a SaveConfig, a SaveConfigMode or a dictionary, not {obj!r}"
        )

    def to_json_dict(self) -> dict[str, Any]:
        """Return the configuration as the collections file has it."""
        return {
            mode.name: None if schedule is None else schedule.to_json_dict()
            for mode, schedule in self.mode_save_configs.items()
        }

    def to_json(self) -> str:
        """Return the configuration as JSON text."""
        return json.dumps(self.to_json_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SaveConfig):
            return NotImplemented
        return type(self) is type(other) and self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]  # its modes are mutable

    def __repr__(self) -> str:
        return f"<class SaveConfig: {self.mode_save_configs}>"


def without_negative_steps(params: Any) -> Any:
    """Return the save config of a collections file with its meaning in steps from 0 on.

    The old library wrote negative steps if they were given. No training has them.
    """
    if not isinstance(params, Mapping):
        return params
    return {mode: _from_zero(schedule) for mode, schedule in params.items()}


def _from_zero(schedule: Any) -> Any:
    if not isinstance(schedule, Mapping):
        return schedule
    found = dict(schedule)
    for name in ("start_step", "end_step"):
        if type(found.get(name)) is int:
            found[name] = max(0, found[name])
    if isinstance(found.get("save_steps"), list):
        found["save_steps"] = [step for step in found["save_steps"] if type(step) is not int or step >= 0]
    return found


class UnknownMode(SMDebugValueError, KeyError):
    """No mode has this name: use one of those in the message."""

    __str__ = Exception.__str__  # a KeyError would show the repr of its message


def _check(mode: object, schedule: object) -> None:
    if not isinstance(mode, ModeKeys):
        raise SMDebugValueError(f"Index a save config with a mode (smdebug.modes), not with {mode!r}")
    if schedule is not None and not isinstance(schedule, SaveConfigMode):
        raise SMDebugValueError(
            f"The save config of mode {mode.name} must be a SaveConfigMode, not {schedule!r}"
        )


def _mode(key: object) -> ModeKeys:
    if isinstance(key, ModeKeys):
        return key
    if isinstance(key, str) and key.strip().upper() in ALLOWED_MODE_NAMES:
        return ModeKeys[key.strip().upper()]
    raise UnknownMode(f"{key!r} is not a mode; use one of {', '.join(ALLOWED_MODE_NAMES)}")
