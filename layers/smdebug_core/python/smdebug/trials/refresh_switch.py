"""Whether queries to a trial refresh it."""

from __future__ import annotations

import threading


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

    def override(self, value: bool) -> _Override:
        """Use `value` until the block ends, however it ends."""
        return _Override(self, value)

    def add(self, override: _Override) -> None:
        """Let a block begin."""
        with self._lock:
            self._overrides = [*self._overrides, override]

    def drop(self, override: _Override) -> None:
        """Let a block end. It need not be the last one, where threads overlap."""
        with self._lock:
            self._overrides = [other for other in self._overrides if other is not override]


class _Override:
    """The value inside one block.

    A class, not a generator, because every rule enters two such blocks a step.
    """

    __slots__ = ("_switch", "value")

    def __init__(self, switch: RefreshSwitch, value: bool):
        self._switch = switch
        self.value = value

    def __enter__(self) -> None:
        self._switch.add(self)

    def __exit__(self, *error: object) -> None:
        self._switch.drop(self)
