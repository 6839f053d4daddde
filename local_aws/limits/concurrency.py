"""The concurrency of an account: so many functions run at once, and the next call is refused with 429."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from local_aws.limits.numbers import BeyondLimit

THROTTLED = "TooManyRequestsException"


class Concurrency:
    """The running functions of an account."""

    def __init__(self, most: int):
        self._most = most
        self._running = 0
        self._lock = threading.Lock()
        self._held = threading.local()
        self.highest = 0
        self.refused: Counter[str] = Counter()

    @contextmanager
    def slot(self, function: str) -> Iterator[None]:
        """Run one function; `BeyondLimit` if too many run. A thread that has a slot needs no second."""
        if getattr(self._held, "slot", False):
            yield
            return
        with self._lock:
            if self._running >= self._most:
                self.refused[function] += 1
                raise BeyondLimit(THROTTLED, "Rate Exceeded.")
            self._running += 1
            self.highest = max(self.highest, self._running)
        self._held.slot = True
        try:
            yield
        finally:
            self._held.slot = False
            with self._lock:
                self._running -= 1
