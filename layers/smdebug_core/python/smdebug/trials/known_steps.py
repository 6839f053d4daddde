"""What trials and tensors need from a run, whatever its source.

`RunIndex` and `ListedRun` use the index files that a listing finds; `LazyIndex` and `HistoricRun` use a
history, for a view of the run as of one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.config.collection_manager import CollectionManager
    from smdebug.exceptions import SMDebugError
    from smdebug.trials.progress import RunProgress, StepState
    from smdebug.trials.stored.attempts import Attempt
    from smdebug.trials.stored.missing_steps import MissingSteps
    from smdebug.trials.stored.worker_steps import Workers, WorkerStep, Written

GLOBAL = ModeKeys.GLOBAL


class KnownSteps(Protocol):
    """The steps of a run and what they hold.

    A step given with a mode is counted within that mode; with GLOBAL it is a global step.
    """

    @property
    def at(self) -> Mapping[int, Workers]:
        """What was written at global steps, as far as it is known without reading anything."""

    @property
    def workers(self) -> frozenset[str]:
        """The workers that have written something."""

    @property
    def workers_by_step(self) -> Mapping[int, frozenset[str]]:
        """Which workers have written each global step."""

    def steps(self, mode: ModeKeys) -> Sequence[int]:
        """Return the known steps of a mode, in order. Do not modify."""

    def numbered(self, mode: ModeKeys) -> Iterable[tuple[int, int]]:
        """Return the known steps of a mode, in order, each with its global number."""

    def modes(self) -> dict[ModeKeys, None]:
        """Return the modes seen, except GLOBAL, in the order of their first steps."""

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return the mode of a global step and its number within that mode."""

    def global_step(self, step: int, mode: ModeKeys) -> int | None:
        """Return the global number of a step; None if the step is not known."""

    def workers_at(self, step: int, mode: ModeKeys) -> Workers | None:
        """Return what was written at a step, by worker; None if the step is not known."""

    def written(self, name: str, step: int, mode: ModeKeys, worker: str | None = None) -> Written:
        """Return the workers that wrote a tensor at a step, in order; of a given `worker`, only that one."""

    def steps_of(self, name: str, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """Yield the steps at which a tensor was written, in order, each with its global number."""

    def back_from(self, name: str, step: int, mode: ModeKeys) -> Iterator[tuple[int, int]]:
        """Yield the same steps backwards, from `step` on."""

    def first_seen(self, name: str, mode: ModeKeys) -> int | None:
        """Return the global step at which a tensor was first written in a mode."""

    def tensor_names(self, mode: ModeKeys = GLOBAL) -> tuple[str, ...]:
        """Return the names of all tensors seen in a mode, sorted; of all modes for GLOBAL."""

    def tensor_names_at(self, step: int, mode: ModeKeys) -> Sequence[str]:
        """Return the names of the tensors of a step, sorted. Do not modify."""

    def has_tensor(self, name: str) -> bool:
        """Return True if a tensor of that name was seen."""

    def original_name(self, name: str) -> str | None:
        """Return the framework's name of a tensor, from its first shape record."""


class RunSource(Protocol):
    """Where a trial gets its run from."""

    @property
    def index(self) -> KnownSteps:
        """The steps known so far."""

    @property
    def progress(self) -> RunProgress:
        """Which of them are settled, and whether the run has ended."""

    @property
    def collections(self) -> CollectionManager:
        """The collections of the run."""

    @property
    def damaged_files(self) -> dict[str, SMDebugError]:
        """Index files that could not be parsed, with the error. Their steps may lack a worker."""

    @property
    def announced_workers(self) -> Sequence[str]:
        """The workers that have a collections file, where those are listed."""

    @property
    def last_complete_step(self) -> int:
        """The step up to which the refreshes so far have counted steps as settled; -1 at first."""

    @property
    def last_index_token(self) -> str | None:
        """The key of the last index file of that step, where index files are listed."""

    @property
    def has_more(self) -> bool:
        """Whether the last refresh left files unread."""

    def attempts(self) -> tuple[Attempt, ...]:
        """Return the attempts of the training whose steps are known."""

    def missing_steps(self, refresh: Callable[[], object]) -> MissingSteps:
        """Return the steps that are missing; `refresh` is called once the closing notes are read."""

    def refresh(self) -> None:
        """Read what is new."""

    def count_settled(self) -> None:
        """Move `last_complete_step`, after a refresh."""

    def follow(self) -> None:
        """Read what is new, and notice the end of the run."""

    def state_in_mode(self, step: int, mode: ModeKeys) -> StepState:
        """Return the state of a step that is counted within its mode."""

    def await_event_file(self, written: WorkerStep, file: str, name: str) -> None:
        """Return once the event file exists; `TensorUnavailableForStep` if it will not appear."""
