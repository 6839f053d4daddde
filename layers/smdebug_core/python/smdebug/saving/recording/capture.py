"""What is captured of a value at a saved step. Anything else that a step should hold is added here.

`Capture` turns values of any framework into arrays; `OpenStep.record` takes what collections want of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.logger import get_logger
from smdebug.saving.arrays.adapter import Array, FrameworkAdapter
from smdebug.saving.observations.observer import Observer
from smdebug.saving.observations.step_observations import MAX_CARRIED, MAX_CARRIED_BESIDE
from smdebug.saving.planning.default_plan import ObservingPlan
from smdebug.saving.planning.save_plan import SavePlan, Wanted
from smdebug.saving.process.sagemaker_metrics import SageMakerMetrics
from smdebug.saving.recording.open_step import OpenStep
from smdebug.saving.requests.zooming import Zoom


class WarnOnce:
    """Logs a warning the first time; of several warnings of one kind, the first."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __call__(self, message: str, kind: str = "") -> None:
        if (kind or message) not in self._logged:
            self._logged.add(kind or message)
            get_logger().warning("%s", message)


class Capture:
    """Captures tensors. A value that cannot be saved is named in one warning and left out."""

    def __init__(self, adapter: FrameworkAdapter, warn_once: WarnOnce):
        self.metrics = SageMakerMetrics()
        self.observer: Observer | None = None
        """Observes the run; None if nothing but chosen tensors is saved."""
        self.zoom: Zoom | None = None
        """Decides what is saved on request; None if no request is looked for."""
        self._adapter = adapter
        self._warn_once = warn_once
        self.names: set[str] = set()
        """The names of the tensors that were saved themselves."""

    def array_of(self, name: str, value: Any) -> Array | None:
        """Return the array to save for a value; warn and return None if it has none."""
        try:
            caveat = self._adapter.caveat(name, value)
            if caveat is not None:
                self._warn_once(caveat.message, caveat.kind)
            return self._adapter.to_array(value)
        except Exception as error:  # noqa: BLE001 - a value's own conversion may do anything
            self._warn_of(name, error)
            return None

    def observe(self, plan: ObservingPlan) -> Observer:
        """Observe the run from now on."""
        self.observer = Observer(
            self._adapter,
            self._warn_once,
            digests_only=plan.digests_only,
            most_carried=MAX_CARRIED_BESIDE if plan.only_beside else MAX_CARRIED,
        )
        return self.observer

    def all_names(self) -> set[str]:
        """Return the names of all tensors that were saved or measured."""
        observed = () if self.observer is None else self.observer.observations.names()
        return self.names.union(observed)

    def take(
        self, name: str, value: Any, wanted: Wanted, plan: SavePlan, step: Callable[[], OpenStep]
    ) -> None:
        """Record what is wanted of the value in the step, which is opened if there is anything."""
        if wanted.observed:
            self._observe(name, value, step, is_saved=wanted.raw)
            wanted = wanted._replace(observed=False)
            if wanted.nothing:
                return
        if wanted.zoomed and not self._zooms_into(name, value):
            wanted = wanted._replace(raw=False, observed=False)
            if wanted.nothing:
                return
        array = self.array_of(name, value)
        if array is None:
            return
        if name not in self.names:
            self.names.add(name)
            for collection in plan.collections(plan.members(name)):
                collection.add_tensor_name(name)
        if array.size == 0:
            return
        owned = self._adapter.owns_its_memory(value, array)
        try:
            recorded = step()
            recorded.record(name, array, wanted, owned)
        except (SMDebugTypeError, SMDebugValueError) as error:
            self._warn_of(name, error)
            return
        if wanted.is_metric and self.metrics.is_active and array.dtype.kind in "biuf":
            clock = recorded.clock
            self.metrics.log(name, float(array.mean()), clock.mode, clock.step)

    def _zooms_into(self, name: str, value: Any) -> bool:
        is_whole = self._adapter.is_whole(value)
        size = getattr(value, "nbytes", None) if is_whole else None
        if not isinstance(size, int):  # a shard, or a value that has to be converted to be measured
            array = self.array_of(name, value)
            size = 0 if array is None else array.nbytes
        return self.zoom is not None and self.zoom.admits(name, size, is_whole=is_whole)

    def _observe(self, name: str, value: Any, step: Callable[[], OpenStep], *, is_saved: bool) -> None:
        assert self.observer is not None
        try:
            is_observed = self.observer.observe(name, value)
        except Exception as error:  # noqa: BLE001 - a value's own conversion may do anything
            self._warn_of(name, error)
            return
        if is_observed:
            step()
        elif not (is_saved or self.observer.digests_only or _has_nothing(value)):
            self._warn_once(
                f"Tensor {name} is not measured: its values are text or complex, or it is sparse and would "
                "take more than 64 MB with its zeros. Others like it are left out without a warning",
                "not measured",
            )

    def _warn_of(self, name: str, error: Exception) -> None:
        self._warn_once(f"Tensor {name} is not saved: {error}", f"tensor {name}")


def _has_nothing(value: Any) -> bool:
    """Whether it has no statistics: it is empty, or a single number, which is a series."""
    is_number = isinstance(value, bool | int | float | np.number)
    return is_number or 0 in tuple(getattr(value, "shape", ()))
