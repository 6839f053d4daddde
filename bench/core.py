"""`make bench-core`: writing, reading and opening runs, against numpy and the old library in one run.

It is long because each measurement is a function here, and all fill the same table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import Table, in_turn, milliseconds, rate, throughput

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")

from smdebug.files.checksum import crc32c
from smdebug.files.collections_file import encode_collections
from smdebug.files.names import END_MARKER, collections_key
from smdebug.mode_keys import ModeKeys
from smdebug.saving.writing.step_writer import StepWriter
from smdebug.storage import Storage, open_storage
from smdebug.trials import create_trial

MB = 1 << 20
LARGE = 16
SMALL_STEPS, SMALL_TENSORS = 40, 100
OLD = [
    "smdebug==1.0.34",
    "protobuf==3.20.3",
    "numpy<1.24",
    "pandas",
    "psutil",
    "requests",
    "packaging",
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--without-old-library", action="store_true")
    asked = arguments.parse_args()
    table = Table("Core library")
    with tempfile.TemporaryDirectory(dir=_fast_folder(), prefix="smdebug-bench-") as folder:
        work = Path(folder)
        prepare_runs(work / "runs")
        old = None if asked.without_old_library else old_library(work / "runs")
        writing_large(table, work)
        writing_small(table, work, old)
        reading_large(table, work)
        reading_small(table, work, old)
        opening(table, work, old)
        refreshing(table, work, old)
        importing(table, old)
        requests(table)
    print(table)
    if old is None:
        print("The old library was absent: no Python 3.8 or 3.9, or it could not be installed.")


# Runs that both libraries read


def prepare_runs(runs: Path) -> None:
    tiny = {f"tensor_{i:02}": np.arange(4, dtype=np.float32) + i for i in range(50)}
    write_run(runs / "small", tiny, steps=400)
    write_run(runs / "long", tiny, steps=2000)
    write_run(runs / "live", tiny, steps=2000, ended=False)


def write_run(
    place: Path | str,
    tensors: dict[str, np.ndarray],
    steps: int,
    ended: bool = True,
    first: int = 0,
) -> None:
    storage = open_storage(place)
    names = sorted(tensors)
    for step in range(first, first + steps):
        write_step(storage, tensors, step)
        if step == first:
            storage.write(collections_key("worker_0"), _collections(names))
    if ended:
        storage.write(END_MARKER, b"")


def write_step(storage: Storage, tensors: dict[str, np.ndarray], step: int) -> None:
    writer = StepWriter(storage, step=step, worker="worker_0", mode=ModeKeys.TRAIN, mode_step=step)
    for name, value in tensors.items():
        writer.write_tensor(name, value)
    writer.commit()


def _collections(names: list[str]) -> bytes:
    everything = {
        "name": "all",
        "include_regex": [".*"],
        "tensor_names": names,
        "reduction_config": None,
        "save_config": None,
        "save_histogram": True,
    }
    return encode_collections({"collections": {"all": everything}, "_meta": {"num_workers": 1}})


# Measurements


def writing_large(table: Table, work: Path) -> None:
    value = np.random.default_rng(0).standard_normal(4 * MB // 4, dtype=np.float32)
    storage = open_storage(work / "large")
    saved = work / "saved"

    def ours() -> None:
        write_step(storage, {f"weight_{i}": value for i in range(LARGE)}, 0)

    def numpy() -> None:
        saved.mkdir(exist_ok=True)
        for i in range(LARGE):
            np.save(saved / f"weight_{i}.npy", value)

    def afresh() -> None:  # overwriting memory is not what either does in a training
        shutil.rmtree(work / "large", ignore_errors=True)
        shutil.rmtree(saved, ignore_errors=True)

    taken = in_turn({"ours": ours, "np.save": numpy}, before=afresh)
    size = LARGE * value.nbytes
    ratio = taken["np.save"] / taken["ours"]
    table.row(
        "write 4 MB tensors, with index and checksums",
        throughput(size, taken["ours"]),
        f"np.save {throughput(size, taken['np.save'])}",
        f"{ratio:.2f} x (>= 0.75)",
    )


def writing_small(table: Table, work: Path, old: dict[str, float] | None) -> None:
    value = np.random.default_rng(0).standard_normal(1024, dtype=np.float32)
    names = [f"tensor_{i}" for i in range(SMALL_TENSORS)]
    storage = open_storage(work / "many")
    saved = work / "many_saved"

    def ours() -> None:
        for step in range(SMALL_STEPS):
            write_step(storage, dict.fromkeys(names, value), step)

    def numpy() -> None:
        saved.mkdir(exist_ok=True)
        for step in range(SMALL_STEPS):
            with (saved / f"{step}.npy").open("wb") as file:
                for _ in names:
                    np.save(file, value)

    taken = in_turn({"ours": ours, "np.save": numpy})
    count = SMALL_STEPS * SMALL_TENSORS
    ratio = taken["np.save"] / taken["ours"]
    table.row(
        "write tensors of 1,024 float32, with index",
        rate(count, taken["ours"]),
        f"np.save into one file a step {rate(count, taken['np.save'])}",
        f"{ratio:.2f} x (>= 1.7)",
    )
    if old:
        _against_old(table, "", count / taken["ours"], old["small_writes_per_second"], "")


def reading_large(table: Table, work: Path) -> None:
    """Values against copies of as much memory, as many arrays, none of them in a cache of the processor.

    Both give arrays that belong to the caller; the checksum alone says what verifying costs. On tmpfs the
    kernel maps 4 KB at a time, which no reader can avoid: there the peer is numpy's own reading, which
    verifies nothing.
    """
    with tempfile.TemporaryDirectory(prefix="smdebug-bench-") as folder:
        for size in (4, 16):
            _reading_large(table, Path(folder), size, "page cache", against_memory=True)
    if _fast_folder() is not None:
        for size in (4, 16):
            _reading_large(table, work, size, "tmpfs", against_memory=False)


def _reading_large(table: Table, work: Path, megabytes: int, where: str, *, against_memory: bool) -> None:
    count = 128 // megabytes
    value = np.random.default_rng(0).standard_normal(megabytes * MB // 4, dtype=np.float32)
    place = work / f"readable_{megabytes}"
    write_run(place, {"weight": value}, steps=count)
    tensor = create_trial(str(place)).tensor("weight")
    held: list[Any] = []  # the last value only: memory is used again, as in a rule that goes by steps
    contestants: dict[str, Any] = {"ours": lambda step: tensor.value(step)}
    if against_memory:
        arrays = [value.copy() for _ in range(count)]
        ready = np.zeros_like(value)
        contestants["array.copy()"] = lambda step: arrays[step].copy()
        contestants["np.copyto"] = lambda step: np.copyto(ready, arrays[step])
        contestants["checksum alone"] = lambda step: crc32c(arrays[step].data.cast("B"))
    else:
        plain = [place / f"{step}.bin" for step in range(count)]
        for file in plain:
            value.tofile(file)
        contestants["np.fromfile"] = lambda step: np.fromfile(plain[step], np.float32)

    def all_steps(read: Any) -> Any:
        def run() -> None:
            for step in range(count):
                held[:] = [read(step)]

        return run

    taken = in_turn({name: all_steps(read) for name, read in contestants.items()}, rounds=15)
    size = count * value.nbytes
    ours, peer, *more = taken
    table.row(
        f"read {megabytes} MB tensors ({where}), checksums verified",
        throughput(size, taken[ours]),
        ", ".join(f"{name} {throughput(size, taken[name])}" for name in [peer, *more]),
        f"{taken[peer] / taken[ours]:.2f} x " + ("(>= 0.9)" if against_memory else "of numpy's"),
    )


def reading_small(table: Table, work: Path, old: dict[str, float] | None) -> None:
    def ours() -> None:
        trial = create_trial(str(work / "runs" / "small"))
        tensors = [trial.tensor(name) for name in trial.tensor_names()]
        steps = trial.steps()
        begin = time.perf_counter()
        for tensor in tensors:
            for step in steps:
                tensor.value(step)
        taken.append(time.perf_counter() - begin)

    taken: list[float] = []
    in_turn({"ours": ours}, rounds=5)
    ours_rate = 400 * 50 / statistics.median(taken)
    _against_old(
        table,
        "values of 400 steps x 50 tiny tensors",
        ours_rate,
        old["values_per_second"] if old else None,
        "(>= 3)",
    )


def opening(table: Table, work: Path, old: dict[str, float] | None) -> None:
    run = work / "runs" / "long"
    index = sorted((run / "index").rglob("*.json"))

    def parse() -> None:
        for file in index:
            json.loads(file.read_bytes())

    taken = in_turn({"ours": lambda: create_trial(str(run)), "json": parse}, rounds=5)
    script = (
        "import os, sys\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * "
        "os.sysconf('SC_PAGESIZE')\n"
        "from smdebug.trials import create_trial\n"
        "before = resident()\n"
        "trial = create_trial(sys.argv[1])\n"
        "print(resident() - before)\n"
    )
    added = int(subprocess.check_output([sys.executable, "-c", script, str(run)]))
    table.row(
        "open 2,000 steps x 50 tensors",
        milliseconds(taken["ours"]),
        f"json.loads of the same files {milliseconds(taken['json'])}",
        f"{taken['json'] / taken['ours']:.2f} x",
    )
    if old:
        table.row(
            "",
            "",
            f"old library {milliseconds(old['open'])}",
            f"{old['open'] / taken['ours']:.1f} x (>= 10)",
        )
    table.row(
        "  memory added by it",
        f"{added / MB:.1f} MB",
        f"old library {old['open_bytes'] / MB:.0f} MB" if old else "",
        "(<= 30 MB)",
    )


def refreshing(table: Table, work: Path, old: dict[str, float] | None) -> None:
    tiny = {f"tensor_{i:02}": np.arange(4, dtype=np.float32) for i in range(50)}
    taken = {}
    for steps in (200, 1999, 5999):
        place = work / f"live_{steps}"
        write_run(place, tiny, steps=steps, ended=False)
        trial = create_trial(str(place))
        storage = open_storage(place)
        seconds = []
        for step in range(steps, steps + 21):
            write_step(storage, tiny, step)
            begin = time.perf_counter()
            trial.refresh_data()
            seconds.append(time.perf_counter() - begin)
            assert trial.steps()[-1] == step
        taken[steps] = statistics.median(seconds)
    table.row(
        "refresh by one new step, after 200 | 2,000 | 6,000",
        " | ".join(f"{s * 1000:.2f}" for s in taken.values()) + " ms",
        f"old library, one query on 2,000: {milliseconds(old['live_query'])}" if old else "",
        "(grows with what is new)",
    )


def importing(table: Table, old: dict[str, float] | None) -> None:
    # With bytecode, as an installed package has it: PYTHONDONTWRITEBYTECODE would have our modules
    # compiled at each start, and numpy's not.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def start(statement: str) -> Any:
        return lambda: subprocess.run([sys.executable, "-c", statement], check=True, env=environment)

    taken = in_turn(
        {
            "nothing": start("pass"),
            "numpy": start("import numpy"),
            "ours": start("import smdebug.trials, smdebug.rules"),
        },
        rounds=11,
    )
    ours, numpy = taken["ours"] - taken["nothing"], taken["numpy"] - taken["nothing"]
    table.row(
        "import smdebug.trials, smdebug.rules",
        milliseconds(ours),
        f"import numpy {milliseconds(numpy)}",
        f"{ours / numpy:.2f} x (<= 1.8)",
    )
    if old:
        table.row("", "", f"old library {milliseconds(old['import'])} with its Python's start", "")


def requests(table: Table) -> None:
    """The requests to S3, counted at a moto server."""
    os.environ.update(
        AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_DEFAULT_REGION="us-east-1"
    )
    import boto3
    from moto import mock_aws

    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="bench")
        asked: Counter[str] = Counter()
        client.meta.events.register("before-call.s3", lambda model, **_: asked.update([model.name]))

        from smdebug.storage.s3 import S3Storage

        storage = S3Storage("bench", "run", client=client)
        tensors = {f"tensor_{i}": np.arange(1024, dtype=np.float32) for i in range(50)}
        storage.write(collections_key("worker_0"), _collections(sorted(tensors)))
        asked.clear()
        for step in range(20):
            write_step(storage, tensors, step)
        table.row("S3: writing 20 steps of 50 tensors", _counted(asked), "", "(2 PUT a step)")
        storage.write(END_MARKER, b"")
        asked.clear()
        trial = create_trial(storage)
        table.row("S3: opening 20 steps", _counted(asked), "", "(1 GET an index file)")
        asked.clear()
        for name in trial.tensor_names():
            trial.tensor(name).value(7)
        table.row("S3: reading all 50 tensors of a step", _counted(asked), "", "(<= 2 GET)")


def _counted(asked: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(asked.items()))


def _against_old(table: Table, what: str, ours: float, old: float | None, promised: str) -> None:
    if old:
        table.row(what, rate(ours, 1), f"old library {rate(old, 1)}", f"{ours / old:.1f} x {promised}")
    else:
        table.row(what, rate(ours, 1), "old library absent", promised)


# The old library


def old_library(runs: Path) -> dict[str, float] | None:
    """Return its timings of the same jobs, or None if it is not available."""
    python = _old_environment()
    if python is None:
        return None
    script = Path(__file__).with_name("old_library.py")
    said = subprocess.run([python, str(script), str(runs)], capture_output=True, text=True, check=False)
    if said.returncode:
        print(f"The old library failed:\n{said.stderr[-2000:]}")
        return None
    return json.loads(said.stdout.splitlines()[-1])


def _old_environment() -> Path | None:
    kept = Path(__file__).parents[1] / ".venv-old"
    python = kept / "bin" / "python"
    if python.exists():
        return python
    homes = sorted(Path.home().glob(".pyenv/versions/3.[89].*/bin/python"))
    for candidate in ["python3.9", "python3.8", *map(str, homes)]:
        found = shutil.which(candidate)
        if found is None or subprocess.run([found, "-c", ""], capture_output=True).returncode:
            continue
        print("Installing the old library beside this one, once ...", flush=True)
        made = subprocess.run([found, "-m", "venv", str(kept)], capture_output=True)
        installed = (
            made.returncode == 0
            and not subprocess.run(
                [str(python), "-m", "pip", "install", "-q", *OLD], capture_output=True
            ).returncode
        )
        if installed:
            return python
        shutil.rmtree(kept, ignore_errors=True)
    return None


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    main()
