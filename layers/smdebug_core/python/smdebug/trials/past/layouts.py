"""The content of the steps of a run, by digest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from json import dumps
from operator import attrgetter

from smdebug.mode_keys import ModeKeys
from smdebug.service.records import StepLayout
from smdebug.trials.past.history import UNREAD
from smdebug.trials.stored.worker_steps import IndexLayout, Workers

GLOBAL = ModeKeys.GLOBAL


class KnownLayout:
    """The names of the tensors of some steps of a run."""

    __slots__ = ("digest", "first_step", "mode", "named", "names", "workers")

    def __init__(
        self,
        digest: str,
        names: Iterable[str],
        mode: ModeKeys,
        first_step: int,
        workers: tuple[str, ...],
    ):
        self.digest = digest
        self.names = tuple(sorted(names))
        self.named = frozenset(self.names)
        self.mode = mode
        self.first_step = first_step
        self.workers = workers

    @property
    def record(self) -> StepLayout:
        """The same as a record of the step index."""
        return StepLayout(self.digest, self.names, self.mode.name, self.first_step, self.workers)


class Layouts:
    """The content of steps, by digest: from the registry of the step index, and from index files read here.

    `fetch` returns the registry.
    """

    def __init__(self, fetch: Callable[[], Mapping[str, StepLayout]]):
        self._fetch = fetch
        self._known: dict[str, KnownLayout] = {}
        self._in_order: list[KnownLayout] = []
        self._first_steps: list[int] = []
        self._names: dict[tuple[ModeKeys, int], tuple[str, ...]] = {}
        self._digests: dict[tuple[ModeKeys, frozenset[IndexLayout]], str] = {}
        self._is_fetched = self._is_fetched_again = False

    def __getitem__(self, digest: str) -> KnownLayout:
        return self._known[digest]

    def __contains__(self, digest: str) -> bool:
        if digest == UNREAD:
            return False
        if digest not in self._known and not self._is_fetched_again:
            # Another reader may have recorded it first.
            self._is_fetched_again = True
            self._add_records(self._fetch())
        return digest in self._known

    def may_have_grown(self) -> None:
        """Fetch the registry again for the next digest that is not known."""
        self._is_fetched_again = False

    def fetch_again(self) -> None:
        """Fetch the registry again at the next question."""
        self._is_fetched = False

    def through(self, step: int) -> list[KnownLayout]:
        """Return those seen up to a step, in the order of their first steps."""
        self._fetch_once()
        return self._in_order[: bisect_right(self._first_steps, step)]

    def names(self, step: int, mode: ModeKeys) -> tuple[str, ...]:
        """Return the names of all tensors seen up to a step in a mode, sorted; of all modes for GLOBAL."""
        seen = self.through(step)
        known = self._names.get((mode, len(seen)))
        if known is None:
            if len(self._names) > 64:
                self._names.clear()
            names = {name for layout in seen if mode in (GLOBAL, layout.mode) for name in layout.names}
            known = self._names[mode, len(seen)] = tuple(sorted(names))
        return known

    def add(self, step: int, mode: ModeKeys, written: Workers) -> str:
        """Add what these workers wrote at a step; return its digest."""
        key = (mode, frozenset(by_worker.layout for by_worker in written.values()))
        if key not in self._digests:
            if len(self._digests) > 256:
                self._digests.clear()
            self._digests[key] = _digest(mode, key[1])
        digest = self._digests[key]
        known = self._known.get(digest)
        if known is None or step < known.first_step:
            names = {name for layout in key[1] for name in layout.of_tensor}
            self._keep(KnownLayout(digest, names, mode, step, tuple(written)))
            self._put_in_order()
        return digest

    def _fetch_once(self) -> None:
        if not self._is_fetched:
            self._is_fetched = True
            self._add_records(self._fetch())

    def _add_records(self, records: Mapping[str, StepLayout]) -> None:
        for digest, record in records.items():
            known = self._known.get(digest)
            if known is None or record.first_step < known.first_step:
                mode, workers = ModeKeys[record.mode], tuple(record.workers)
                self._keep(KnownLayout(digest, record.names, mode, record.first_step, workers))
        self._put_in_order()

    def _keep(self, layout: KnownLayout) -> None:
        self._known[layout.digest] = layout
        self._in_order = []

    def _put_in_order(self) -> None:
        if not self._in_order:
            self._in_order = sorted(self._known.values(), key=attrgetter("first_step"))
            self._first_steps = [layout.first_step for layout in self._in_order]
            self._names.clear()


def _digest(mode: ModeKeys, layouts: Iterable[IndexLayout]) -> str:
    """Return a digest that is equal for steps with the same values, reductions and shapes."""
    held: dict[str, set[str]] = {}
    for layout in layouts:
        for name, places in layout.of_tensor.items():
            kinds = held.setdefault(name, set())
            if places.value is not None:
                kinds.add("value")
            if places.shape is not None:
                kinds.add("shape")
            kinds.update(f"{'abs ' if of_abs else ''}{which}" for which, of_abs in places.reductions)
    content = [mode.name, [[name, sorted(held[name])] for name in sorted(held)]]
    return sha256(dumps(content, separators=(",", ":")).encode()).hexdigest()[:16]
