"""System metrics of a training: time per step, waiting for data, CPU, memory, GPUs.

The training itself reads two clocks per step. Memory and GPUs are read behind it, when a step is written, at
most once a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

from smdebug.saving.process.gpu_metrics import gpus

READ_EVERY = 1.0
"""Seconds for which readings of memory and GPUs are reused for the following steps."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class SystemMetrics:
    """Measures between one saved step and the next.

    Time between the end of a step and the beginning of the next is waiting: for data, and for whatever else
    the script does there. Steps whose end is not known, as of a model's forward alone, wait for nothing.
    """

    __slots__ = ("_cpu_before", "_machine", "_since", "clock", "ended", "steps", "waited")

    def __init__(self, clock: Callable[[], float] = perf_counter):
        self.clock = clock
        self.ended: float | None = None
        """When the last step ended, as far as is known so far; None once the next one has begun."""
        self.steps = 0
        self.waited = 0.0
        self._since: float | None = None
        self._cpu_before = 0.0
        self._machine: tuple[float, dict[str, Any]] | None = None

    def begin_step(self) -> None:
        """Note that a step begins."""
        self.steps += 1
        if self.ended is not None:
            self.waited += self.clock() - self.ended
            self.ended = None

    def end_step(self) -> None:
        """Note that the step has ended, as far as is known so far."""
        self.ended = self.clock()

    def sample(self) -> Callable[[], dict[str, Any]]:
        """Return what completes the metrics in the background; measuring starts again."""
        now, cpu = self.clock(), process_time()
        metrics: dict[str, float] = {}
        if self._since is not None and self.steps and now > self._since:
            taken = now - self._since
            metrics["step_seconds"] = taken / self.steps
            metrics["waiting_seconds"] = self.waited / self.steps
            metrics["cpu_percent"] = 100 * (cpu - self._cpu_before) / taken
        self._since, self._cpu_before, self.steps, self.waited = now, cpu, 0, 0.0

        def completed() -> dict[str, Any]:
            rounded = {name: _rounded(value) for name, value in metrics.items()}
            return {**rounded, **self._read_machine(now)}

        return completed

    def _read_machine(self, now: float) -> dict[str, Any]:
        known = self._machine
        if known is None or not 0 <= now - known[0] < READ_EVERY:
            known = self._machine = now, _machine()
        return known[1]


def _machine() -> dict[str, Any]:
    """Return the memory of this process and of the machine, and the GPUs."""
    found: dict[str, Any] = {}
    memory = resident_bytes()
    if memory is not None:
        found["memory_bytes"] = memory
    share = machine_memory_percent()
    if share is not None:
        found["machine_memory_percent"] = _rounded(share)
    try:
        known = gpus()
        devices = [] if known is None else known.read()
    except Exception:  # noqa: BLE001 - a driver may fail in any way
        devices = []
    if devices:
        found["gpus"] = devices
    return found


def resident_bytes() -> int | None:
    """Return the memory that this process has in RAM; on systems other than Linux, the most it ever had."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read often
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def machine_memory_percent() -> float | None:
    """Return the share of the machine's memory that is in use; None if Linux does not report it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123 - read often
            lines = dict(line.split(":", 1) for line in file.read(4096).splitlines() if ":" in line)
        total, available = (int(lines[key].split()[0]) for key in ("MemTotal", "MemAvailable"))
    except (OSError, ValueError, KeyError, IndexError):
        return None
    return 100 * (total - available) / total if total > 0 else None


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
