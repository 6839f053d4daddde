"""Whether queries to a trial refresh it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class RefreshSwitch:
    """On by default; blocks can override it for as long as they last. Threads may share it."""

    def __init__(self) -> None:
        self._value = True
        self._overrides: list[_Override] = []
        self._lock = threading.Lock()

    @property
    def value(self) -> bool:
        """Whether queries refresh the trial."""
        overrides = self._overrides
        return overrides[-1].value if overrides else self._value

    def set(self, value: bool) -> None:
        """Set the value; inside a block, only for the rest of the block."""
        with self._lock:
            if self._overrides:
                self._overrides[-1].value = value
            else:
                self._value = value

    @contextmanager
    def override(self, value: bool) -> Iterator[None]:
        """Use `value` until the block ends, however it ends."""
        mine = _Override(value)
        with self._lock:
            self._overrides = [*self._overrides, mine]
        try:
            yield
        finally:
            with self._lock:  # it need not be the last one, where threads overlap
                self._overrides = [other for other in self._overrides if other is not mine]


class _Override:
    """The value inside one block."""

    def __init__(self, value: bool):
        self.value = value
