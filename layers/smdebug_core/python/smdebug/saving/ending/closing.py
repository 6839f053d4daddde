"""The end of a run: the last files, each written even if others fail."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from smdebug.config.environment import is_sagemaker_job
from smdebug.config.keys import CollectionKeys
from smdebug.exceptions import SMDebugError, StorageError
from smdebug.files.names import END_MARKER
from smdebug.files.replicas import Replicas
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.ending.last_words import Saved, closing_line, problems
from smdebug.saving.ending.other_workers import wait_for_workers
from smdebug.saving.ending.termination import before_termination, leave_termination
from smdebug.saving.logged.keeping import RunLogged
from smdebug.saving.observations.step_observations import StepObservations
from smdebug.saving.place.checkpoint_writing import RunCheckpoints
from smdebug.saving.place.deadline import within
from smdebug.saving.place.origin_writing import CLOSING_SECONDS, RunOrigin
from smdebug.saving.place.write_access import WriteAccess
from smdebug.saving.process.companion import Companion
from smdebug.saving.process.process_end import ProcessEnd
from smdebug.saving.recording.recorder import Recorder
from smdebug.saving.recording.recorder_states import State
from smdebug.saving.recording.run_writer import RunWriter

RECOVERY_SECONDS = 5.0
"""How long a storage that had failed may take for the end of the run."""


class EndingHook(Protocol):
    """What the end of a run needs of the hook."""

    recorder: Recorder
    access: WriteAccess | None
    companion: Companion | None
    origin: RunOrigin
    checkpoints: RunCheckpoints
    logged: RunLogged
    write_patience: float

    def begin_step(self, mode: ModeKeys | None = None) -> None: ...

    def end_run(self, *, ended: bool) -> None: ...

    def is_chief(self) -> bool: ...

    @property
    def out_dir(self) -> str: ...

    @property
    def observations(self) -> StepObservations | None: ...

    @property
    def dry_run(self) -> bool: ...

    @property
    def include_collections(self) -> Sequence[str]: ...

    @property
    def if_no_step(self) -> str: ...

    @property
    def if_no_loss(self) -> str: ...

    @property
    def if_no_optimizer(self) -> str | None: ...


class EndOfRun:
    """The end of a hook's run: when it is closed, or else with the process. It comes once."""

    def __init__(self, hook: EndingHook):
        self._hook = hook
        self._recorder = hook.recorder
        self._process = os.getpid()
        self._process_end = ProcessEnd()
        atexit.register(self._at_exit)

    def come_before_tools(self) -> None:
        """Close the run before what was registered for the end of the process since the hook was made.

        A tool that the training has begun meanwhile, such as W&B, takes nothing more once it has ended.
        """
        atexit.unregister(self._at_exit)
        atexit.register(self._at_exit)

    def come_before_termination(self) -> None:
        """Close the run also if the process is terminated."""
        before_termination(self._at_termination)

    def _at_termination(self) -> None:
        self._hook.end_run(ended=False)

    def come(self, ended: bool) -> None:
        """Close the run. In a forked child, and the second time, do nothing."""
        recorder = self._recorder
        if recorder.state is State.CLOSED or os.getpid() != self._process:
            return
        try:
            run = recorder.prepared()
            if recorder.has_waiting_values and recorder.state is State.NEW:
                self._hook.begin_step()  # scalars without a step make one
            recorder.hand_over_all()
            patience = min(CLOSING_SECONDS, self._hook.write_patience)
            self._hook.origin.finish(patience)
            self._hook.checkpoints.finish(patience)
            self._hook.logged.finish(patience)
            if run is not None and run.writer is not None:
                close_run(
                    run.writer,
                    is_chief=self._hook.is_chief(),
                    ended=ended,
                    last_begun=recorder.step,
                )
                self._say_what_was_saved(run.writer)
        except SMDebugError as error:
            get_logger().error("The run could not be closed: %s", error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training has ended well
            recorder.fail(error)
        finally:
            recorder.close()
            atexit.unregister(self._at_exit)
            self._process_end.leave()
            leave_termination(self._at_termination)
            if self._hook.access is not None:
                self._hook.access.leave()
            if self._hook.companion is not None:
                self._hook.companion.finish()

    def _at_exit(self) -> None:
        # A hook that saw no step and no value leaves no files.
        if self._recorder.last_step is not None or self._recorder.has_waiting_values:
            self._hook.end_run(ended=self._process_end.is_good())
        elif self._recorder.state is State.NEW and os.getpid() == self._process:
            self._say_what_was_saved(None)

    def _say_what_was_saved(self, writer: RunWriter | None) -> None:
        """Log what was saved and what to do next; what is missing, with what to add."""
        hook, recorder = self._hook, self._recorder
        if hook.dry_run or (writer is not None and not hook.is_chief()):
            return
        by_default = hook.observations is not None
        outcome = None if writer is None else writer.background.outcome
        saved = Saved(
            place=hook.out_dir,
            steps=recorder.steps_so_far,
            training_steps=recorder.training_steps_so_far,
            saved_steps=0 if writer is None else writer.steps_written,
            tensors=len(recorder.capture.all_names() if by_default else recorder.capture.names),
            bytes=0 if writer is None else writer.background.bytes_written,
            collections=hook.include_collections,
            saw_a_loss=_saw_a_loss(hook, writer),
            missed_the_optimizer=_missed_the_optimizer(hook),
            by_default=by_default,
        )
        has_failed = outcome is not None and (outcome.lost or outcome.refused)  # which was logged
        if not has_failed:
            for problem in problems(
                saved,
                if_no_step=hook.if_no_step,
                if_no_loss=hook.if_no_loss,
                if_no_optimizer=hook.if_no_optimizer or "",
            ):
                get_logger().warning("%s", problem)
        if saved.saved_steps:
            get_logger().info("%s", closing_line(saved))


def _saw_a_loss(hook: EndingHook, writer: RunWriter | None) -> bool:
    """Return whether a loss was recorded at any step, or none is expected."""
    if CollectionKeys.LOSSES not in hook.include_collections or writer is None:
        return True
    steps = hook.recorder.clock.mode_steps
    if steps.get(ModeKeys.PREDICT) == steps[ModeKeys.GLOBAL]:
        return True  # all steps were predictions, which have no loss
    series = set() if hook.observations is None else hook.observations.series_names
    losses = writer.collections.get(CollectionKeys.LOSSES).tensor_names
    return bool(losses) or any("loss" in name.lower() for name in series)


def _missed_the_optimizer(hook: EndingHook) -> bool:
    """Return whether gradients were measured that no optimizer was seen to use."""
    if hook.if_no_optimizer is None or hook.observations is None:
        return False
    return hook.observations.saw_gradients_alone


def close_run(writer: RunWriter, *, is_chief: bool, ended: bool, last_begun: int) -> None:
    """Write what is queued, the collections file, and as the chief of a run that ended the end marker.

    `last_begun` is the last step of the training, saved or not.
    """
    background = writer.background
    background.close()
    num_workers = writer.collections.get_num_workers()
    replicas = Replicas.of_run(writer.collections.meta)
    has_others = num_workers > 1 or replicas is not None
    # From these notes, an evaluation can tell that all steps of the run have arrived.
    # And which ranks have raised where another was killed: that one leaves no note.
    note = writer.closing_note(last_begun, failed_at=None if ended else time.time())
    writer.collections.update_meta(note.to_meta())
    last: list[Callable[[], object]] = [writer.export_collections]
    if ended and is_chief and not is_sagemaker_job():
        if has_others and not background.failed:
            write_all(last, writer, writer.patience)  # and again below, if that fails
            # Workers of this process may close only after this one.
            others_here = writer.access.count_in_this_process() - 1
            how_many = num_workers - others_here if replicas is None else None
            wait_for_workers(writer.storage, writer.attempt, how_many, except_for=others_here)
        last.append(lambda: writer.storage.write(END_MARKER, b""))
    last.append(writer.access.release_claim)
    # A storage that failed may have recovered: readers would wait forever for a missing end marker.
    seconds = min(RECOVERY_SECONDS, writer.patience) if background.failed else writer.patience
    write_all(last, writer, seconds)


def write_all(writes: Iterable[Callable[[], object]], writer: RunWriter, seconds: float) -> None:
    """Do each of them, even if others fail; log the first problem."""
    problems: list[Exception] = []

    def write_each() -> None:
        for write in writes:
            try:
                write()
            except Exception as error:  # noqa: BLE001 - the next may still succeed
                problems.append(error)

    try:
        within(write_each, writer.storage.location, seconds)
    except StorageError as error:
        problems.append(error)
    reason = writer.background.outcome.reason or ""
    known = [error for error in problems if str(getattr(error, "problem", error)) in reason]
    if problems and not known:
        get_logger().warning("The end of the run could not be written: %s", problems[0])
