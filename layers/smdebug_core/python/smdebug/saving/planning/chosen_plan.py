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
    OBSERVED,
    UPDATES,
    FirstOfBlock,
    ObservingPlan,
    kind_of,
    of_default_plan,
)
from smdebug.saving.planning.save_plan import NO_MEMBERS, Members, ModePlan, SavePlan, Wanted


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
