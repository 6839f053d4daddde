"""The plan of what to save: which tensors to write at which step, and as what.

    plan = SavePlan.prepared(collections.values(), included={"losses", "weights"})
    due = plan.of_mode(ModeKeys.TRAIN).due(mode_step)     # nothing due: the step costs no more than this
    wanted = plan.wanted("dense/kernel", due)             # None: no collection wants this tensor now

A set of collections is an int with bit i for the i-th by name: intersecting two is one `&`. Few different
sets occur, so what a set wants together is worked out once.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from smdebug.config.collection import Collection
from smdebug.config.keys import (
    NON_HISTOGRAM_COLLECTIONS,
    NON_REDUCTION_COLLECTIONS,
    SCALAR_COLLECTIONS,
    SM_METRIC_COLLECTIONS,
    TRAINING_ONLY_COLLECTIONS,
    CollectionKeys,
)
from smdebug.config.patterns import searcher
from smdebug.config.reduction_config import Reduction, ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.mode_keys import ModeKeys

Members = int
NO_MEMBERS: Members = 0
NEVER = sys.maxsize  # the next step of what is not saved again
RAW_ONLY = ReductionConfig(save_raw_tensor=True)
# A training that gives every tensor a new name must not fill the memory with old names.
NAMES_REMEMBERED = 100_000
GROUPS_REMEMBERED = 64


class Wanted(NamedTuple):
    """What to write of a tensor at a step: everything that some collection wants."""

    raw: bool
    reductions: tuple[Reduction, ...]
    shape: bool
    histogram_of: str | None  # the collection in the tag of the TensorBoard histogram
    is_scalar: bool  # a TensorBoard scalar if it has one element
    is_metric: bool  # a SageMaker metric
    observed: bool = False  # measured, and not saved itself unless it is raw as well
    zoomed: bool = False  # raw because a zoom request names it
    by_chief: bool = False  # saved by the first worker; by this one, its digest at most

    @property
    def nothing(self) -> bool:
        saved = self.raw or self.reductions or self.shape or self.histogram_of
        return not (saved or self.observed)


_NOTHING = Wanted(raw=False, reductions=(), shape=False, histogram_of=None, is_scalar=False, is_metric=False)


class Schedule(NamedTuple):
    """Steps, and the collections saved at them."""

    interval: int
    start: int
    end: int | None
    steps: frozenset[int]
    members: Members


class ModePlan:
    """The collections that are due at each step of one mode."""

    __slots__ = ("_ordered", "_schedules")

    def __init__(self, schedules: Iterable[Schedule]):
        self._schedules = tuple(schedules)
        self._ordered = tuple(sorted({step for known in self._schedules for step in known.steps}))

    def due(self, mode_step: int) -> Members:
        """Return the collections to save at this step of the mode."""
        members = NO_MEMBERS
        for interval, start, end, steps, those in self._schedules:
            if (
                mode_step % interval == 0 and start <= mode_step and (end is None or mode_step < end)
            ) or mode_step in steps:
                members |= those
        return members

    def asks_at(self, mode_step: int) -> bool:
        """Return whether to check for requests at this step: the same steps for all workers."""
        return bool(self.due(mode_step))

    def idle_after(self, mode_step: int) -> int:
        """Return how many steps of the mode follow this one before something is due again."""
        coming = mode_step + 1
        place = bisect_left(self._ordered, coming)
        due = self._ordered[place] if place < len(self._ordered) else NEVER
        for interval, start, end, _, _ in self._schedules:
            regular = -(-max(coming, start) // interval) * interval
            if regular < due and (end is None or regular < end):
                due = regular
        return due - coming


class SavePlan:
    """The collections that are saved, each as configured.

    Nothing in it changes after `prepared`, except for caches.
    """

    def __init__(self, collections: Iterable[Collection]):
        self._collections = tuple(sorted(collections, key=lambda collection: collection.name))
        self._matchers = tuple(map(_matcher, self._collections))
        self._reductions = tuple(map(_reductions, self._collections))
        self._modes = {mode: self._plan(mode) for mode in ModeKeys}
        self._members: dict[str, Members] = {}
        self._wanted: dict[Members, Wanted | None] = {NO_MEMBERS: None}
        self._first_zoom = 1 << len(self._collections)
        self._zooms: list[Callable[[str], bool]] = []

    @classmethod
    def prepared(
        cls,
        collections: Iterable[Collection],
        included: Iterable[str],
        built_in: Iterable[str] = (),
    ) -> SavePlan:
        """Plan for the included collections; all of them if `all` is included.

        A collection that is not `built_in` and selects no tensors is left out: see `without_tensors`.
        """
        names = set(included)
        known = tuple(collections)
        left_out = without_tensors(known, built_in)
        return cls(
            collection
            for collection in known
            if (collection.name in names or CollectionKeys.ALL in names) and collection.name not in left_out
        )

    def of_mode(self, mode: ModeKeys) -> ModePlan:
        return self._modes[mode]

    def entered(self, mode: ModeKeys, first: int) -> None:
        """Note that the training has changed to this mode, and which of its steps comes first."""

    def members(self, tensor_name: str) -> Members:
        """Return the collections that the tensor belongs to."""
        members = self._members.get(tensor_name)
        if members is None:
            members = NO_MEMBERS
            for bit, matches in enumerate(self._matchers):
                if matches(tensor_name):
                    members |= 1 << bit
            if len(self._members) >= NAMES_REMEMBERED:
                self._members.clear()
            self._members[tensor_name] = members
        return members

    def assign(self, tensor_name: str, collection_name: str) -> None:
        """Add the tensor to a collection that no pattern would find it for."""
        for bit, collection in enumerate(self._collections):
            if collection.name == collection_name:
                self._members[tensor_name] = self.members(tensor_name) | 1 << bit

    def includes(self, tensor_name: str) -> bool:
        """Return whether the tensor is saved or observed at some steps."""
        return self.planned(tensor_name, self._first_zoom - 1) is not None

    def collections(self, members: Members) -> list[Collection]:
        return [c for bit, c in enumerate(self._collections) if members >> bit & 1]

    @property
    def observed_members(self) -> Members:
        """What is due in addition at a step that is zoomed into: everything, where tensors are observed."""
        return NO_MEMBERS

    def zoom_into(self, is_named: Callable[[str], bool]) -> Members:
        """Return a set that, where it is due, wants the tensors with these names whole."""
        self._zooms.append(is_named)
        return self._first_zoom << (len(self._zooms) - 1)

    def wanted(self, tensor_name: str, due: Members) -> Wanted | None:
        """Return what to write of the tensor while those collections are due; None for nothing."""
        if due < self._first_zoom:
            return self.planned(tensor_name, due)
        planned = self.planned(tensor_name, due & (self._first_zoom - 1))
        if (planned is not None and planned.raw) or not self._zooms[-1](tensor_name):
            return planned
        return (planned or _NOTHING)._replace(raw=True, zoomed=True)

    def planned(self, tensor_name: str, due: Members) -> Wanted | None:
        """Return what those collections want of the tensor; None for nothing."""
        members = self._members.get(tensor_name)
        if members is None:
            members = self.members(tensor_name)
        due_members = members & due
        try:
            return self._wanted[due_members]
        except KeyError:
            together = self._wanted[due_members] = self._together(due_members)
            return together

    def _together(self, members: Members) -> Wanted:
        configs = [c for bit, c in enumerate(self._reductions) if members >> bit & 1]
        names = [collection.name for collection in self.collections(members)]
        histograms = (
            collection.name
            for collection in self.collections(members)
            if collection.save_histogram and collection.name not in NON_HISTOGRAM_COLLECTIONS
        )
        return Wanted(
            raw=any(config.save_raw_tensor for config in configs),
            reductions=tuple(dict.fromkeys(r for config in configs for r in config)),
            shape=any(config.save_shape for config in configs),
            histogram_of=next(histograms, None),
            is_scalar=not SCALAR_COLLECTIONS.isdisjoint(names),
            is_metric=not SM_METRIC_COLLECTIONS.isdisjoint(names),
        )

    def _plan(self, mode: ModeKeys) -> ModePlan:
        together: dict[Schedule, Members] = {}
        for bit, collection in enumerate(self._collections):
            if mode in _WITHOUT_TRAINING and collection.name in TRAINING_ONLY_COLLECTIONS:
                continue
            schedule = _schedule(collection.save_config, mode)
            together[schedule] = together.get(schedule, NO_MEMBERS) | 1 << bit
        return ModePlan(schedule._replace(members=owners) for schedule, owners in together.items())


def without_tensors(collections: Iterable[Collection], built_in: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of collections that can have no tensors, except for `built_in` ones."""
    exempt = set(built_in)
    return frozenset(
        collection.name
        for collection in collections
        if not collection.selects_tensors and collection.name not in exempt
    )


def fill_in(collection: Collection, save_config: SaveConfig, reduction_config: ReductionConfig) -> None:
    """Fill in what the collection leaves open from the hook's configuration."""
    if collection.save_config is None:
        collection.save_config = SaveConfig(save_config.mode_save_configs)
    else:
        collection.save_config.merge_default_save_config(save_config)
    if collection.name in NON_REDUCTION_COLLECTIONS:
        collection.reduction_config = RAW_ONLY
    elif collection.reduction_config is None:
        collection.reduction_config = reduction_config
    if collection.name in NON_HISTOGRAM_COLLECTIONS:
        collection.save_histogram = False


_WITHOUT_TRAINING = frozenset({ModeKeys.EVAL, ModeKeys.PREDICT})


def _schedule(config: SaveConfig | None, mode: ModeKeys) -> Schedule:
    of_mode = config.mode_save_configs.get(mode) if config else None
    steps = of_mode or SaveConfigMode()
    return Schedule(
        steps.save_interval,
        steps.start_step,
        steps.end_step,
        frozenset(steps.save_steps),
        NO_MEMBERS,
    )


def _reductions(collection: Collection) -> ReductionConfig:
    if collection.name in NON_REDUCTION_COLLECTIONS:
        return RAW_ONLY
    return collection.reduction_config or RAW_ONLY


def _matcher(collection: Collection) -> Callable[[str], bool]:
    searches = tuple(map(searcher, collection.include_regex))
    return partial(_belongs, frozenset(collection.tensor_names), searches)


def _belongs(names: frozenset[str], searches: tuple[Callable[[str], object], ...], tensor_name: str) -> bool:
    return tensor_name in names or any(search(tensor_name) for search in searches)
