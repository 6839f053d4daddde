"""What a hook saves whose tensors somebody chose: these, and beside them what the default plan observes.

Chosen tensors are saved as configured, and no others appear in the run. At those of their steps that the
default plan would save, the tensors of the training are observed as well. Readers of the old library do not
see that (`files.index`); it lets the default rules judge the run.
"""

from __future__ import annotations

from collections.abc import Iterable

from smdebug.config.collection import Collection
from smdebug.files.names import OBSERVATIONS
from smdebug.mode_keys import ModeKeys
from smdebug.saving.planning.default_plan import (
    DIGESTED,
    OBSERVED,
    UPDATES,
    FirstOfBlock,
    ObservingPlan,
    due_before,
    kind_of,
    of_default_plan,
)
from smdebug.saving.planning.save_plan import NO_MEMBERS, Members, ModePlan, SavePlan, Wanted

_BY_CHIEF = OBSERVED._replace(observed=False, by_chief=True)
_DIGESTED_BY_CHIEF = OBSERVED._replace(by_chief=True)


class ChosenPlan(ObservingPlan):
    """Saves chosen tensors, and observes all at some of the steps at which any is due."""

    only_beside = True
    measures_updates = False
    """Whether the hook measures updates itself, so that nobody can have chosen them."""

    def __init__(self, collections: Iterable[Collection]):
        super().__init__(collections)
        self._observing = self._first_zoom  # a member beside the collections
        self._first_zoom <<= 1
        for mode in ModeKeys:
            schedule: ModePlan = of_default_plan(self._observing)
            if mode in self.in_blocks:
                schedule = self._blocks[mode] = FirstOfBlock(schedule)
            self._modes[mode] = _ObservedToo(self._modes[mode], schedule)

    def _wanted_now(self, tensor_name: str, due: Members) -> Wanted | None:
        is_update = self.measures_updates and kind_of(tensor_name) == UPDATES
        chosen = None if is_update else SavePlan.planned(self, tensor_name, due & (self._observing - 1))
        is_left_out = tensor_name.startswith(OBSERVATIONS) or self._is_of_inner_layer(tensor_name)
        if is_left_out or not due & self._observing:
            return chosen
        if chosen is None:
            return OBSERVED
        return chosen if chosen.is_scalar else chosen._replace(observed=True)


class ChosenPlanWithUpdates(ChosenPlan):
    """The same for a hook that measures updates itself."""

    measures_updates = True


class ChosenReplicaPlan(ChosenPlan):
    """Keeps digests of parameters and batches where the first worker saves chosen tensors.

    They are taken at the first observed step among every ten that the default plan saves, and only if a
    chosen tensor comes at it, since the first worker saves nothing at other steps.
    """

    digests_only = True

    def __init__(self, collections: Iterable[Collection]):
        super().__init__(collections)
        for mode in ModeKeys:
            of_chief = self._modes[mode]
            is_compared = mode not in self.in_blocks
            self._modes[mode] = _FirstOfTen(of_chief, self._observing if is_compared else NO_MEMBERS)

    def _wanted_now(self, tensor_name: str, due: Members) -> Wanted | None:
        found = super()._wanted_now(tensor_name, due)
        if found is None or not due & self._observing:
            return None
        is_digested = found.observed and kind_of(tensor_name) in DIGESTED
        if found is OBSERVED:
            return OBSERVED if is_digested else None
        return _DIGESTED_BY_CHIEF if is_digested else _BY_CHIEF


class _ObservedToo(ModePlan):
    """What is due in a mode; at some of these steps everything is observed."""

    __slots__ = ("_chosen", "_observed")

    def __init__(self, chosen: ModePlan, observed: ModePlan):
        super().__init__(())
        self._chosen = chosen
        self._observed = observed

    def due(self, mode_step: int) -> Members:
        due = self._chosen.due(mode_step)
        return due | self._observed.due(mode_step) if due else NO_MEMBERS

    def asks_at(self, mode_step: int) -> bool:
        return self._chosen.asks_at(mode_step)

    def idle_after(self, mode_step: int) -> int:
        return self._chosen.idle_after(mode_step)


class _FirstOfTen(ModePlan):
    """What is due at the first observed step among every ten of the default plan."""

    __slots__ = ("_first", "_observing", "_of_chief", "_ten")

    def __init__(self, of_chief: ModePlan, observing: Members):
        super().__init__(())
        self._of_chief = of_chief
        self._observing = observing
        self._first = self._ten = -1

    def due(self, mode_step: int) -> Members:
        due = self._of_chief.due(mode_step)
        ten = due_before(mode_step) // 10
        if ten > self._ten and due & self._observing:
            self._first, self._ten = mode_step, ten
        return due if mode_step == self._first else NO_MEMBERS

    def asks_at(self, mode_step: int) -> bool:
        return self._of_chief.asks_at(mode_step)

    def idle_after(self, mode_step: int) -> int:
        return self._of_chief.idle_after(mode_step)
