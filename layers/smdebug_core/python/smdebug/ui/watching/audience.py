"""The open pages, and the runs that they show: no other run is polled."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Audience:
    """The open pages, by what they show."""

    LIST = ""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: Counter[str] = Counter()
        self.has_come = threading.Event()
        """Set when a page is opened."""
        self.is_over = False
        """Whether the server is ending, so that no page waits for it."""

    @contextmanager
    def page(self, shown: tuple[str, ...]) -> Iterator[None]:
        """Count a page that shows these runs, or the list."""
        with self._lock:
            self._pages.update(shown)
        self.has_come.set()
        try:
            yield
        finally:
            with self._lock:
                self._pages.subtract(shown)
                self._pages = +self._pages

    @property
    def runs(self) -> list[str]:
        """The runs that are open in some page."""
        with self._lock:
            return [run for run in self._pages if run != self.LIST]

    @property
    def has_list(self) -> bool:
        """Whether a page shows the list of runs."""
        with self._lock:
            return self.LIST in self._pages

    @property
    def is_empty(self) -> bool:
        with self._lock:
            return not self._pages
