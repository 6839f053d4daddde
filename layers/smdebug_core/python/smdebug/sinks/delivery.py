"""Records on their way to a sink: on a thread of their own, in a bounded queue.

Whoever delivers never waits for the tool, and the tool's failures reach nobody but the thread. What could
not be delivered is said once, at the end, with the command that sends it again from the run's own files.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from smdebug.amounts import counted
from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.secrets.texts import redacted, redacted_line
from smdebug.sinks.records import IssueRecord, NumbersRecord, Record, RunRecord
from smdebug.sinks.sink import RunSink

MOST_NUMBERS = 200_000
"""How many numbers may wait; then the oldest are lost. Problems and the diagnosis are never dropped."""
_BATCH = 10_000
_ONCE = ("diagnosis", "report")
_SEVERAL = {"message about a problem": "messages about problems"}
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0


class Delivery:
    """Delivers the records of one run to one sink. `report` is called with sentences, on any thread."""

    def __init__(
        self,
        sink: RunSink,
        run: RunRecord,
        report: Callable[[str], object],
        *,
        again: str = "",
        most_numbers: int = MOST_NUMBERS,
        first_pause: float = _FIRST_PAUSE,
    ):
        self._sink = sink
        self._run = run
        self._report = report
        self._again = again
        self._most_numbers = most_numbers
        self._first_pause = first_pause
        self._changed = threading.Condition()
        self._waiting: deque[Record] = deque()
        self._on_the_way: list[Record] = []
        self._numbers_waiting = 0
        self._lost: dict[str, int] = {}
        self._is_closing = False
        self._has_given_up = False
        self._is_complete = True
        self._away = ""
        self._thread = threading.Thread(target=self._deliver, name="smdebug-sink", daemon=True)
        self._thread.start()

    def put(self, records: Iterable[Record]) -> None:
        """Deliver the records some time; return at once."""
        with self._changed:
            for record in records:
                if self._has_given_up:
                    self._lose(record)
                    continue
                self._waiting.append(record)
                self._numbers_waiting += _size(record)
            if self._numbers_waiting > self._most_numbers:
                self._drop_oldest()
            self._changed.notify_all()

    def close(self, *, is_complete: bool = True) -> None:
        """End the run in the tool once the rest is delivered; return at once."""
        with self._changed:
            self._is_closing = True
            self._is_complete = is_complete
            self._changed.notify_all()

    def finish(self, seconds: float, *, is_complete: bool = True) -> bool:
        """Deliver what is left, for at most so long; say what was lost. Return whether all was delivered."""
        self.close(is_complete=is_complete)
        self._thread.join(seconds)
        reason = ""
        with self._changed:
            if self._thread.is_alive():
                reason = f": {self._away or 'it has not answered in time'}"
                self._has_given_up = True
                for record in (*self._on_the_way, *self._waiting):
                    self._lose(record)
                self._waiting.clear()
                self._lost.setdefault("", 0)
            lost = dict(self._lost)
        if lost:
            self._report(
                f"smdebug: {self._sink.place}: {_in_words(lost)} did not arrive{reason}.{self._remedy()}"
            )
        for note in self._sink.notes:
            self._report(f"smdebug: {redacted(note)}")
        return not lost

    def _remedy(self) -> str:
        return f" The run has all of it. Send it again: {self._again}" if self._again else ""

    def _deliver(self) -> None:
        try:
            if self._retried(lambda: self._sink.begin(self._run)):
                while batch := self._next_batch():
                    if not self._retried(lambda records=batch: self._sink.send(records)):  # type: ignore[misc]
                        break
                    self._note_arrival()
                self._sink.end(is_complete=self._is_complete and not self._has_given_up)
        except Exception as error:  # noqa: BLE001 - a tool may fail in any way
            self._give_up(f"{type(error).__name__}: {redacted_line(error)}")

    def _next_batch(self) -> list[Record]:
        """Wait for records; return some of them, which stay in the queue, or none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            batch: list[Record] = []
            size = 0
            for record in self._waiting:
                size += 1 + _size(record)
                if batch and size > _BATCH:
                    break
                batch.append(record)
            for _ in batch:  # they are on their way, and can no longer be dropped
                self._waiting.popleft()
            self._on_the_way = batch
            return batch

    def _note_arrival(self) -> None:
        with self._changed:
            self._numbers_waiting -= sum(map(_size, self._on_the_way))
            self._on_the_way = []

    def _retried(self, deliver: Callable[[], object]) -> bool:
        """Deliver, again and again while the tool is unavailable; return whether that was possible.

        At the end of the run it is tried once more, without a pause.
        """
        pause = self._first_pause
        has_said = False
        while True:
            was_closing = self._is_closing
            try:
                deliver()
                self._away = ""
                return True
            except SinkUnavailable as error:
                reason = redacted(error.problem)
                if was_closing:
                    self._give_up(reason)
                    return False
                if not has_said:
                    has_said = True
                    self._report(f"smdebug: {self._sink.place}: {reason}. It is tried again")
                self._away = reason
            except SinkRefused as error:
                self._give_up(redacted(error.problem))
                return False
            with self._changed:
                until = time.monotonic() + pause
                self._changed.wait_for(lambda: self._is_closing, until - time.monotonic())
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _give_up(self, reason: str) -> None:
        with self._changed:
            is_said = self._has_given_up
            self._has_given_up = True
            for record in (*self._on_the_way, *self._waiting):
                self._lose(record)
            self._on_the_way = []
            self._waiting.clear()
            self._lost.setdefault("", 0)
        if not is_said:
            follows = "" if self._is_closing else ". Nothing more is sent; the training continues"
            self._report(f"smdebug: {self._sink.place}: {reason}{follows}")

    def _drop_oldest(self) -> None:
        kept: deque[Record] = deque()
        for record in self._waiting:
            if self._numbers_waiting > self._most_numbers and isinstance(record, NumbersRecord):
                self._numbers_waiting -= len(record)
                self._lose(record)
            else:
                kept.append(record)
        self._waiting = kept

    def _lose(self, record: Record) -> None:
        kind, count = ("number", len(record)) if isinstance(record, NumbersRecord) else (_kind(record), 1)
        self._lost[kind] = self._lost.get(kind, 0) + count


def _size(record: Record) -> int:
    return len(record) if isinstance(record, NumbersRecord) else 0


def _kind(record: Record) -> str:
    if isinstance(record, IssueRecord):
        return "message about a problem"
    return str(record.to_dict()["record"])


def _in_words(lost: dict[str, int]) -> str:
    known = ((kind, count) for kind, count in lost.items() if kind and count)
    parts = [f"the {kind}" if kind in _ONCE else _counted(count, kind) for kind, count in known]
    *first, last = parts or ["the end of the run"]
    return f"{', '.join(first)} and {last}" if first else last


def _counted(count: int, kind: str) -> str:
    return f"{count:,} {_SEVERAL[kind]}" if count > 1 and kind in _SEVERAL else counted(count, kind)
