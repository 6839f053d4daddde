"""Observes the tensors and scalars of a training for the default plan."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from smdebug.files.observations import ObservedTensor
from smdebug.saving.adapter import FrameworkAdapter
from smdebug.saving.default_plan import DIGESTED, kind_of
from smdebug.saving.observing import Handed, StepObservations
from smdebug.saving.save_plan import NAMES_REMEMBERED
from smdebug.saving.step_clock import StepClock

CARRIED_SECONDS = 60.0
"""How long scalars of steps that are not saved wait for one that is."""


class _Known(NamedTuple):
    """What is known of a tensor that was observed before."""

    kind: str
    tensor: ObservedTensor
    digested: bool
    shape: Any
    dtype: Any

    def is_of(self, value: Any) -> bool:
        """Return whether a value of that name still has this form."""
        shape = getattr(value, "shape", None)
        return (
            shape is not None
            and shape == self.shape
            and getattr(value, "dtype", None) == self.dtype
        )


class Observer:
    """Measures what it is given with the framework's adapter, and keeps it until a step is written."""

    def __init__(self, adapter: FrameworkAdapter, *, digests_only: bool = False):
        self.observations = StepObservations(digests_only=digests_only)
        self.digests_only = digests_only
        self.is_carrying_for_long = False
        """Whether scalars have waited so long that the next step has to write them."""
        self.kinds: dict[str, str] = {}
        """The kinds of tensors whose names do not show them."""
        self._adapter = adapter
        self._measurer = adapter.measurer()
        self._known: dict[str, _Known] = {}
        self._carried_until = time.monotonic() + CARRIED_SECONDS

    @property
    def carries_series(self) -> bool:
        """Whether scalars wait for the next step that is written."""
        return self.observations.carries_series

    def carry(self, name: str, value: Any, clock: StepClock) -> None:
        """Keep a value of one number for the series of that name; other values are ignored."""
        number = None if self.digests_only else self._adapter.number(value)
        if number is not None:
            self.observations.carry(name, self._measurer.kept(number), clock)
            self.is_carrying_for_long = time.monotonic() > self._carried_until

    def observe(self, name: str, value: Any) -> bool:
        """Keep what is measured of a tensor; return whether it has anything to measure."""
        if isinstance(value, bool | int | float | np.number):  # a series has it
            return False
        known = self._known.get(name)
        if known is None or not known.is_of(value):
            known = self._know(name, value)
        if self.digests_only and not known.digested:
            return False
        measured = self._adapter.measure(value, self._measurer, digest=known.digested)
        if measured is None:
            return False
        self.observations.observe(known.kind, known.tensor, measured)
        return True

    def observe_together(self, tensors: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Keep what is measured of those tensors that can be measured together; return the others."""
        others = []
        fit: dict[bool, list[tuple[_Known, Any]]] = {False: [], True: []}
        fits = self._measurer.fits
        for name, value in tensors:
            known = self._known.get(name)
            if not fits(value):
                others.append((name, value))
                continue
            if known is None or not known.is_of(value):
                known = self._know(name, value)
            if known.digested or not self.digests_only:
                fit[known.digested].append((known, value))
        for digest, pairs in fit.items():
            if pairs:
                found = self._measurer.measure_together(
                    [value for _, value in pairs], digest=digest
                )
                for (known, _), measured in zip(pairs, found, strict=True):
                    self.observations.observe(known.kind, known.tensor, measured)
        return others

    def hand_over(self, clock: StepClock) -> Iterator[Handed]:
        """Return the tensors of a step, each with what computes it; what was gathered begins anew."""
        self.is_carrying_for_long = False
        self._carried_until = time.monotonic() + CARRIED_SECONDS
        self._measurer.end_step()
        return self.observations.hand_over(clock.step)

    def _know(self, name: str, value: Any) -> _Known:
        """Work out what stays the same from step to step."""
        kind = self.kinds.get(name) or kind_of(name)
        tensor = ObservedTensor(name, *self._adapter.form(value))
        # The parts of a sharded tensor differ from worker to worker, and are no copies to be compared.
        known = _Known(
            *(kind, tensor, kind in DIGESTED and self._adapter.is_whole(value)),
            *(getattr(value, "shape", None), getattr(value, "dtype", None)),
        )
        if len(self._known) >= NAMES_REMEMBERED:
            self._known.clear()
        self._known[name] = known
        return known
