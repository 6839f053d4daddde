"""Logs as other tools write them, by their documented formats, and what a reader finds in them."""

from __future__ import annotations

import json
import math
import random
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from smdebug.files.framing import frame
from smdebug.files.tensorboard import encode_scalar
from smdebug.files.wire import delimited, varint
from smdebug.importing import Found
from smdebug.importing.records import Details, Point

STARTED = 1_763_805_600.0


def read(runs: Iterable[Found]) -> tuple[list[Point], Details]:
    """Read the only run that was found."""
    (found,) = runs
    details = Details()
    return list(found.read(details)), details


def by_name(points: Iterable[Point]) -> dict[str, list[tuple[int, float]]]:
    """Return the steps and values of each series."""
    series: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        series.setdefault(point.series, []).append((point.step, round(point.value, 6)))
    return series


def falling(steps: int, *, noise: float = 0.02, seed: int = 0) -> list[float]:
    """Return the losses of a training that goes well."""
    numbers = random.Random(seed)
    return [2.3 * math.exp(-step / (steps / 4)) + 0.1 + numbers.gauss(0, noise) for step in range(steps)]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a table."""
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_events(path: Path, scalars: Iterable[tuple[str, int, float]]) -> Path:
    """Write an event file of TensorBoard."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(
            b"".join(
                frame(b"\x09" + struct.pack("<d", STARTED) + b"\x1a\x0dbrain.Event:2", "tfrecord").pieces
            )
        )
        for tag, step, value in scalars:
            record = encode_scalar(tag, value, step=step, wall_time=STARTED + step)
            file.write(b"".join(record.pieces))
    return path


def event_of_summary(value: bytes, step: int = 0) -> bytes:
    """Return the record of an event with one value of a summary."""
    summary = delimited(b"\x2a", delimited(b"\x0a", value))
    event = b"\x09" + struct.pack("<d", STARTED) + b"\x10" + varint(step) + summary
    return b"".join(bytes(piece) for piece in frame(event, "tfrecord").pieces)


class WandbFile:
    """Writes a `.wandb` file: blocks of 32 KiB with the pieces of protobuf records."""

    def __init__(self) -> None:
        self.content = bytearray(struct.pack("<4sHB", b":W&B", 0xBEE1, 0))

    def run(self, name: str, config: Mapping[str, Any], tags: Sequence[str] = ()) -> WandbFile:
        items = b"".join(delimited(b"\x0a", _item(key, value)) for key, value in config.items())
        record = delimited(b"\x22", items) + delimited(b"\x42", name.encode())
        record += b"".join(delimited(b"\x52", tag.encode()) for tag in tags)
        return self.record(delimited(b"\x8a\x01", record))

    def history(self, **values: Any) -> WandbFile:
        items = b"".join(delimited(b"\x0a", _item(key, value)) for key, value in values.items())
        return self.record(delimited(b"\x12", items))

    def record(self, record: bytes) -> WandbFile:
        rest, is_first = record, True
        while is_first or rest:
            room = 32768 - len(self.content) % 32768
            if room < 7:
                self.content += bytes(room)
                room = 32768
            piece, rest = rest[: room - 7], rest[room - 7 :]
            kind = (1 if not rest else 2) if is_first else (4 if not rest else 3)
            checksum = zlib.crc32(bytes((kind,)) + piece)
            self.content += struct.pack("<IHB", checksum, len(piece), kind) + piece
            is_first = False
        return self

    def write(self, folder: Path, name: str = "run-x3k9.wandb") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(self.content)
        return folder / name


def _item(key: str, value: Any) -> bytes:
    return delimited(b"\x12", key.encode()) + delimited(b"\x82\x01", json.dumps(value).encode())


def write_mlflow_run(
    experiment: Path,
    run: str,
    metrics: Mapping[str, Sequence[tuple[int, Any]]],
    params: Mapping[str, str] | None = None,
) -> Path:
    """Write a run of MLflow's file store."""
    folder = experiment / f"id-of-{run}"
    (folder / "metrics").mkdir(parents=True)
    (experiment / "meta.yaml").write_text("experiment_id: '0'\nname: e\n", encoding="utf-8")
    meta = f"end_time: null\nrun_name: {run}\nstart_time: {int(STARTED * 1000)}\ntags: []\n"
    (folder / "meta.yaml").write_text(meta, encoding="utf-8")
    for name, values in metrics.items():
        path = folder / "metrics" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{int((STARTED + step) * 1000)} {value} {step}\n" for step, value in values]
        path.write_text("".join(lines), encoding="utf-8")
    for name, text in (params or {}).items():
        (folder / "params").mkdir(exist_ok=True)
        (folder / "params" / name).write_text(text, encoding="utf-8")
    return folder


def write_mlflow_database(path: Path, runs: Mapping[str, Sequence[tuple[str, int, float, bool]]]) -> Path:
    """Write the tables of MLflow's database that hold runs."""
    with sqlite3.connect(path) as database:
        database.executescript(
            """
            CREATE TABLE runs (run_uuid TEXT, name TEXT, start_time INTEGER);
            CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER,
                                  is_nan INTEGER);
            CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);
            CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT);
            """
        )
        for run, values in runs.items():
            at = int(STARTED * 1000)
            database.execute("INSERT INTO runs VALUES (?, ?, ?)", (f"id-of-{run}", run, at))
            database.execute("INSERT INTO params VALUES ('lr', '0.1', ?)", (f"id-of-{run}",))
            database.execute("INSERT INTO tags VALUES ('team', 'a', ?)", (f"id-of-{run}",))
            database.executemany(
                "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)",
                [(key, value, at + step, f"id-of-{run}", step, nan) for key, step, value, nan in values],
            )
    database.close()
    return path
