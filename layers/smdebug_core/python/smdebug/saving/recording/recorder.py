"""The recorder of a hook: counts steps, takes what is wanted of each, and hands it to the run's writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from smdebug.config.collection import Collection
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.observations import RANK_TIMES
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.saving.arrays.adapter import FrameworkAdapter
from smdebug.saving.observations.observer import Observer
from smdebug.saving.planning.default_plan import OBSERVED, DefaultPlan, ObservingPlan
from smdebug.saving.planning.record_numbers import RecordNumbers
from smdebug.saving.planning.save_plan import NO_MEMBERS, Members, ModePlan, Wanted
from smdebug.saving.planning.step_clock import EVALUATIONS, StepClock
from smdebug.saving.process.system_metrics import SystemMetrics
from smdebug.saving.recording.capture import Capture, WarnOnce
from smdebug.saving.recording.late_tensors import LateTensors
from smdebug.saving.recording.open_step import OpenStep
from smdebug.saving.recording.prepared_run import PreparedRun
from smdebug.saving.recording.recorder_states import TABLE, Offer, State

Array = np.ndarray[Any, Any]
NOTHING_DUE = ModePlan(())
CARRIED_SECONDS = 60.0
"""How long scalars of steps that are not saved wait for one that is."""
#: What is due at a step, and whether the next step is due as well: returns what to save at it.
PlaceDue = Callable[[Members, StepClock, bool], Members]


# Indexing a tuple is faster than hashing an enum, and a global name than an attribute of one.
_ROWS = tuple(TABLE[state] for state in State)
_IN_STEP, _BETWEEN_STEPS, _QUIET, _CLOSED = (
    State.IN_STEP,
    State.BETWEEN_STEPS,
    State.QUIET,
    State.CLOSED,
)


class _Waiting(NamedTuple):
    """A value that was saved before the first step."""

    name: str
    array: Any
    timestamp: float | None
    is_scalar: bool
    series: str = ""
    """The series of a number that was logged."""
    step: int | None = None


class Recorder:
    """Takes the tensors of a training and hands each saved step to the run's writer.

    `prepare` is called when the first step begins. `due` is the set of collections that are due at the
    current step; while it is empty, a call costs next to nothing. The class is long because every call of a
    training arrives here. `TABLE`, the plan and the parts decide what to do with it.
    """

    def __init__(
        self,
        clock: StepClock,
        adapter: FrameworkAdapter,
        prepare: Callable[[], PreparedRun],
    ):
        self.state = State.NEW
        self.due: Members = NO_MEMBERS
        self.place_due: PlaceDue | None = None
        """Postpones what is due at a step to a later one."""
        self.is_waiting = False
        """Whether something was postponed, so that each step has to be considered."""
        self.numbers_training = False
        """Whether the default plan numbers steps of training, and evaluations by the one before them."""
        self.last_begun: StepClock | None = None
        """The last step that was not only counted, in its own mode; None before the first."""
        self.passed = 0
        """How many steps of that mode were only counted since then."""
        self.run: PreparedRun | None = None
        self.open: OpenStep | None = None
        self.warn_once = WarnOnce()
        self.capture = Capture(adapter, self.warn_once)
        self.system: SystemMetrics | None = None
        """Measures the system metrics; None where they are not kept."""
        self.times: Callable[[int], Any] | None = None
        """Returns the times of this rank's steps before that one; None where ranks are not compared."""
        self._prepare = prepare
        self._clock = clock
        self._began = clock
        self.first_step = 0
        """The number of the first step of training, from which the default plan counts."""
        self._carrying: Observer | None = None
        """What keeps the scalars of every step; None before the first, and once nothing is kept any more."""
        self.observes_beside = False
        """Whether tensors were chosen, and observations are written beside them."""
        self._write_by = inf
        """When scalars are written with the next step, even if it is not saved."""
        self.last_is_unused = False
        """Whether the last step trains nothing: its model was called once more when the training was over."""
        self._idle = 0  # coming steps that only need to be counted
        self._was_due: Members = NO_MEMBERS
        self._numbers: RecordNumbers | None = None
        self._mode_plan = NOTHING_DUE
        self._late: LateTensors | None = None
        self._waiting: list[_Waiting] = []

    # Where the training is

    @property
    def clock(self) -> StepClock:
        """The current or last step, in the mode that is set."""
        if self.passed:
            self._count_passed_steps()
        return self._clock

    @property
    def step(self) -> int:
        """The number of the current or last step."""
        return self._clock.number_after(self.passed)

    @property
    def steps_so_far(self) -> int:
        """How many steps have begun, in all modes."""
        return self.clock.steps_since(self._began) - self.last_is_unused

    @property
    def training_steps_so_far(self) -> int:
        """How many steps of training have begun."""
        return self.clock.steps_of_mode_since(ModeKeys.TRAIN, self._began) - self.last_is_unused

    @property
    def last_step(self) -> StepClock | None:
        """The current or last step, in its own mode; None before the first."""
        if self.passed:
            self._count_passed_steps()
        return self.last_begun

    @property
    def has_waiting_values(self) -> bool:
        """Whether values were saved before the first step, and wait for it."""
        return bool(self._waiting)

    @property
    def next_may_be_due(self) -> bool:
        """Whether something may be wanted at the next step."""
        return not self._idle

    def begin_at(self, step: int) -> None:
        """Number the first step so, unless steps have begun, here or in a checkpoint of this library."""
        if self.last_step is None and self._began.step < 0 and step > 0:
            self._clock = self._began = self._clock.before_step(step)
            self.first_step = step

    def set_mode(self, mode: ModeKeys) -> None:
        """Count the steps from the next one on for that mode."""
        clock = self._clock = self.clock.in_mode(mode)
        self._idle = 0
        if self.run is not None and self.state < _QUIET:
            self._mode_plan = self.run.plan.of_mode(mode)
            if self.last_begun is None or self.last_begun.mode is not mode:
                self.run.plan.entered(mode, clock.mode_step + 1)

    def _count_passed_steps(self) -> None:
        self._clock = self.last_begun = self._clock.next(self.passed)
        self.passed = 0

    # Steps

    def skip(self, mode: ModeKeys | None = None) -> bool:
        """Count the next step and return True if nothing can be wanted at it.

        A `mode` other than the one that is set is entered by `begin` alone.
        """
        if not self._idle or (mode is not None and mode is not self._clock.mode):
            return False
        now = perf_counter()
        if now > self._write_by:
            return False
        self._idle -= 1
        self.passed += 1
        system = self.system
        if system is not None:  # what `begin_step` does, without the call
            system.steps += 1
            if system.ended is not None:
                system.waited += now - system.ended
                system.ended = None
        if self.state is _BETWEEN_STEPS:
            self.state = _IN_STEP
        return True

    def begin(self, mode: ModeKeys | None = None) -> None:
        """Begin the next step, of `mode` or else the mode that is set. The previous step ends."""
        if self.skip(mode):
            return
        if mode is not None and mode is not self.clock.mode:
            self.set_mode(mode)
        if perf_counter() > self._write_by:
            self._write_by = perf_counter() + CARRIED_SECONDS
            self.hand_over_all()
        elif self._continues_evaluation():
            pass
        elif self.open is not None or self._late is not None:
            self.hand_over()
        elif self.observes_beside and self.capture.observer is not None:
            self.capture.observer.observations.forget_step()
        self._check_for_stop()
        run = self.prepared()
        self.state = _ROWS[self.state].begin
        clock = self._clock = self.last_begun = self.clock.next()
        self.due = self._was_due = self._mode_plan.due(clock.mode_step)
        if self.state < _QUIET:
            is_next_due = not self._mode_plan.idle_after(clock.mode_step)
            if self.place_due is not None:
                self.due = self.place_due(self.due, clock, is_next_due)
            if self.capture.zoom is not None:
                self.due = self.capture.zoom.widened(self.due, clock)
            if self._numbers is not None:
                self.due = self._placed(self._numbers, clock)
            if self.due:
                self._note_times(clock)
            if run is not None and run.writer is not None:
                if self.due and not is_next_due:
                    run.writer.background.pause()
                else:
                    run.writer.background.resume()
        if self.system is not None:
            self.system.begin_step()
            if self.due and self.capture.observer is not None:
                self.capture.observer.observations.system = self.system.sample()
        if self._waiting:
            self._save_waiting()
        if run is not None and run.checkpoints is not None and self.state < _QUIET:
            run.checkpoints.note(clock, run.writer.last_saved_step if run.writer else None)
        elif not (self.due or self._waits() or self._asks_every_step()) and (
            self.open is None or self._continues_evaluation()
        ):
            self._idle = self._mode_plan.idle_after(clock.mode_step)

    def _note_times(self, clock: StepClock) -> None:
        """Note the times of the steps before one that is saved. Where only they are due, nothing else is."""
        observer, run = self.capture.observer, self.run
        is_alone = run is not None and isinstance(run.plan, ObservingPlan) and self.due == run.plan.times_only
        if self.times is not None and observer is not None and clock.mode not in EVALUATIONS:
            times = self.times(clock.mode_step)
            if times:
                observer.observations.note(**{RANK_TIMES: times})
                if is_alone:
                    self.open_step()
        if is_alone:
            self.due = NO_MEMBERS

    def _placed(self, numbers: RecordNumbers, clock: StepClock) -> Members:
        """Return what to save of a step that has begun, whose evaluations have the numbers of training."""
        if self._continues_evaluation():
            return NO_MEMBERS
        if clock.mode not in EVALUATIONS or self.run is None:
            return numbers.placed(self.due, clock)
        following = clock.in_mode(ModeKeys.TRAIN).mode_step + 1
        is_due = bool(self.run.plan.of_mode(ModeKeys.TRAIN).due(following))
        return numbers.placed(self.due, clock, is_training_due=is_due)

    def _waits(self) -> bool:
        """Whether something that is due is saved at a later step."""
        return self.is_waiting or (self._numbers is not None and self._numbers.is_waiting)

    def _continues_evaluation(self) -> bool:
        """Whether the step is one more of an evaluation that is open, and has one record for all."""
        step, last = self.open, self.last_begun
        return (
            step is not None
            and last is not None
            and last.by_training
            and last.mode in EVALUATIONS
            and step.clock.mode is last.mode is self._clock.mode
        )

    def end(self, *, interrupted: bool = False) -> None:
        """End the step and hand it over, marked if it was interrupted."""
        self.state = _ROWS[self.state].end
        self.due = NO_MEMBERS
        if self.system is not None:
            self.system.end_step()
        if self.open is not None:
            self.open.interrupted = interrupted
            self.hand_over()

    def prepared(self) -> PreparedRun | None:
        """Return the run, prepared with its first step; None if it was closed, or has failed, before."""
        if self.run is None and self.state < _QUIET:
            self.run = self._prepare()
            if self.run.records:
                self.capture.zoom = self.run.zoom
                if isinstance(self.run.plan, ObservingPlan):
                    self._carrying = self.capture.observe(self.run.plan)
                    self.observes_beside = self.run.plan.only_beside
                    self.run.plan.entered(self.clock.mode, self.clock.mode_step + 1)
                if isinstance(self.run.plan, DefaultPlan):
                    if self.first_step:
                        self.run.plan.count_from(self.first_step)
                    if self.numbers_training:
                        self._numbers = RecordNumbers(self._clock if self._began.step >= 0 else None)
                        self._clock = self._clock._replace(by_training=True)
                    self._write_by = perf_counter() + CARRIED_SECONDS
                    self.system = SystemMetrics() if self.run.measures_system else None
                self._mode_plan = self.run.plan.of_mode(self.clock.mode)
            else:
                self.go_quiet()
        return self.run

    # Values

    def wanted(self, name: str) -> Wanted | None:
        """Return what is wanted of the tensor at the current step; None for nothing."""
        if not self.due or self.run is None:
            return None
        return self.run.plan.wanted(name, self.due)

    def includes(self, name: str) -> bool:
        """Return whether the plan saves or observes the tensor at some steps."""
        return self.run is not None and self.run.plan.includes(name)

    def collections_due(self) -> list[Collection]:
        """Return the collections that are due at the current step."""
        return [] if self.run is None else self.run.plan.collections(self.due)

    def record(self, name: str, value: Any) -> None:
        """Take a tensor if a collection wants it at this step."""
        due = self.due
        if not due:
            if self.state is not _IN_STEP and _ROWS[self.state].record is Offer.WARN:
                self._warn_outside_of_steps(name)
            elif self.capture.observer is not None:
                self.carry(name, value)
            return
        assert self.run is not None
        wanted = self.run.plan.wanted(name, due)
        observer = self.capture.observer
        if wanted is None:
            if self.observes_beside:
                self.carry(name, value)
            return
        try:
            if wanted.by_chief:
                self.open_step().has_records = True
                if not wanted.observed:
                    return
            if observer is not None:
                if wanted is OBSERVED and observer.observe_again(name, value):
                    if self.open is None:
                        self.open_step()
                    return
                if prod(getattr(value, "shape", ())) == 1:
                    self.carry(name, value)
            self.capture.take(name, value, wanted, self.run.plan, self.open_step)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.leave_out(error, name)

    def observe_together(self, tensors: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
        """Observe those of the tensors that can be measured together; return the others, to be recorded."""
        observer, due = self.capture.observer, self.due
        if observer is None or not due or self.run is None:
            return tensors
        names = tuple([name for name, _ in tensors])
        if self.observe_group(names, [value for _, value in tensors]):
            return ()
        wanted = self.run.plan.wanted
        observed = [pair for pair in tensors if wanted(pair[0], due) is OBSERVED]
        if not observed:
            return tensors
        self.open_step()
        others = observer.observe_together(observed)
        if len(observed) < len(tensors):
            others += [pair for pair in tensors if wanted(pair[0], due) is not OBSERVED]
        return others

    def observe_group(self, names: tuple[str, ...], values: Sequence[Any], before: Any = None) -> bool:
        """Observe tensors of one kind together, or their changes since the observer packed them.

        Return whether it could: only if all of them are small and were observed before.
        """
        observer, due = self.capture.observer, self.due
        if (
            observer is None
            or not due
            or not self.observes_all(names)
            or not observer.observe_group(names, values, before)
        ):
            return False
        if self.open is None:
            self.open_step()
        return True

    def observes_all(self, names: Sequence[str]) -> bool:
        """Return whether tensors of these names are observed at the step that runs, and no more."""
        plan = None if self.run is None else self.run.plan
        return isinstance(plan, ObservingPlan) and plan.observes_all(tuple(names), self.due)

    def save(
        self, name: str, array: Array, timestamp: float | None = None, *, is_scalar: bool = False
    ) -> None:
        """Save a value of the user's, with the current or last step, whatever is due."""
        offer = _ROWS[self.state].save
        if offer is Offer.IGNORE or self._saves_digests_only():
            return
        if offer is Offer.WAIT:
            self._waiting.append(_Waiting(name, array, timestamp, is_scalar))
            return
        self._idle = 0  # the next step has something to hand over
        self.capture.names.add(name)
        try:
            if (offer is Offer.AMEND or self._numbers is not None) and self._is_handed_over():
                self._late_tensors().add(name, array, timestamp)
            elif is_scalar:
                self.open_step().record_scalar(name, array, timestamp)
            else:
                self.open_step().write_tensor(name, array, timestamp, owned=True)
        except (SMDebugTypeError, SMDebugValueError) as error:
            get_logger().warning("%s is not saved: %s", name, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.fail(error)

    def carry(self, name: str, value: Any, *, instead: bool = False) -> None:
        """Keep a value of one number for the series of that name, at every step; ignore other values.

        With `instead` it replaces the last value of that name, which was kept a moment ago.
        """
        observer, clock = self._carrying, self.last_begun
        if observer is not None and clock is not None:
            if instead:
                observer.observations.drop_last(name)
            observer.carry(name, value, clock, self.passed)

    def log(self, name: str, number: Any, step: int | None, *, series: str) -> None:
        """Keep a number of the user's: in a series, or else as a scalar of the step."""
        offer = _ROWS[self.state].save
        if offer is Offer.WAIT:
            self._waiting.append(_Waiting(name, number, None, is_scalar=True, series=series, step=step))
        elif offer is Offer.IGNORE:
            return
        elif self._carrying is None or self.observes_beside:
            self.save(f"scalar/{name}", np.array(float(number)), is_scalar=True)
        elif (last := self.last_step) is not None:
            if name.lower().startswith("train") and last.was_trained:  # even if an evaluation has followed
                last = last.in_mode(ModeKeys.TRAIN)
            at = last if step is None else StepClock(step, last.mode, step)
            self._carrying.carry(series, number, at)

    def log_metric(self, name: str, value: float, timestamp: float | None = None) -> None:
        """Log a metric of the SageMaker job, in one."""
        clock = self.clock
        self.capture.metrics.log(name, value, clock.mode, clock.step, timestamp)

    def open_step(self) -> OpenStep:
        """Return the current or last step, open for recording."""
        if self.open is None:
            run, step = self.run, self.last_step
            assert run is not None
            assert run.writer is not None
            assert step is not None
            self.open = run.writer.open_step(self._saved_as(step))
        return self.open

    def _saved_as(self, step: StepClock) -> StepClock:
        """Return the step that values of this one are saved with."""
        return step if self._numbers is None else self._numbers.clock_of(step)

    def _saves_digests_only(self) -> bool:
        plan = None if self.run is None else self.run.plan
        return isinstance(plan, ObservingPlan) and plan.digests_only

    def _save_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for value in waiting:
            if value.series:
                self.log(value.name, value.array, value.step, series=value.series)
            else:
                self.save(value.name, value.array, value.timestamp, is_scalar=value.is_scalar)

    def _is_handed_over(self) -> bool:
        """Whether the last step was handed to the writer, so that a value comes late."""
        run, step = self.run, self.last_step
        if self.open is not None or run is None or run.writer is None or step is None:
            return False
        return run.writer.was_submitted(self._saved_as(step))

    def _late_tensors(self) -> LateTensors:
        if self._late is None:
            assert self.run is not None
            assert self.run.writer is not None
            assert self.last_step is not None
            self._late = self.run.writer.late_tensors(self._saved_as(self.last_step))
        return self._late

    # Handing over

    def hand_over(self) -> None:
        """Give what is open to the writer. This waits for room in its queue, never for the storage."""
        self._add_observations()
        step, self.open = self.open, None
        late, self._late = self._late, None
        writer = self.run.writer if self.run is not None else None
        if writer is None:
            return
        writer.background.resume()
        if self.state >= _QUIET:
            return
        try:
            if step is not None:
                writer.submit(step)
                if self._numbers is not None and step:
                    self._numbers.take(step.clock)
            if late is not None:
                writer.submit_late(late)
        except Exception as error:  # noqa: BLE001 - whatever it is, the training continues
            self.fail(error)
        if writer.failed:  # which it has logged
            writer.stop_at(self.step + 1, "writing had failed")
            self.go_quiet()

    def hand_over_all(self) -> None:
        """Give everything to the writer, including scalars that wait for a step that is saved."""
        self._add_observations(also_alone=True)
        self.hand_over()

    def _add_observations(self, *, also_alone: bool = False) -> None:
        """Add what was observed to the step that is open. Scalars may make a step of their own."""
        observer, step = self.capture.observer, self.last_step
        if observer is None or self.state >= _QUIET or step is None:
            return
        if self.observes_beside:
            if self.open is not None and self.open.has_records:
                taken = observer.hand_over(self.open.clock)
                self.open.write_later(taken.tensors, beside=True, alone=self._saves_digests_only())
            return
        if self.open is None and not (also_alone and observer.carries_series):
            return
        # Later steps find the layout by the number under which this one is saved.
        number = self._numbers.after_last(step) if self._numbers is not None else step
        taken = observer.hand_over(number if self.open is None else self.open.clock)
        self._write_by = perf_counter() + CARRIED_SECONDS
        if taken.is_empty:
            return
        if self.open is None and self._numbers is not None and self.run is not None:
            assert self.run.writer is not None
            self.open = self.run.writer.open_step(number)
        if self.open is None and self._is_handed_over():
            for name, make, _ in taken.tensors():
                self._late_tensors().add(name, make(), None)
        else:
            self.open_step().write_later(taken.tensors)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything saved is written or lost; return False if `timeout` seconds were too few."""
        self.hand_over_all()
        writer = self.run.writer if self.run is not None else None
        return writer is None or writer.background.drain(timeout)

    # Stopping the training

    def _asks_every_step(self) -> bool:
        stopping = self.run.stopping if self.run is not None else None
        return stopping is not None and stopping.every_step

    def _check_for_stop(self) -> None:
        run, last = self.run, self.last_step
        if run is None or run.stopping is None or last is None:
            return
        if not (self._was_due or run.stopping.every_step):
            return
        # By the plan, not by what was saved: ranks that save less have to ask at the same steps.
        is_due = run.plan.of_mode(last.mode).asks_at(last.mode_step)
        stopped = run.stopping.stop_after(last.step, is_save_step=is_due)
        if stopped is None:
            return
        self.end()  # a training that catches this and ends gently saves nothing more
        self.flush(run.writer.patience if run.writer else None)
        run.stopping.notify(stopped)
        raise stopped

    # Going quiet, and the end

    def go_quiet(self) -> None:
        """Save nothing from now on; steps are still counted."""
        self._enter(_QUIET)

    def leave_out(self, error: Exception, what: str = "a part of what is observed") -> None:
        """Log, once for each place in the code, that something is left out because of an error."""
        if isinstance(error, MemoryError):  # nor is there any for the rest
            self.fail(error)
            return
        where = _place_of(error)
        get_logger().debug("Left out: %s", what, exc_info=error)
        self.warn_once(
            f"smdebug leaves out {what}: {type(error).__name__}: {error} ({where}). All else is saved, and "
            "the training continues",
            f"left out {what} {where}",
        )

    def fail(self, error: Exception) -> None:
        """Go quiet because of an error, and log it."""
        self.open = self._late = None
        if self.run is not None and self.run.writer is not None:
            self.run.writer.stop_at(self.step, f"{type(error).__name__}: {error}")
        self.go_quiet()
        get_logger().exception(
            "smdebug no longer saves anything: %s: %s. The training continues.",
            type(error).__name__,
            error,
        )

    def close(self) -> None:
        """Take nothing more, for good."""
        if self.capture.zoom is not None:
            self.capture.zoom.finish()
        self._enter(_CLOSED)

    def _enter(self, state: State) -> None:
        self.state = max(self.state, state)
        self._carrying = None
        self.due = NO_MEMBERS
        self._idle = 0
        self._mode_plan = NOTHING_DUE
        if self.run is not None and self.run.writer is not None:
            self.run.writer.copies = None

    def _warn_outside_of_steps(self, name: str) -> None:
        self.warn_once(
            f"Tensor {name} was recorded while no step runs, and is not saved. "
            "Record inside `with hook.step():`",
            "outside of steps",
        )


def _place_of(error: Exception) -> str:
    """Return the file and the line that raised it, without reading the source, as at every step it may be."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
