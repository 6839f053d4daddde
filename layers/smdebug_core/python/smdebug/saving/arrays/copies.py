"""Memory for the copies of tensors, reused from step to step.

Fresh memory costs a page fault for every few KB, which takes longer than the copy itself; and memory that one
thread frees and another allocates makes the training's own memory fresh, too.

Memory is never returned explicitly: it is lent again once no array and no buffer refers to it. So a step that
waits, is retried or is also exported to TensorBoard keeps its values.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

SLAB = 8 << 20
WORTH_LENDING = 32 << 10
"""Smaller copies use memory from malloc's free lists."""

_IDLE_STEPS = 8  # saved steps after which memory that none of them needed is freed
_ALIGNED = 64

Array = np.ndarray[Any, Any]


class CopyMemory:
    """Slabs of memory, at most `limit` bytes together, lent to steps.

    `copy(to, values)` fills an array with those of another, of the same dtype and shape.
    """

    def __init__(self, limit: int, copy: Callable[[Array, Array], object] = np.copyto):
        self.copy = copy
        self._limit = limit
        self._size = 0
        self._free: list[_Slab] = []
        self._back: deque[_Slab] = deque()  # collected ones, appended on any thread
        self._steps = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def size(self) -> int:
        """Its bytes, lent or not."""
        return self._size

    def for_a_step(self) -> StepCopies:
        """Return what copies the tensors of a step that begins."""
        if self._is_here():
            with self._lock:
                self._steps += 1
                self._take_back()
                for slab in [s for s in self._free if self._steps - s.used_at > _IDLE_STEPS]:
                    self._let_go(slab)
        return StepCopies(self)

    def lend(self, size: int) -> Array | None:
        """Return an unshared, uninitialised buffer of at least `size` bytes, or None."""
        if not self._is_here():
            return None
        with self._lock:
            self._take_back()
            slab = self._found(size) or self._made(size)
            if slab is None:
                return None
            slab.used_at = self._steps
            return np.asarray(_Lent(slab, self._back))

    # With the lock held

    def _found(self, size: int) -> _Slab | None:
        fitting = [slab for slab in self._free if size <= slab.size <= max(SLAB, 2 * size)]
        if not fitting:
            return None
        slab = min(fitting, key=lambda slab: slab.size)
        self._free.remove(slab)
        return slab

    def _made(self, size: int) -> _Slab | None:
        whole = -(-size // SLAB) * SLAB
        while self._size + whole > self._limit and self._free:
            self._let_go(self._free[0])
        if self._size + whole > self._limit:
            return None
        try:
            slab = _Slab(whole)
        except (OSError, MemoryError, ValueError):
            return None
        self._size += whole
        return slab

    def _take_back(self) -> None:
        while self._back:
            self._free.append(self._back.popleft())

    def _let_go(self, slab: _Slab) -> None:
        self._free.remove(slab)
        self._size -= slab.size

    def _is_here(self) -> bool:
        # In a forked child the lock may be held by a thread that does not exist there.
        return os.getpid() == self._process


class StepCopies:
    """Makes the copies of one step, packed one after another."""

    def __init__(self, memory: CopyMemory):
        self._memory = memory
        self._slab: Array | None = None
        self._used = 0
        self._lock = threading.Lock()

    def of(self, array: Array) -> Array:
        """A copy of the array."""
        size = array.nbytes
        if size < WORTH_LENDING or type(array) is not np.ndarray or array.dtype.hasobject:
            return np.array(array)
        # Axes in the order of memory: the copy of a transposed array is transposed, too.
        axes = None if array.flags.c_contiguous else np.argsort(array.strides)[::-1]
        lying = array if axes is None else array.transpose(axes)
        room = self._room(size)
        if room is None:
            return np.array(array)
        copy = room.view(array.dtype).reshape(lying.shape)
        self._memory.copy(copy, lying)
        return copy if axes is None else copy.transpose(np.argsort(axes))

    def end(self) -> None:
        """Make no more copies. The memory is reused once the existing copies are gone."""
        self._slab = None

    def _room(self, size: int) -> Array | None:
        if not self._memory._is_here():
            return None
        with self._lock:  # a training may record on several threads
            slab, start = self._slab, self._used
            if slab is None or start + size > slab.size:
                slab, start = self._memory.lend(size), 0
                if slab is None:
                    return None
                self._slab = slab
            self._used = start + -(-size // _ALIGNED) * _ALIGNED
        return slab[start : start + size]


class _Slab:
    """A block of memory, in large pages where the system has them."""

    __slots__ = ("array", "size", "used_at")

    def __init__(self, size: int):
        # Private: a mapping is shared by default, and forked children would write to it.
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                memory.madvise(mmap.MADV_HUGEPAGE)
        self.array = np.frombuffer(memory, np.uint8)
        self.size = size
        self.used_at = 0


class _Lent:
    """The base of every array in a slab: it is collected once no array is left."""

    __slots__ = ("__array_interface__", "_back", "_slab")

    def __init__(self, slab: _Slab, back: deque[_Slab]):
        self._slab = slab
        self._back = back
        self.__array_interface__ = slab.array.__array_interface__

    def __del__(self) -> None:
        self._back.append(self._slab)
