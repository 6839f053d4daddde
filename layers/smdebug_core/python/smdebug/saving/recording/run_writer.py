"""One worker's part of a run, written: its steps in the background, and the files around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import StorageError
from smdebug.files.collections_file import ClosingNote, LostSteps, encode_collections
from smdebug.files.framing import Checksum
from smdebug.files.names import collections_key
from smdebug.logger import get_logger
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.arrays.copies import CopyMemory
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.saving.place.deadline import within
from smdebug.saving.place.places import TENSORBOARD_FOLDER
from smdebug.saving.place.write_access import WriteAccess
from smdebug.saving.planning.step_clock import StepClock
from smdebug.saving.recording.late_tensors import LateTensors
from smdebug.saving.recording.open_step import OpenStep
from smdebug.saving.writing.background import BackgroundWriter
from smdebug.saving.writing.tensorboard_export import TensorboardExport
from smdebug.saving.writing.watched_storage import WatchedStorage
from smdebug.storage import open_storage
from smdebug.storage.base import Storage


class RunWriter:
    """Writes steps in the background: the collections file first, index files in order."""

    def __init__(
        self,
        storage: Storage,
        worker: str,
        attempt: StartedAttempt,
        collections: CollectionManager,
        access: WriteAccess,
        adapter: FrameworkAdapter,
        *,
        checksum: Checksum = "constant",
        patience: float,
        queue_bytes: int,
        tensorboard_dir: str | None = None,
    ):
        self.storage = storage
        self.worker = worker
        self.attempt = attempt
        self.collections = collections
        self.access = access
        self.patience = patience
        self.background = BackgroundWriter(storage, patience=patience, max_bytes=queue_bytes)
        # For what is written with a step, and neither counts as its bytes nor as progress.
        self._beside_steps = cast(Storage, WatchedStorage(storage, _nothing, self.background.refuse_given_up))
        self.copies: CopyMemory | None = CopyMemory(queue_bytes, adapter.copy)
        self.last_saved_step: int | None = None
        self.steps_written = 0
        self.after_step: Callable[[], object] | None = None
        """Called in the background when a step is written."""
        self._keeps_colon_index = adapter.keeps_colon_index
        self._checksum: Checksum = checksum
        self._board = _tensorboard(storage, tensorboard_dir)
        self._submitted: int | None = None  # the last step that was handed over
        self._previous: int | None = None  # the last step whose index file is written
        self._exported: bytes | None = None  # the collections file as it was written last
        self._has_new_collection = False
        self._stopped: tuple[int, str] | None = None  # the first step that is not saved any more, and why

    @property
    def lost_steps(self) -> LostSteps:
        """The steps that could not be written so far."""
        return self.background.lost_steps

    def stop_at(self, step: int, reason: str) -> None:
        """Note that nothing is saved from this step on, and why. The first time counts."""
        self._stopped = self._stopped or (step, reason)

    def closing_note(self, last_begun: int, *, failed_at: float | None = None) -> ClosingNote:
        """Return what to say of the steps, when the training has come to the step `last_begun`.

        `failed_at` is when it failed or was terminated, if it did.
        """
        lost = self.lost_steps
        if self._stopped is not None and last_begun >= self._stopped[0]:
            first, reason = self._stopped
            first = first if lost.first is None else min(first, lost.first)
            lost = LostSteps(max(1, lost.count), first, None, lost.reason or reason)
        return ClosingNote(self.last_step, self.steps_written, lost, failed_at)

    @property
    def last_step(self) -> int | None:
        """The last step whose files are written."""
        return self._previous

    @property
    def failed(self) -> bool:
        """Whether writing was given up."""
        return self.background.failed

    def open_step(self, clock: StepClock) -> OpenStep:
        """Return the step, open for recording."""
        return OpenStep(
            clock,
            self.worker,
            checksum=self._checksum,
            meta_extras=self._meta_extras,
            keep_colon_index=self._keeps_colon_index,
            board=self._board.step(clock) if self._board else None,
            memory=self.copies,
        )

    def late_tensors(self, clock: StepClock) -> LateTensors:
        """Return what collects values for a step that was handed over already."""
        return LateTensors(clock, self.worker, checksum=self._checksum, meta_extras=self._meta_extras)

    def was_submitted(self, clock: StepClock) -> bool:
        """Return whether this was the last step that was handed over."""
        return clock.step == self._submitted

    def submit(self, step: OpenStep) -> None:
        """Hand a step over. This waits for room in the queue, never for the storage."""
        if not step:
            return
        job = step.job_after(self.background.storage, self._before_index, self._after_index)
        self._submitted = step.clock.step
        if self.background.submit(job):
            self.last_saved_step = step.clock.step

    def submit_late(self, late: LateTensors) -> None:
        """Hand over values that belong to a step written earlier."""
        if late:
            was_lost = self.background.was_lost
            self.background.submit(late.job(self.background.storage, was_lost))

    def export_collections(self, storage: Storage | None = None) -> None:
        """Write the collections file if its content has changed."""
        content = self._collections_file()
        if content != self._exported:
            (storage or self.storage).write(collections_key(self.worker), content)
            self._exported = content

    def write_rules(self, content: bytes) -> None:
        """Write the rules of the run, before anything else of it."""
        from smdebug.saving.recording.rules_of_run import RULES_FILE

        try:
            within(
                lambda: self.storage.write(RULES_FILE, content),
                self.storage.location,
                self.patience,
            )
        except StorageError as error:
            get_logger().error("No rules watch this run: %s could not be written: %s", RULES_FILE, error)

    def _meta_extras(self) -> Mapping[str, Any]:
        """The attempt and the steps before, for an index file; read when it is written, in step order."""
        return {
            **self.attempt.to_meta(),
            "previous_step": self._previous,
            "steps_before": self.steps_written,
            **self.lost_steps.to_meta(),
        }

    def add_to_collection(self, collection: str, tensor_name: str) -> None:
        """Add a tensor to a collection that readers of the run need with the next step."""
        self.collections.get(collection).add_tensor_name(tensor_name)
        self._has_new_collection = True

    def _before_index(self) -> None:
        if self._exported is None or self._has_new_collection:
            self._has_new_collection = False
            self.export_collections(self._beside_steps)

    def _after_index(self, step: int) -> None:
        if self.background.is_given_up:
            return  # the next steps were written meanwhile, and perhaps the end of the run
        self._previous = step
        self.steps_written += 1
        self.access.renew()
        if self.after_step is not None:
            self.after_step()

    def _collections_file(self) -> bytes:
        while True:
            try:
                return encode_collections(self.collections.to_json_dict(), checksum=True)
            except RuntimeError:  # the training added a name meanwhile
                continue


def _nothing() -> None:
    pass


def _tensorboard(storage: Storage, folder: str | None) -> TensorboardExport | None:
    if folder is None:
        return None
    if folder == f"{storage.location.rstrip('/')}/{TENSORBOARD_FOLDER}":
        return TensorboardExport(storage, f"{TENSORBOARD_FOLDER}/")
    return TensorboardExport(open_storage(folder))
