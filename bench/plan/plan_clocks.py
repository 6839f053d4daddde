"""Clocks around what the hook for PyTorch does: in the training's thread, and behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from smdebug.pytorch.listening.beginning import BeforeForward
from smdebug.pytorch.listening.callbacks import AroundLayer, BeforeOptimizer
from smdebug.pytorch.observing.observer import TorchObserver
from smdebug.saving.writing import background


class Clocks:
    """Sums of what the hook takes: in what PyTorch calls, and of a processor in the background."""

    def __init__(self) -> None:
        self.inside = self.behind = 0.0

    def take(self) -> tuple[float, float]:
        """Return both sums since the last call."""
        inside, behind, self.inside, self.behind = self.inside, self.behind, 0.0, 0.0
        return inside, behind


@contextmanager
def clocks() -> Iterator[Clocks]:
    """Put a clock around everything that PyTorch, and the thread that writes, call of the library."""
    sums = Clocks()
    depth = 0

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def inside(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            begin, depth = time.perf_counter(), depth + 1
            try:
                return call(*args, **kwargs)
            finally:
                depth -= 1
                if not depth:
                    sums.inside += time.perf_counter() - begin

        return inside

    def behind(attempt: Callable[..., Any]) -> Callable[..., Any]:
        def timed_attempt(act: Callable[[], object]) -> Any:
            begin = time.thread_time()
            try:
                return attempt(act)
            finally:
                sums.behind += time.thread_time() - begin

        return timed_attempt

    places: list[tuple[Any, str, Callable[..., Any]]] = [
        *((kind, "__call__", timed) for kind in (BeforeForward, AroundLayer, BeforeOptimizer)),
        (TorchObserver, "after_optimizer", timed),
        *((TorchObserver, name, timed) for name in ("before_backward", "after_criterion")),
        (background, "_attempt", behind),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, around in places:
        setattr(owner, name, around(getattr(owner, name)))
    try:
        yield sums
    finally:
        for owner, name, call in before:
            setattr(owner, name, call)
