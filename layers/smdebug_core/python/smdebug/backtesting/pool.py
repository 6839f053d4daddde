"""Several processes that judge runs, each fed by a thread: the first to be free takes the next run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from queue import Queue

from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.identity import identity_of, within
from smdebug.backtesting.judging import Judged, tags_of
from smdebug.backtesting.judging_process import JudgingProcess, ProcessDied, TookTooLong
from smdebug.backtesting.question import Question, names_of
from smdebug.backtesting.rows import FAILED, TIMED_OUT, unread_row
from smdebug.exceptions import SMDebugError
from smdebug.storage import open_storage

_MOST_MEMORY = 100 << 20
"""Bytes that a process may keep between two runs before another takes its place."""
_WAITING = 256  # results that nobody has taken yet
_WAITING_SERIES = 8  # with the series of a run each

Answer = tuple[int, FoundRun, Judged]


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class JudgingPool:
    """Judges runs in processes of their own, in any order."""

    def __init__(self, question: Question, jobs: int):
        self._question = question
        self._jobs = jobs
        self._taking = threading.Lock()
        self._answers: Queue[Answer | BaseException | None] = Queue(
            _WAITING_SERIES if question.series else _WAITING
        )
        self._processes: dict[int, JudgingProcess] = {}
        self._has_ended = threading.Event()

    def judge_each(
        self, runs: Iterable[FoundRun], known: Callable[[str], str]
    ) -> Generator[Answer, None, None]:
        """Yield the number of each run, the run and its verdicts, as they come.

        `known` returns what the run at a location was when it was judged before.
        """
        numbered = enumerate(runs)
        threads = [
            threading.Thread(target=self._feed, args=(place, numbered, known), name="smdebug-judging")
            for place in range(self._jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            working = len(threads)
            while working:
                answer = self._answers.get()
                if isinstance(answer, BaseException):
                    raise answer
                if answer is None:
                    working -= 1
                else:
                    yield answer
        finally:
            self._end(threads)

    def take_no_more(self) -> None:
        """Finish the runs that are being judged, and begin no other."""
        self._has_ended.set()

    def _feed(
        self, place: int, numbered: Iterator[tuple[int, FoundRun]], known: Callable[[str], str]
    ) -> None:
        try:
            while not self._has_ended.is_set():
                with self._taking:
                    number, run = next(numbered, (0, None))
                if run is None:
                    break
                self._answers.put((number, run, self._judged(place, run, known(run.location))))
            self._answers.put(None)
        except BaseException as error:  # noqa: BLE001 - raised where the answers are taken
            self._answers.put(error)
        finally:
            process = self._processes.pop(place, None)
            if process is not None:
                process.close()

    def _judged(self, place: int, run: FoundRun, known: str) -> Judged:
        process = self._processes.get(place)
        if process is None:
            process = self._processes[place] = JudgingProcess(self._question)
        try:
            judged = process.judge(run, known, self._question.timeout)
        except TookTooLong as where:
            self._replace(place)
            problem = f"no verdict within {self._question.timeout:g} s, at {where}"
            return self._without_verdict(run, problem, TIMED_OUT)
        except ProcessDied as death:
            self._replace(place)
            return self._without_verdict(run, str(death), FAILED)
        if process.memory > _MOST_MEMORY:
            self._replace(place)
        return judged

    def _without_verdict(self, run: FoundRun, problem: str, status: str) -> Judged:
        rows = tuple(
            unread_row(run.path, problem, status, name) for name in names_of(self._question.rules) or [""]
        )
        # Nobody knows whether it has the values of the conditions, so that none of them counts as misspelt.
        names = tuple(condition.name for condition in self._question.where)
        try:
            storage = open_storage(run.path)
            identity = within(identity_of(storage), self._question.timeout)
            return Judged(rows, identity, tags_of(storage), names=names)
        except SMDebugError:
            return Judged(rows, names=names)

    def _replace(self, place: int) -> None:
        """End the process; the next run starts another."""
        self._processes.pop(place).close()

    def _end(self, threads: list[threading.Thread]) -> None:
        self._has_ended.set()
        while any(thread.is_alive() for thread in threads):
            for process in list(self._processes.values()):
                process.kill()
            while not self._answers.empty():  # a thread may wait for room
                self._answers.get_nowait()
            for thread in threads:
                thread.join(0.02)
