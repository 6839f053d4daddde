"""Observes the tensors and scalars of a training for the default plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from smdebug.files.observations import GRADIENTS, PARAMETERS, UPDATES, ObservedTensor
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.observations.step_observations import MAX_CARRIED, StepObservations, StepTaken
from smdebug.saving.planning.default_plan import DIGESTED, kind_of
from smdebug.saving.planning.save_plan import GROUPS_REMEMBERED, NAMES_REMEMBERED
from smdebug.saving.planning.step_clock import StepClock

#: The kinds of tensors that are sharded as the parameters are.
_SHARDED = (PARAMETERS, GRADIENTS, UPDATES)


class _Known(NamedTuple):
    """What is known of a tensor that was observed before."""

    kind: str
    tensor: ObservedTensor
    digested: bool
    is_part: bool
    is_number: bool
    shape: Any
    dtype: Any
    places: tuple[int] | None = None
    """Its place among those of its kind, once it was measured."""

    def is_of(self, value: Any) -> bool:
        """Return whether a value of that name still has this form."""
        shape = getattr(value, "shape", None)
        return shape is not None and shape == self.shape and getattr(value, "dtype", None) == self.dtype


class _Group(NamedTuple):
    """What is known of tensors that are observed together again and again."""

    kind: str
    digested: bool
    places: list[int]
    shapes: list[Any]
    members: list[_Known]
    known: dict[str, _Known]

    def is_known(self, names: Sequence[str]) -> bool:
        """Return whether tensors of these names are known as they were."""
        return all(map(is_, map(self.known.get, names), self.members))


class Observer:
    """Measures what it is given with the framework's adapter, and keeps it until a step is written."""

    def __init__(
        self,
        adapter: FrameworkAdapter,
        warn_once: Callable[[str, str], object],
        *,
        digests_only: bool = False,
        most_carried: int = MAX_CARRIED,
    ):
        self._warn_once = warn_once
        self.observations = StepObservations(digests_only=digests_only, most_carried=most_carried)
        self._most_carried = most_carried
        self.digests_only = digests_only
        self.kinds: dict[str, str] = {}
        """The kinds of tensors whose names do not show them."""
        self._adapter = adapter
        self._number = adapter.number  # kept, because it is called at every step
        self._measurer = adapter.measurer()
        self._known: dict[str, _Known] = {}
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._sharded: set[str] = set()
        """The parameters of which this process holds a part."""

    @property
    def carries_series(self) -> bool:
        """Whether scalars wait for the next step that is written."""
        return self.observations.carries_series

    def carry(self, name: str, value: Any, clock: StepClock, passed: int = 0) -> None:
        """Keep a value of one number for the series of that name; other values are ignored.

        It is of the step that comes `passed` steps after the clock's.
        """
        number = None if self.digests_only else self._number(value)
        if number is None:
            return
        if type(number) is not float:
            number = self._measurer.kept(number)
        rows = self.observations.carried.get(name)
        if rows is None or len(rows) > self._most_carried:
            rows = self.observations.room_for(name)
        rows.append((clock, passed, number))

    def observe(self, name: str, value: Any) -> bool:
        """Keep what is measured of a tensor; return whether it has anything to measure."""
        known = self._known.get(name)
        if known is None or not known.is_of(value):
            if isinstance(value, bool | int | float | np.number):  # a series has it
                return False
            known = self._know(name, value)
        if self.digests_only and not (known.digested or known.is_part):
            return False
        measured = self._adapter.measure(value, self._measurer, digest=known.digested)
        if measured is None:
            return False
        place = self.observations.place_of(known.kind, known.tensor)
        if place is not None:
            self._known[name] = known = known._replace(places=(place,))
            self.observations.observe_rows(known.kind, (place,), measured, are_parts=known.is_part)
        return True

    def observe_again(self, name: str, value: Any) -> bool:
        """Observe a tensor that was observed in the same form before; return whether it was.

        Single numbers take the longer path: they belong to series, too.
        """
        known = self._known.get(name)
        if known is None or known.is_number:
            return False
        shape = getattr(value, "shape", None)
        if shape is None or shape != known.shape or getattr(value, "dtype", None) != known.dtype:
            return False
        places = known.places
        measured = None if places is None else self._measurer.measure_again(value, digest=known.digested)
        if places is None or measured is None:
            return self.observe(name, value)
        self.observations.observe_rows(known.kind, places, measured, are_parts=known.is_part)
        return True

    def observe_group(self, names: tuple[str, ...], values: Sequence[Any], before: Any = None) -> bool:
        """Observe tensors of which all fit, together; return whether they do.

        What is known of a group that comes again, as parameters do, is looked up once for all. If `packed`
        has returned what the tensors were before, the change since then is observed.
        """
        group = self._known_group(names, values)
        if group is None:
            return False
        measured = self._measurer.measure_together(values, digest=group.digested, before=before)
        self.observations.observe_rows(group.kind, group.places, measured)
        return True

    def packed(self, names: tuple[str, ...], values: Sequence[Any]) -> Any:
        """Return copies of the values of a group, end to end, to be its `before`; None if there is none."""
        if self._known_group(names, values) is None:
            return None
        return self._measurer.packed(values)

    def _known_group(self, names: tuple[str, ...], values: Sequence[Any]) -> _Group | None:
        group = self._groups.get(names)
        if group is None or not self._measurer.fit_again(values, group.shapes) or not group.is_known(names):
            if not values or not all(map(self._measurer.fits, values)):
                return None
            group = self._group_of(names, values)
            if group is not None:
                if len(self._groups) >= GROUPS_REMEMBERED:
                    self._groups.clear()
                self._groups[names] = group
        return group

    def _group_of(self, names: Sequence[str], values: Sequence[Any]) -> _Group | None:
        """What the tensors have in common; None if they differ in more than their forms."""
        known = [self._known.get(name) for name in names]
        if not known or any(
            tensor is None or not tensor.is_of(value) for tensor, value in zip(known, values, strict=True)
        ):
            return None
        members = [tensor for tensor in known if tensor is not None]
        kinds = {(tensor.kind, tensor.digested) for tensor in members}
        if any(tensor.is_part for tensor in members):
            return None
        places = [self.observations.place_of(tensor.kind, tensor.tensor) for tensor in members]
        if len(kinds) > 1 or None in places or (self.digests_only and not members[0].digested):
            return None
        return _Group(
            members[0].kind,
            members[0].digested,
            [place for place in places if place is not None],
            [tensor.shape for tensor in members],
            members,
            self._known,
        )

    def observe_together(self, tensors: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Keep what is measured of those tensors that can be measured together; return the others."""
        others = []
        fit: dict[tuple[str, bool, bool], tuple[list[int], list[Any]]] = {}
        fits = self._measurer.fits
        for pair in tensors:
            name, value = pair
            if not fits(value):
                if name in self._known or not self._takes_its_place(name, value):
                    others.append(pair)
                continue
            known = self._known.get(name)
            if known is None or not known.is_of(value):
                known = self._know(name, value)
            if known.digested or known.is_part or not self.digests_only:
                place = self.observations.place_of(known.kind, known.tensor)
                if place is not None:
                    places, values = fit.setdefault((known.kind, known.digested, known.is_part), ([], []))
                    places.append(place)
                    values.append(value)
        for (kind, digest, are_parts), (places, values) in fit.items():
            measured = self._measurer.measure_together(values, digest=digest)
            self.observations.observe_rows(kind, places, measured, are_parts)
        return others

    def _takes_its_place(self, name: str, value: Any) -> bool:
        """Observe a new tensor before those that follow it, so that readers get them in this order."""
        try:
            return prod(value.shape) > 1 and self.observe(name, value)
        except Exception:  # noqa: BLE001 - it is recorded by itself then, which says what is wrong
            return False

    def hand_over(self, clock: StepClock) -> StepTaken:
        """Return what was gathered of a step, which is made into tensors later; gathering starts again."""
        self._measurer.end_step()
        return self.observations.hand_over(clock.step)

    def _know(self, name: str, value: Any) -> _Known:
        """Work out what stays the same from step to step."""
        caveat = None if self.digests_only else self._adapter.caveat(name, value)
        if caveat is not None:
            self._warn_once(caveat.message, caveat.kind)
        kind = self.kinds.get(name) or kind_of(name)
        tensor = ObservedTensor(name, *self._adapter.form(value))
        # The parts of a sharded tensor differ from worker to worker: they are compared by their places alone.
        is_part = kind in _SHARDED and self._is_part(name, kind, value)
        known = _Known(
            kind,
            tensor,
            kind in DIGESTED and (is_part or self._adapter.is_whole(value)),
            is_part,
            tensor.size == 1,
            getattr(value, "shape", None),
            getattr(value, "dtype", None),
        )
        if len(self._known) >= NAMES_REMEMBERED:
            self._known.clear()
        self._known[name] = known
        return known

    def _is_part(self, name: str, kind: str, value: Any) -> bool:
        if kind == UPDATES:  # the difference of two parts is a plain tensor
            return name.removeprefix("update/") in self._sharded
        is_part = self._adapter.is_placed(value)
        if is_part and kind == PARAMETERS:
            self._sharded.add(name)
        return is_part
