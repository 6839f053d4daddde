"""A rule's steps shared by several processes, with the result of a single one.

Processes can share steps if the rule's state stays the same from step to step. This is not assumed but
checked: each process begins with the state after the first steps, and its result counts only if the rule was
in exactly that state after all earlier steps. After a step that changed it, the others begin again with the
new state; if it keeps changing, one process evaluates the steps in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

from smdebug.rules.memory.state import RuleState
from smdebug.runs.evaluation.rule_process import RuleProcess
from smdebug.runs.evaluation.rule_results import PartialResult
from smdebug.runs.evaluation.rule_steps import LocalRule, RuleRequest
from smdebug.trials import Trial

_CHUNKS_PER_PROCESS = 4
_ATTEMPTS = 4
_STEPS_BETWEEN_PROGRESS = 16
_SECONDS_A_FILE = 1e-3  # to read an index file of a few hundred tensors

Progress = Callable[[int], Any]
RuleWorker = LocalRule | RuleProcess


def processes_worth(
    trial: Trial, steps: int, seconds_a_step: float, jobs: int | None, worth_a_process: int
) -> int:
    """The number of processes that are worth starting: each has to start, and to open the run."""
    if _is_in_memory(trial):
        return 1
    if jobs is not None:
        return min(jobs, 1 + steps // max(1, worth_a_process))
    cores = min(8, os.cpu_count() or 1)
    opening = 0.5 + _SECONDS_A_FILE * len(trial.index.workers_by_step) * max(1, trial.num_workers)
    return cores if steps * seconds_a_step * (1 - 1 / cores) > 2 * opening else 1


def worker_for(request: RuleRequest, trial: Trial, *, own_process: bool = True) -> RuleWorker:
    """Return the rule, ready to be evaluated.

    With `own_process` a rule that a file of the user's defines gets a process of its own.
    """
    is_ours = request.file is None or not own_process or _is_in_memory(trial)
    return LocalRule(request, trial) if is_ours else RuleProcess(request)


def continue_evaluation(
    request: RuleRequest,
    worker: RuleWorker,
    result: PartialResult,
    steps: list[int],
    processes: int,
    progress: Progress,
) -> int:
    """Add the remaining steps to `result`; return how many processes evaluated them."""
    before = worker.state()
    second, rest = steps[:1], steps[1:]
    worker.evaluate(second, result)
    progress(len(second))
    if result.is_over or not rest:
        return 1
    after = worker.state()
    if processes == 1 or after != before or after.left_out:
        _in_order(worker, rest, result, progress)
        return 1
    chunks = list(_chunks(rest, max(1, -(-len(rest) // (processes * _CHUNKS_PER_PROCESS)))))
    state = _in_processes(request, after, result, chunks, processes, progress)
    worker.restore(state)
    if not result.is_over:  # the state keeps changing
        _in_order(worker, [step for chunk in chunks for step in chunk], result, progress)
    return processes


def _in_processes(
    request: RuleRequest,
    expected: RuleState,
    result: PartialResult,
    chunks: list[list[int]],
    processes: int,
    progress: Progress,
) -> RuleState:
    """Remove from `chunks` what was evaluated, and add it to `result`; return the rule's state after it."""
    with ExitStack() as stack:
        workers: SimpleQueue[RuleProcess] = SimpleQueue()
        for _ in range(processes):
            process = RuleProcess(request)
            stack.callback(process.close)
            workers.put(process)

        def evaluated(state: RuleState, chunk: list[int]) -> tuple[PartialResult, RuleState]:
            worker = workers.get()
            try:
                worker.restore(state)
                part = PartialResult()
                worker.evaluate(chunk, part)
                return part, worker.state()
            finally:
                workers.put(worker)

        threads = stack.enter_context(ThreadPoolExecutor(processes, "smdebug-rules"))
        for _ in range(_ATTEMPTS):
            futures = [threads.submit(evaluated, expected, chunk) for chunk in chunks]
            before = expected
            for chunk, future in zip(list(chunks), futures, strict=True):
                part, expected = future.result()
                result.join(part)
                progress(len(chunk))
                chunks.pop(0)
                if result.is_over or expected != before:
                    break
            for future in futures:
                future.cancel()
            if result.is_over or not chunks:
                break
    return expected


def _in_order(worker: RuleWorker, steps: list[int], result: PartialResult, progress: Progress) -> None:
    for chunk in _chunks(steps, _STEPS_BETWEEN_PROGRESS):
        worker.evaluate(chunk, result)
        progress(len(chunk))
        if result.is_over:
            break


def _is_in_memory(trial: Trial) -> bool:
    return trial.storage.location.startswith("memory:")


def _chunks(steps: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(steps), size):
        yield steps[start : start + size]
