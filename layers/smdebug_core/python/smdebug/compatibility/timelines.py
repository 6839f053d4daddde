"""Trace events in Chrome's format, one file per writer."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any


class TimelineRecord:
    """An event and its duration in seconds."""

    def __init__(
        self,
        timestamp: float,
        base_start_time: int,
        training_phase: str = "",
        phase: str = "X",
        operator_name: str = "",
        args: dict[str, Any] | None = None,
        duration: float = 0,
    ):
        self.training_phase = training_phase
        self.phase = phase
        self.op_name = operator_name
        self.args = args
        self.base_start_time = base_start_time
        self.rel_ts_micros = round(timestamp * 1_000_000) - base_start_time
        self.duration = duration
        self.event_end_ts_micros = round((timestamp + duration) * 1_000_000)
        self.pid = 0
        self.tid = 0

    def to_json(self) -> str:
        event: dict[str, Any] = {
            "name": self.op_name,
            "pid": self.pid,
            "ph": self.phase,
            "ts": self.rel_ts_micros,
        }
        if self.phase == "X":
            event["dur"] = round(self.duration * 1_000_000)
        if self.args:
            event["args"] = self.args
        return json.dumps(event)


class TimelineFileWriter:
    """Collects trace events, and writes them on `close` below the profiler's local path.

    `<local_path>/framework/pevents/<YYYYMMDDHH>/<end in microseconds>_<pid>-<host>_<suffix>`; nothing is
    written without a profiler configuration, or without events.
    """

    def __init__(
        self,
        profiler_config_parser: Any,
        max_queue: int = 100,
        suffix: str = "pythontimeline.json",
    ):
        self._config = getattr(profiler_config_parser, "config", None)
        self._suffix = suffix
        self._base_start_time = round(time.time() * 1_000_000)
        self._records: list[TimelineRecord] = []

    def write_trace_events(
        self,
        timestamp: float,
        training_phase: str = "",
        op_name: str = "",
        phase: str = "X",
        duration: float = 0,
        **kwargs: Any,
    ) -> None:
        """Add an event; other keywords become its arguments."""
        self.write_event(
            TimelineRecord(timestamp, self._base_start_time, training_phase, phase, op_name, kwargs, duration)
        )

    def write_event(self, event: TimelineRecord) -> None:
        if self._config is not None:
            self._records.append(event)

    def flush(self) -> None:
        """Do nothing: readers see the whole file after `close`."""

    def close(self) -> None:
        """Write the file, once."""
        records, self._records = self._records, []
        if not records or self._config is None:
            return
        start = {"start_time_since_epoch_in_micros": self._base_start_time}
        lines = [_metadata("process_name", 0, start), _metadata("process_sort_index", 0, _order(0))]
        processes: dict[str, int] = {}
        for record in records:
            if record.training_phase not in processes:
                record.pid = processes[record.training_phase] = len(processes)
                name = {"name": record.training_phase}
                lines.append(_metadata("process_name", record.pid, name))
                lines.append(_metadata("process_sort_index", record.pid, _order(record.pid)))
            record.pid = processes[record.training_phase]
            lines.append(record.to_json())
        end = max(record.event_end_ts_micros for record in records)
        hour = time.strftime("%Y%m%d%H", time.gmtime(end / 1_000_000))
        folder = Path(self._config.local_path, "framework", "pevents", hour)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{end}_{os.getpid()}-{socket.gethostname()}_{self._suffix}"
        unfinished = path.with_name(path.name + ".tmp")
        unfinished.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
        unfinished.replace(path)


def _metadata(name: str, pid: int, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "ph": "M", "pid": pid, "args": arguments})


def _order(pid: int) -> dict[str, int]:
    return {"sort_index": pid}
