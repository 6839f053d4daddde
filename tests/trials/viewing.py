"""Views of a run as of a step, made the way the application makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import SMDebugError
from smdebug.files.collections_file import parse_collections
from smdebug.files.names import COLLECTIONS_FOLDER, INDEX_FOLDER, step_file
from smdebug.service.records import StepLayout
from smdebug.storage import ByteSpan, Storage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import Trial
from smdebug.trials.live.waiting import Clock, WaitLimits
from smdebug.trials.past.as_of import AsOfTrial
from smdebug.trials.past.history import History, MemoryHistory, StepSummary

COLLECTIONS = {
    "losses": {"include_regex": ["loss"]},
    "w": {"include_regex": ["^weight"]},
    "all": {},
}


def never(seconds: float) -> None:
    raise AssertionError(f"slept {seconds} s")


SLEEPLESS = Clock(now=lambda: 0.0, sleep=never)


class FarStorage:
    """A remote run, which may be read and, if at all, listed; it counts its requests."""

    def __init__(self, storage: Storage, *, may_list: bool = False):
        self._storage = storage
        self._may_list = may_list
        self._lock = threading.Lock()
        self.asked: list[tuple[str, str]] = []

    @property
    def location(self) -> str:
        return self._storage.location

    @property
    def concurrency(self) -> int:
        return 4

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        with self._lock:
            self.asked.append(("get", key))
        return self._storage.read(key, span)

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        return memoryview(bytearray(self.read(key, span)))

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        assert self._may_list, f"listed {prefix}"
        with self._lock:
            self.asked.append(("list", prefix))
        return self._storage.list(prefix, start_after)

    def exists(self, key: str) -> bool:
        raise AssertionError(f"asked whether there is {key}")

    size = create = claim = delete = exists

    def write(self, key: str, data: Any) -> None:
        assert key.startswith("rule-output/"), f"wrote {key}"
        self._storage.write(key, data)

    def gets(self, folder: str = "") -> list[str]:
        return [key for kind, key in self.asked if kind == "get" and key.startswith(folder)]


class Recorder:
    """The step index, as far as a view needs it: summaries of steps, and known layouts."""

    def __init__(self) -> None:
        self.steps: dict[int, StepSummary] = {}
        self._layouts: dict[str, StepLayout] = {}
        self.asked: list[tuple[Any, ...]] = []

    def record(self, trial: AsOfTrial, summary: StepSummary) -> StepSummary:
        self.steps[summary.step] = summary
        if summary.workers:
            layout = trial.layout(summary.layout)
            known = self._layouts.get(layout.digest)
            if known is None or layout.first_step < known.first_step:
                self._layouts[layout.digest] = layout
        return summary

    @property
    def memory(self) -> MemoryHistory:
        return MemoryHistory(self.steps.values(), self._layouts)

    def at(self, step: int) -> StepSummary | None:
        self.asked.append(("at", step))
        return self.steps.get(step)

    def before(self, step: int, mode: Any = None) -> Iterator[StepSummary]:
        self.asked.append(("before", step, mode))
        return self.memory.before(step, mode)

    def first(self, mode: Any = None) -> StepSummary | None:
        return self.memory.first(mode)

    def layouts(self) -> Mapping[str, StepLayout]:
        self.asked.append(("layouts",))
        return self._layouts


def collections_of(storage: Storage) -> CollectionManager:
    key = next(iter(storage.list(COLLECTIONS_FOLDER)))
    return CollectionManager.from_dict(parse_collections(storage.read(key), file=key))


def view_of(storage: Storage, history: History, *, far: Any = None, **options: Any) -> AsOfTrial:
    collections = collections_of(storage)
    return AsOfTrial(
        "a trial",
        storage if far is None else far,
        history=history,
        collections=collections,
        num_workers=collections.get_num_workers(),
        **options,
    )


def written_by(storage: Storage) -> dict[int, tuple[str, ...]]:
    """The workers of every step, as a listing has them."""
    workers: dict[int, list[str]] = {}
    for name in filter(None, map(step_file, storage.list(INDEX_FOLDER))):
        workers.setdefault(name.step, []).append(name.worker)
    return {step: tuple(names) for step, names in sorted(workers.items())}


def recorded(storage: Storage, through: int, steps: Iterable[int] | None = None) -> Recorder:
    """Return the content of the step index after every step up to that one was evaluated."""
    recorder = Recorder()
    view = view_of(storage, recorder)
    for step, workers in written_by(storage).items():
        if step <= through and (steps is None or step in steps):
            recorder.record(view, view.move_to(step, workers))
    return recorder


def through(storage: Storage, step: int) -> MemoryStorage:
    """The run as it was when that step had just been written."""
    then = MemoryStorage()
    for key in storage.list(""):
        name = step_file(key)
        if key.startswith(COLLECTIONS_FOLDER) or (name and name.step <= step):
            then.write(key, storage.read(key))
    return then


def plain(storage: Storage, path: str) -> Trial:
    """A trial that lists, and neither waits nor sleeps."""
    return Trial(
        "a trial",
        storage,
        path=path,
        clock=SLEEPLESS,
        wait_limits=WaitLimits(incomplete_steps=10**6),
    )


def plainly(answer: Any) -> Any:
    """Return the answer as plain data, which can be compared."""
    if isinstance(answer, np.ndarray | np.generic):
        return (str(answer.dtype), answer.shape, answer.tolist())
    if isinstance(answer, dict):
        return {key: plainly(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [plainly(value) for value in answer]
    return answer


def outcome(question: Callable[[], Any]) -> Any:
    try:
        return plainly(question())
    except SMDebugError as error:
        return (type(error), error.args)
