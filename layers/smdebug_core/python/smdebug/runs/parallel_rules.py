"""A rule's steps shared by several processes, with the result of a single one.

Processes can share steps if the rule's state stays the same from step to step. This is not assumed but
checked: each process begins with the state after the first steps, and its result counts only if the rule was
in exactly that state after all earlier steps. After a step that changed it, the others begin again with the
new state; if it keeps changing, one process evaluates the steps in order.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.rules.rule import Rule
from smdebug.rules.state import RuleState, restore_state, save_state
from smdebug.runs.opening import open_run
from smdebug.runs.rule_results import PartialResult
from smdebug.runs.rule_steps import RuleRequest, construct, evaluate_steps
from smdebug.storage import open_storage
from smdebug.trials import Trial

_CHUNKS_PER_PROCESS = 4
_ATTEMPTS = 4
_STEPS_BETWEEN_PROGRESS = 16
_SECONDS_A_FILE = 1e-3  # to read an index file of a few hundred tensors

Progress = Callable[[int], Any]


def processes_worth(
    trial: Trial, steps: int, seconds_a_step: float, jobs: int | None, worth_a_process: int
) -> int:
    """The number of processes that are worth starting: each has to start, and to open the run."""
    if trial.storage.location.startswith("memory:"):
        return 1
    if jobs is not None:
        return min(jobs, 1 + steps // max(1, worth_a_process))
    cores = min(8, os.cpu_count() or 1)
    opening = 0.5 + _SECONDS_A_FILE * len(trial.index.workers_by_step) * max(1, trial.num_workers)
    return cores if steps * seconds_a_step * (1 - 1 / cores) > 2 * opening else 1


def continue_evaluation(
    request: RuleRequest,
    rule: Rule,
    result: PartialResult,
    steps: list[int],
    processes: int,
    progress: Progress,
) -> int:
    """Add the remaining steps to `result`; return how many processes evaluated them."""
    before = result.state
    second, rest = steps[:1], steps[1:]
    result.join(evaluate_steps(rule, second))
    progress(len(second))
    if result.is_over or not rest:
        return 1
    if processes == 1 or result.state != before or result.state.left_out:
        result.join(_in_order(rule, rest, progress))
        return 1
    chunks = list(_chunks(rest, max(1, -(-len(rest) // (processes * _CHUNKS_PER_PROCESS)))))
    _in_processes(request, rule, result, chunks, processes, progress)
    if chunks and not result.is_over:  # the state keeps changing
        restore_state(rule, result.state)
        result.join(_in_order(rule, [step for chunk in chunks for step in chunk], progress))
    return processes


def _in_processes(
    request: RuleRequest,
    rule: Rule,
    result: PartialResult,
    chunks: list[list[int]],
    processes: int,
    progress: Progress,
) -> None:
    """Remove from `chunks` what was evaluated, and add it to `result`."""
    from multiprocessing import get_context

    # Not forked: a fork copies the locks that this process's threads hold, and nothing releases them.
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin_quietly) as pool:
        for _ in range(_ATTEMPTS):
            expected = result.state
            futures = [pool.submit(_evaluate_chunk, request, expected, chunk) for chunk in chunks]
            for chunk, future in zip(list(chunks), futures, strict=True):
                part = _result_of(future, rule, chunk)
                for file, error in part.damaged_files.items():
                    rule.base_trial.damaged_files.setdefault(file, error)
                result.join(part)
                progress(len(chunk))
                chunks.pop(0)
                if result.is_over or result.state != expected:
                    break
            for future in futures:
                future.cancel()
            if result.is_over or not chunks:
                return


def _result_of(future: Future[PartialResult], rule: Rule, chunk: list[int]) -> PartialResult:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise SMDebugRuntimeError(
            f"A process that evaluated {rule.rule_name} from step {chunk[0]} has died; "
            "there may be too little memory for several processes. Use one: jobs=1"
        ) from error


def _in_order(rule: Rule, steps: list[int], progress: Progress) -> PartialResult:
    result = PartialResult(state=save_state(rule))
    for chunk in _chunks(steps, _STEPS_BETWEEN_PROGRESS):
        result.join(evaluate_steps(rule, chunk))
        progress(len(chunk))
        if result.is_over:
            break
    return result


_trial_of_this_process: list[Trial] = []


def _begin_quietly() -> None:
    """Prepare a process: Ctrl-C ends it at once, and only its parent reports that."""
    import signal

    from smdebug.logger import get_logger

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    get_logger().setLevel("CRITICAL")
    sys.stdout = sys.stderr  # what a rule prints is not part of the result


def _evaluate_chunk(request: RuleRequest, state: RuleState, steps: list[int]) -> PartialResult:
    """In another process: evaluate these steps, starting from that state."""
    if not _trial_of_this_process:
        _trial_of_this_process.append(open_run(open_storage(request.path), attempt=request.attempt))
    (trial,) = _trial_of_this_process
    rule = construct(request, trial)
    restore_state(rule, state)
    result = evaluate_steps(rule, steps)
    result.damaged_files = dict(trial.damaged_files)
    return result


def _chunks(steps: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(steps), size):
        yield steps[start : start + size]
