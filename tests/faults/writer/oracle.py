"""What must hold after any schedule, from the values that were handed over and what readers see.

It imports nothing of the code that it judges, and knows its files by their names alone.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import numpy as np

from tests.faults.writer.reading import Reading
from tests.faults.writer.schedule import KEEPS_TROUBLE
from tests.faults.writer.training import Attempt, Handed

WRITES = ("rename", "put", "complete upload")
MOST_REFUSALS = 4
"""How often a request may be refused for its credentials, beside once with each step."""
CLOSING = "smdebug-asking"
"""The name of the thread that writes the end of a run."""
ANSWERS_WITHIN = 20.0
ORIGIN_SECONDS = 10.0
WORKERS_SECONDS = 20.0
SUSPECTED_SECONDS = 0.5
"""A thread that makes no progress for the patience gets this moment more, once per stall."""
_LOST = re.compile(r"Lost: (?:none|(\d+) \(([^)]*)\)); not even tried: (\d+)")
_SAID = re.compile(
    "no index file points to it|there are event files, but no index files|files of . workers"
    "|could not be written|left no closing note|ended without a step"
)
"""Problems of a run whose writer had trouble; all others are damage."""
_UNSURE = re.compile("workers closed|no progress|Other workers may still be saving")
_STOPPED = re.compile("stops saving|no longer saves anything|this one saves nothing")


def broken_promises(attempt: Attempt, reading: Reading) -> Iterator[str]:
    """Say what does not hold once all processes have ended."""
    yield from _only_what_was_saved([attempt], reading)
    yield from _in_order(attempt)
    for (process, what, key), count in attempt.calls.refusals.items():
        if what not in ("get", "head", "list") and count > MOST_REFUSALS + attempt.schedule.workers[0].steps:
            yield f"{process}: {what} {key} was refused {count} times for its credentials"
    for handed in attempt.handed:
        for problem in _of_one(attempt, handed, reading):
            yield f"{handed.process.name}: {problem}"
    yield from _of_the_end(attempt, reading)
    if not reading.refusal:
        yield from _of_what_is_missing(attempt, reading)


def broken_when_resumed(
    first: Attempt, second: Attempt, reading: Reading, left_over: list[str]
) -> Iterator[str]:
    """Say what does not hold when a later attempt, without faults, has saved to the same place."""
    if any(not _has_begun(first, handed) for handed in first.handed) and len(first.handed) > 1:
        return  # its workers do not know whether they continue a run
    for problem in _only_what_was_saved([first, second], reading):
        yield f"resumed: {problem}"
    for handed in second.handed:
        missing = [step for step in handed.steps if not _is_visible(handed, step, reading)]
        if missing:
            log = [text for _, level, text in handed.process.log if level >= logging.WARNING]
            yield f"resumed: {handed.process.name} misses {missing} without a fault: {log}"
    if not reading.has_ended:
        yield "resumed: no end marker"
    if not reading.is_sound:
        yield f"resumed: damaged: {reading.problems}"
    if left_over and all(_has_begun(first, handed) for handed in first.handed):
        yield f"resumed: files are left over: {left_over}"
    if reading.gaps or reading.not_closed:
        yield f"resumed: the trial misses {reading.gaps} {reading.not_closed}"


def _has_begun(attempt: Attempt, handed: Handed) -> bool:
    key = f"collections/000000000/{handed.process.name}_collections.json"
    return any(effect.key == key for effect in attempt.calls.effects)


def _in_order(attempt: Attempt) -> Iterator[str]:
    """An index file follows its event file and its worker's collections file."""
    written: set[str] = set()
    for effect in attempt.calls.effects:
        if effect.what not in WRITES:
            continue
        if effect.key.startswith("index/"):
            name = effect.key.rpartition("/")[2].removesuffix(".json")
            needed = {
                f"events/{name[:12]}/{name}.tfevents",
                f"collections/000000000/{effect.process}_collections.json",
            }
            if not needed <= written:
                yield f"{effect.key} was written before {sorted(needed - written)}"
        written.add(effect.key)


def _only_what_was_saved(attempts: list[Attempt], reading: Reading) -> Iterator[str]:
    """Each visible value was saved, at that step, by that worker, and with it all others of the step."""
    for step, workers in reading.seen.items():
        for worker, values in workers.items():
            candidates = [
                (handed.begun.get(step, {}), handed.late.get(step, {}))
                for attempt in attempts
                for handed in attempt.handed
                if handed.process.name == worker and (step in handed.begun or step in handed.late)
            ]
            if not candidates:
                yield f"step {step} of {worker} is visible and was never saved"
            elif not any(_fits(values, begun, late) for begun, late in candidates):
                yield f"step {step} of {worker} shows what was not saved: {sorted(values)}"


def _fits(values: dict[str, np.ndarray], begun: dict[str, np.ndarray], late: dict[str, np.ndarray]) -> bool:
    saved = {**begun, **late}
    is_whole = begun.keys() <= values.keys() or (values.keys() <= late.keys() and bool(values))
    return is_whole and all(
        name in saved and value.dtype == saved[name].dtype and np.array_equal(value, saved[name])
        for name, value in values.items()
    )


def _is_visible(handed: Handed, step: int, reading: Reading) -> bool:
    values = reading.seen.get(step, {}).get(handed.process.name, {})
    saved = handed.begun[step]
    return all(name in values and np.array_equal(values[name], value) for name, value in saved.items())


def _of_one(attempt: Attempt, handed: Handed, reading: Reading) -> Iterator[str]:
    worker, process = handed.worker, handed.process
    if not process.was_killed and handed.trained < worker.steps:
        yield f"the training ran {handed.trained} of {worker.steps} steps"
    yield from _of_its_waits(attempt, handed)
    yield from _of_its_notes(attempt, handed, reading)
    errors = [text for _, level, text in process.log if level >= logging.ERROR]
    if len(errors) > 1:
        yield f"more than one error was logged: {errors}"
    yield from _of_its_losses(attempt, handed, reading)


def _of_its_waits(attempt: Attempt, handed: Handed) -> Iterator[str]:
    """The training never waits for longer than what is documented."""
    patience = attempt.schedule.patience
    # The first step asks whether the run has ended, claims it, reads what is there, and looks for requests.
    met = sum(fault.met for fault in handed.worker.faults)
    most = max(min(4, met) * ANSWERS_WITHIN, 2 * patience) + 5
    if handed.longest_wait > most:
        yield f"a step waited for {handed.longest_wait:.1f} s, at most {most:.1f} are promised"
    stalls = 2 * (patience + SUSPECTED_SECONDS)
    closes = stalls + min(ORIGIN_SECONDS, patience) + 2 * patience + WORKERS_SECONDS + 5
    # A storage that makes progress is waited for.
    is_slow = any(fault.kind == "slow" and fault.met for fault in handed.worker.faults)
    if handed.closing_took is not None and handed.closing_took > closes and not is_slow:
        yield f"closing took {handed.closing_took:.1f} s, at most {closes:.1f} are promised"
    if handed.closing_took is None and not handed.process.was_killed:
        yield "the hook never closed"


def _of_its_notes(attempt: Attempt, handed: Handed, reading: Reading) -> Iterator[str]:
    """What a process says of its own end stays as it was said."""
    if handed.closing_from is None or handed.closing_took is None:
        return
    name = handed.process.name
    key = f"collections/000000000/{name}_collections.json"
    mine = [e for e in attempt.calls.effects if e.process == name and e.at > handed.closing_from]
    hung = any(fault.kind == "hang" and fault.met for fault in handed.worker.faults)
    writes = [e for e in mine if e.key == key and e.what in WRITES]
    if any(effect.thread == CLOSING for effect in writes) and not hung and not reading.closed.get(name):
        yield "the note that it has closed was written, and is gone"
    released = [effect.at for effect in mine if (effect.key, effect.what) == ("claim.smd", "unlink")]
    after = [
        effect.key for effect in mine if released and effect.at > released[0] and effect.what == "rename"
    ]
    if after and not hung:
        yield f"it has released the place, and writes {after}"
    claims = [effect.what for effect in mine if effect.key == "claim.smd"]
    if "unlink" in claims and claims[-1] != "unlink":
        yield f"it claims the place after it has closed: {claims}"


def _of_its_losses(attempt: Attempt, handed: Handed, reading: Reading) -> Iterator[str]:
    """Each step is visible, or said to be lost, or was cut off by the death of its process."""
    process = handed.process
    missing = {step for step in handed.steps if not _is_visible(handed, step, reading)}
    said = [text for _, level, text in process.log if level >= logging.WARNING]
    stopped_at = [at for at, _, text in process.log if _STOPPED.search(text)]
    if process.was_killed and handed.closing_took is None:
        visible = [step for step in handed.steps if step not in missing]
        holes = {step for step in missing if step < max(visible, default=-1)}
        if holes and not said:
            yield f"steps {sorted(holes)} are missing before {max(visible)}, and the log says nothing"
        return
    if reading.refusal:  # which says so
        return
    named, untried = _said_lost(said)
    unsaid = {step for step in missing - named if not any(at <= handed.ended_at[step] for at in stopped_at)}
    if len(unsaid) > untried:
        yield f"steps {sorted(unsaid)} are missing; the log says lost: {sorted(named)}, {untried} not tried"
    yield from _of_its_recovery(attempt, handed, missing, bool(stopped_at))


def _said_lost(said: list[str]) -> tuple[set[int], int]:
    """Return the steps that the log names as lost, and the number of those that were not tried."""
    for text in reversed(said):
        if found := _LOST.search(text):
            steps = re.findall(r"\d+", (found[2] or "").split(" and ")[0])
            rest = int(found[1] or 0) - len(steps)
            return {int(step) for step in steps}, int(found[3]) + rest
    return set(), 0


def _of_its_recovery(attempt: Attempt, handed: Handed, missing: set[int], has_stopped: bool) -> Iterator[str]:
    """Without faults everything is saved; after faults, what comes later is."""
    faults = [fault for fault in handed.worker.faults if fault.met and fault.kind not in KEEPS_TROUBLE]
    over = max((fault.ended for fault in faults), default=-1.0)
    now = attempt.world.clock
    if has_stopped or any(not fault.is_over(now) for fault in faults):
        return
    hangs = any(fault.kind == "hang" for fault in faults)
    late = {step for step in missing if handed.ended_at[step] > over + (70.0 if hangs else 0.0)}
    # A step is written after the one before it: what hangs there, delays it.
    if late and not hangs:
        yield f"steps {sorted(late)} were handed over when all faults were over, and are missing"


def _of_what_is_missing(attempt: Attempt, reading: Reading) -> Iterator[str]:
    """The run itself says what is missing, and nothing else."""
    for handed in attempt.handed:
        name = handed.process.name
        missing = [step for step in handed.steps if not _is_visible(handed, step, reading)]
        if missing and reading.has_ended and reading.is_sound:
            yield f"{name}: the run has ended and is sound, and steps {missing} are missing"
        visible = [step for step in handed.steps if step not in missing]
        before = max(visible, default=-1)
        for step in missing:
            is_said = any(gap.holds(name, step) for gap in reading.gaps)
            is_due = step < before or (reading.has_ended and name not in reading.not_closed)
            if is_due and not is_said:
                yield f"{name}: step {step} is missing, and the trial does not say so: {reading.gaps}"
        gaps = [gap for gap in reading.gaps if gap.worker == name]
        met = {fault.kind for fault in handed.worker.faults if fault.met}
        may_seem = met & {"unanswered", "hang", "thread"}
        if gaps and not missing and not may_seem and not handed.late and not handed.process.was_killed:
            yield f"{name}: nothing is missing, and the trial says so: {gaps}"


def _of_the_end(attempt: Attempt, reading: Reading) -> Iterator[str]:
    handed = attempt.handed
    chief = handed[0]
    closes = chief.worker.ends != "interrupted"
    faults = [fault for worker in handed for fault in worker.worker.faults if fault.met]
    is_healthy = not faults and not any(h.process.was_killed for h in handed)
    if reading.has_ended and (not closes or (chief.process.was_killed and chief.closing_from is None)):
        yield "the run has its end marker, and its chief did not end well"
    if is_healthy and closes and not reading.has_ended:
        yield "nothing went wrong, and the run has no end marker"
    if is_healthy and not reading.is_sound:
        yield f"nothing went wrong, and the run is not sound: {reading.problems} {reading.refusal}"
    ends = [effect.at for effect in attempt.calls.effects if effect.key == "training_job_end.ts"]
    is_sure = not any(_UNSURE.search(text) for h in handed for _, _, text in h.process.log)
    for effect in attempt.calls.effects:
        if ends and is_sure and effect.key.startswith("index/") and effect.at > max(ends):
            yield f"{effect.process} wrote {effect.key} after the end marker"
    damages = [text for text in reading.problems if not _SAID.search(text)]
    if damages:
        yield f"the run is damaged: {damages}"
