"""What a hook saves if it gets only a place.

Losses and metrics are saved as they are, everything else as observations (`saving.observing`): at steps 0-9,
every 10th to 1,000, and every 100th from there. In EVAL and PREDICT that is the first step after a change
of mode, since validation comes in blocks: of the first 100 blocks, of every 10th to 1,000, and of every 100th
from there, as an agent that acts between its updates has a block each.

Of several workers the first one saves that. The others save digests of parameters and of the batch, and what
was measured of their parts of sharded tensors, at every tenth of these steps of training, unless
`include_workers` says otherwise. From step 10 on they write the
times of their steps at the other ones, too, if they know them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable

from smdebug.config.collection import Collection
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.files.names import OBSERVATIONS
from smdebug.files.observations import GRADIENTS as GRADIENTS
from smdebug.files.observations import INPUTS as INPUTS
from smdebug.files.observations import OUTPUTS as OUTPUTS
from smdebug.files.observations import PARAMETERS as PARAMETERS
from smdebug.files.observations import UPDATES as UPDATES
from smdebug.mode_keys import ModeKeys
from smdebug.saving.planning.save_plan import (
    GROUPS_REMEMBERED,
    NAMES_REMEMBERED,
    NEVER,
    NO_MEMBERS,
    Members,
    ModePlan,
    SavePlan,
    Schedule,
    Wanted,
)

"""The collection that observations are members of."""
MEMBERS = f"^{re.escape(OBSERVATIONS)}"
_SCHEDULE = SaveConfigMode(save_interval=100, save_steps=[*range(10), *range(10, 1001, 10)])

#: Of these kinds a digest of the content is kept as well.
DIGESTED = frozenset({PARAMETERS, INPUTS})
_DIGESTED_OR_SHARDED = DIGESTED | {GRADIENTS, UPDATES}

OBSERVED = Wanted(
    raw=False,
    reductions=(),
    shape=False,
    histogram_of=None,
    is_scalar=False,
    is_metric=False,
    observed=True,
)
_OUTPUT = re.compile(r"_output_\d+$|(^|/)(outputs|predictions)(_\d+)?$")
_BATCH = re.compile(r"_input_\d+$|(^|/)(inputs|labels)(_\d+)?$")
_INPUT = re.compile(r"(.*)_input_\d+$", re.DOTALL)


def save_config() -> SaveConfig:
    """The steps of the default plan."""
    return SaveConfig(dict.fromkeys(ModeKeys, _SCHEDULE))


def of_default_plan(members: Members) -> ModePlan:
    """The steps of the default plan in one mode, at which these members are due."""
    steps = frozenset(_SCHEDULE.save_steps)
    return ModePlan(
        [Schedule(_SCHEDULE.save_interval, _SCHEDULE.start_step, _SCHEDULE.end_step, steps, members)]
    )


def kind_of(name: str) -> str:
    """The kind of a tensor, by the names that hooks give."""
    if name.startswith("gradient"):
        return GRADIENTS
    if name.startswith("update/"):
        return UPDATES
    if _OUTPUT.search(name):
        return OUTPUTS
    return INPUTS if _BATCH.search(name) else PARAMETERS


class ObservingPlan(SavePlan, ABC):
    """Observes tensors beside what it saves of them."""

    only_beside = False
    """Whether observations are no tensors of the run, and never make a step of their own."""

    in_blocks = (ModeKeys.EVAL, ModeKeys.PREDICT)
    """The modes whose steps come in blocks, of which the first step is observed."""
    digests_only = False
    """Whether nothing but digests is kept."""
    times_only: Members = NO_MEMBERS
    """What is due at steps of which nothing but the times of steps is kept."""

    def __init__(self, collections: Iterable[Collection]):
        super().__init__(collections)
        self._inputs_of: set[str] = set()
        self._known: dict[tuple[str, Members], tuple[Wanted | None]] = {}
        self._groups: dict[tuple[tuple[str, ...], Members], bool] = {}
        self._blocks: dict[ModeKeys, FirstOfBlock] = {}

    def entered(self, mode: ModeKeys, first: int) -> None:
        """Note that the training has changed to this mode, and which of its steps comes first."""
        if mode in self._blocks:
            self._blocks[mode].begin(first)

    def observe_inputs_of(self, layer: str) -> None:
        """Observe the inputs of this layer, which are the batch: those of others are outputs already.

        Without such a layer all inputs that are recorded are observed.
        """
        if layer not in self._inputs_of:
            self._inputs_of.add(layer)
            self._forget()

    def observe_parts(self) -> None:
        """Observe gradients and updates in any case: parameters are sharded, and each worker has a part."""

    def wanted(self, tensor_name: str, due: Members) -> Wanted | None:
        known = self._known.get((tensor_name, due))  # what is zoomed into is never there
        return super().wanted(tensor_name, due) if known is None else known[0]

    def planned(self, tensor_name: str, due: Members) -> Wanted | None:
        known = self._known.get((tensor_name, due))
        if known is None:
            if len(self._known) >= NAMES_REMEMBERED:
                self._forget()
            known = self._known[tensor_name, due] = (self._wanted_now(tensor_name, due),)
        return known[0]

    def observes_all(self, names: tuple[str, ...], due: Members) -> bool:
        """Return whether all tensors of these names are observed, and no more, while those are due."""
        if due >= self._first_zoom:
            return False
        known = self._groups.get((names, due))
        if known is None:
            if len(self._groups) >= GROUPS_REMEMBERED:
                self._groups.clear()
            known = self._groups[names, due] = all(self.wanted(name, due) is OBSERVED for name in names)
        return known

    def _forget(self) -> None:
        self._known.clear()
        self._groups.clear()

    def assign(self, tensor_name: str, collection_name: str) -> None:
        before = self.members(tensor_name)
        super().assign(tensor_name, collection_name)
        if self.members(tensor_name) != before:
            self._forget()

    @abstractmethod
    def _wanted_now(self, tensor_name: str, due: Members) -> Wanted | None:
        """Work out what is wanted of a tensor of which nothing is known yet."""

    def _is_of_inner_layer(self, tensor_name: str) -> bool:
        """Whether it is an input of a layer that gets no batch: it is the output of another one."""
        given = _INPUT.match(tensor_name) if self._inputs_of else None
        return given is not None and given[1] not in self._inputs_of


class DefaultPlan(ObservingPlan):
    """Saves losses and metrics as they are, and observes every other tensor."""

    def __init__(self, collections: Iterable[Collection]):
        super().__init__(collections)
        self._blocks.update((mode, FirstOfBlock(self.of_mode(mode))) for mode in self.in_blocks)
        self._modes.update(self._blocks)

    def count_from(self, first: int) -> None:
        """Count the steps of training from that one on: a later beginning is saved as densely as any."""
        for mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL):
            self._modes[mode] = CountedFrom(self._modes[mode], first)

    @property
    def observed_members(self) -> Members:
        return self._first_zoom - 1

    def _wanted_now(self, tensor_name: str, due: Members) -> Wanted | None:
        found = SavePlan.planned(self, tensor_name, due)
        if found is not None or not due:
            return found
        return None if self._is_of_inner_layer(tensor_name) else OBSERVED


class ReplicaPlan(DefaultPlan):
    """Keeps digests of parameters and batches, to be compared with those of the first worker."""

    digests_only = True
    wanted = SavePlan.wanted  # `planned` refuses more than what is known of it

    def __init__(self, collections: Iterable[Collection]):
        super().__init__(collections)
        self._kinds = DIGESTED
        self.times_only = self._first_zoom  # a member beside the collections
        self._first_zoom <<= 1
        for mode in ModeKeys:
            if mode in self.in_blocks:
                self._modes[mode] = self._blocks[mode] = FirstOfBlock(ModePlan(()))
            else:
                self._modes[mode] = _EveryTenth(self._modes[mode], self.times_only)

    def observe_parts(self) -> None:
        self._kinds = _DIGESTED_OR_SHARDED
        self._forget()

    def planned(self, tensor_name: str, due: Members) -> Wanted | None:
        if kind_of(tensor_name) not in self._kinds or due == self.times_only:
            return None
        found = super().planned(tensor_name, due)
        return found if found is not None and found.observed else None


def due_before(step: int) -> int:
    """How many steps of a mode the default plan saves before this one."""
    frequent = min(step, 10)
    tens = max(0, min(step, 1001) - 1) // 10
    hundreds = max(0, step - 1) // 100 - 10 if step > 1001 else 0
    return frequent + tens + hundreds


class _EveryTenth(ModePlan):
    """What is due in a mode of the default plan, at every tenth of its steps; at the others, times."""

    __slots__ = ("_times", "_whole")

    def __init__(self, plan: ModePlan, times: Members):
        super().__init__(())
        self._whole = plan
        self._times = times

    def due(self, mode_step: int) -> Members:
        due = self._whole.due(mode_step)
        if not (due and due_before(mode_step) % 10):
            return due
        return NO_MEMBERS if mode_step < 10 else self._times

    def asks_at(self, mode_step: int) -> bool:
        return self._whole.asks_at(mode_step)

    def idle_after(self, mode_step: int) -> int:
        return self._whole.idle_after(mode_step)


class CountedFrom(ModePlan):
    """What is due in a mode, if its first step has another number than 0."""

    __slots__ = ("_first", "_plan")

    def __init__(self, plan: ModePlan, first: int):
        super().__init__(())
        self._plan = plan
        self._first = first

    def due(self, mode_step: int) -> Members:
        return self._plan.due(mode_step - self._first)

    def asks_at(self, mode_step: int) -> bool:
        return self._plan.asks_at(mode_step - self._first)

    def idle_after(self, mode_step: int) -> int:
        return self._plan.idle_after(mode_step - self._first)


class FirstOfBlock(ModePlan):
    """Everything that is due in a mode, at the first step of a block of steps; of many blocks, only some."""

    __slots__ = ("_all", "_begun", "_first")

    def __init__(self, plan: ModePlan):
        super().__init__(())
        self._all = plan.due(0)
        self._first = 0
        self._begun = 0

    def begin(self, first: int) -> None:
        """Begin a block with this step."""
        every = 1 if self._begun < 100 else 10 if self._begun < 1000 else 100
        self._first = NEVER if self._begun % every else first
        self._begun += 1

    def due(self, mode_step: int) -> Members:
        return self._all if mode_step == self._first else NO_MEMBERS

    def idle_after(self, mode_step: int) -> int:
        return NEVER
