"""The utilisation and memory of NVIDIA GPUs, from the driver's own library: no package, no process.

https://docs.nvidia.com/deploy/nvml-api/ describes its functions.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_MOST_GPUS = 16
_SUCCESS = 0
_NAME_LENGTH = 96


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class Gpus:
    """The GPUs that a process may use."""

    def __init__(self, library: Any, environment: Mapping[str, str]):
        self._library = library
        self._handles: list[ctypes.c_void_p] = []
        if library.nvmlInit_v2() == _SUCCESS:
            self._handles = self._visible(environment)

    def read(self) -> list[dict[str, Any]]:
        """Return name, utilisation in percent, and used and total bytes of memory of each GPU."""
        return [found for handle in self._handles if (found := self._read(handle))]

    def _read(self, handle: ctypes.c_void_p) -> dict[str, Any]:
        found: dict[str, Any] = {}
        name = ctypes.create_string_buffer(_NAME_LENGTH)
        if self._library.nvmlDeviceGetName(handle, name, _NAME_LENGTH) == _SUCCESS:
            found["name"] = name.value.decode(errors="replace")
        used = _Utilization()
        if self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(used)) == _SUCCESS:
            found["utilisation_percent"] = int(used.gpu)
        memory = _Memory()
        if self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == _SUCCESS:
            found["memory_bytes"] = int(memory.used)
            found["memory_total_bytes"] = int(memory.total)
        return found

    def _visible(self, environment: Mapping[str, str]) -> list[ctypes.c_void_p]:
        """Return the GPUs of CUDA_VISIBLE_DEVICES, or else that of the local rank, or else all."""
        count = ctypes.c_uint()
        if self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _SUCCESS:
            return []
        named = environment.get("CUDA_VISIBLE_DEVICES")
        if named is None:
            chosen = [str(index) for index in range(count.value)]
        else:
            chosen = [part.strip() for part in named.split(",") if part.strip()]
        rank = environment.get("LOCAL_RANK", "")
        if rank.isdecimal() and int(rank) < len(chosen):
            chosen = [chosen[int(rank)]]
        handles = [self._handle(name) for name in chosen[:_MOST_GPUS]]
        return [handle for handle in handles if handle is not None]

    def _handle(self, name: str) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        place = ctypes.byref(handle)
        if name.isdecimal():
            code = self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), place)
        else:
            code = self._library.nvmlDeviceGetHandleByUUID(name.encode(), place)
        return handle if code == _SUCCESS else None


@cache
def gpus() -> Gpus | None:
    """Return the GPUs of this process; None without a driver of NVIDIA."""
    try:
        return Gpus(ctypes.CDLL(_LIBRARY), os.environ)
    except (OSError, AttributeError):
        return None
