"""Containers of the old library's tensors, for code that builds them itself."""

from __future__ import annotations

from typing import Any

from smdebug.mode_keys import ModeKeys

Reduction = tuple[str, bool]


class Step:
    """What is known of a tensor at one step: its value or place, its shape, its reductions."""

    def __init__(self, step_num: int, value: Any = None, location: Any = None, shape: Any = None):
        self.step_num = step_num
        self.value = value
        self.location = location
        self.shape = shape
        self._reduction_values: dict[Reduction, Any] = {}
        self._reduction_locations: dict[Reduction, Any] = {}

    def reduction_values(self) -> dict[Reduction, Any]:
        return self._reduction_values

    def reduction_value(self, red_name: str, abs: bool) -> Any:
        return self._reduction_values.get((red_name, abs))

    def reduction_locations(self) -> dict[Reduction, Any]:
        return self._reduction_locations

    def reduction_location(self, red_name: str, abs: bool) -> Any:
        return self._reduction_locations.get((red_name, abs))

    def set_reduction_value(self, red_name: str, abs: bool, red_value: Any) -> None:
        self._reduction_values[red_name, abs] = red_value

    def set_reduction_location(self, red_name: str, abs: bool, red_location: Any) -> None:
        self._reduction_locations[red_name, abs] = red_location


class ModeSteps:
    """The steps of one mode, and per worker what is known of a tensor there."""

    def __init__(self, mode: ModeKeys):
        self.mode = mode
        self._steps: dict[int, dict[str, Step]] = {}

    def steps(self) -> list[int]:
        return sorted(self._steps)

    def has_step(self, step_num: int) -> bool:
        return step_num in self._steps

    def step(self, step_num: int) -> dict[str, Step]:
        return self._steps[step_num]

    def set_step_value(self, step_num: int, worker: str, value: Any) -> None:
        self._of(step_num, worker).value = value

    def set_step_location(self, step_num: int, worker: str, location: Any) -> None:
        self._of(step_num, worker).location = location

    def set_step_shape(self, step_num: int, worker: str, shape: Any) -> None:
        self._of(step_num, worker).shape = shape

    def set_step_reduction_value(
        self, step_num: int, worker: str, red_name: str, abs: bool, red_value: Any
    ) -> None:
        self._of(step_num, worker).set_reduction_value(red_name, abs, red_value)

    def set_step_reduction_location(
        self, step_num: int, worker: str, red_name: str, abs: bool, red_location: Any
    ) -> None:
        self._of(step_num, worker).set_reduction_location(red_name, abs, red_location)

    def _of(self, step_num: int, worker: str) -> Step:
        return self._steps.setdefault(step_num, {}).setdefault(worker, Step(step_num))
