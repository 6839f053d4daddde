"""Every command that reads a run, on damaged runs: damage is named and left out, and the rest is read."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.cli.commands import COMMANDS
from smdebug.files.names import event_key, index_key
from tests.cli.conftest import failing_run, flip_a_bit

READ_RUNS = {
    "RUN": ("{}/run",),
    "inspect": ("inspect", "{}/run"),
    "tensor": ("tensor", "{}/run", "loss"),
    "evaluate": ("evaluate", "{}/run", "--rule", "ExplodingTensor"),
    "watch": ("watch", "{}/run", "--once", "--rule", "ExplodingTensor"),
    "compare": ("compare", "{}/run", "{}/run"),
    "verify": ("verify", "{}/run"),
    "report": ("report", "{}/run", "--rule", "ExplodingTensor", "-o", "{}/out.html"),
    "plot": ("plot", "{}/run", "--tensor", "loss", "-o", "{}/out.png"),
    "export npz": ("export", "npz", "{}/run", "-o", "{}/out.npz"),
    "export safetensors": ("export", "safetensors", "{}/run", "-o", "{}/out.safetensors"),
    "export parquet": ("export", "parquet", "{}/run", "-o", "{}/out.parquet"),
    "export tensorboard": ("export", "tensorboard", "{}/run", "-o", "{}/tensorboard"),
    "runs": ("runs", "{}/run"),
    "tag": ("tag", "{}/run", "--add", "seen"),
    "gate": ("gate", "{}/run", "--rule", "ExplodingTensor"),
    "backtest": ("backtest", "{}/run", "--rule", "ExplodingTensor", "--journal", "{}/journal"),
    "replay": ("replay", "{}/run", "--at", "30", "--rule", "ExplodingTensor"),
    "zoom": ("zoom", "{}/run", "--tensor", "loss"),
}
# Do not read the files of a run, or are servers and scripts, which other tests start.
OTHERS = {
    "rules",
    "status",
    "findings",
    "attach",
    "detach",
    "stop",
    "logs",
    "policy",
    "import",
    "import-sagemaker",
    "migrate",
    "doctor",
    "completion",
    "demo",
    "local",
    "run",
    "ui",
    "mcp",
}
# Exit codes that are not 3: what they print names the damage, and they have no verdict to give.
INFORM = {"inspect": 0, "tensor": 0, "runs": 0, "tag": 0, "zoom": 0}
FIND_ANYWAY = {"verify": 1}  # the damage itself


def truncate_an_index_file(run: Path) -> None:
    file = run / index_key(20, "worker_0")
    file.write_bytes(file.read_bytes()[:40])


def flip_the_bits_of_a_curve(run: Path) -> None:
    (entry,) = (
        entry
        for entry in json.loads((run / index_key(20, "worker_0")).read_bytes())["tensor_payload"]
        if entry["tensorname"].endswith("series/loss")
    )
    file = run / event_key(20, "worker_0")
    content = bytearray(file.read_bytes())
    content[entry["start_idx"] + entry["length"] // 2] ^= 0xFF
    file.write_bytes(bytes(content))


def remove_an_event_file(run: Path) -> None:
    (run / event_key(20, "worker_0")).unlink()


def truncate_an_event_file(run: Path) -> None:
    file = run / event_key(20, "worker_0")
    file.write_bytes(file.read_bytes()[:30])


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a truncated index file": (truncate_an_index_file, "index/000000000/000000000020"),
    "a flipped bit": (flip_a_bit, "events/000000000020"),
    "a missing event file": (remove_an_event_file, "events/000000000020"),
    "a truncated event file": (truncate_an_event_file, "events/000000000020"),
}


def empty(run: Path) -> None:
    shutil.rmtree(run)
    run.mkdir()


def of_tensorboard(run: Path) -> None:
    shutil.rmtree(run)
    (run / "logs").mkdir(parents=True)
    (run / "logs/events.out.tfevents.1700000000.host").write_bytes(bytes(50))


def a_file(run: Path) -> None:
    shutil.rmtree(run)
    run.write_text("no run")


NOT_RUNS: dict[str, tuple[Callable[[Path], None], str]] = {
    "an empty folder": (empty, "empty"),
    "files of TensorBoard": (of_tensorboard, "it contains logs/events.out"),
    "a file": (a_file, "it is a file"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    failing_run(tmp_path / "run")
    return tmp_path / "run"


def call(ask, name: str, folder: Path):
    return ask(*(word.replace("{}", str(folder)) for word in READ_RUNS[name]))


def test_every_command_that_reads_runs_is_in_the_table():
    assert {name.partition(" ")[0] for name in READ_RUNS} - {"RUN"} == set(COMMANDS) - OTHERS


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", READ_RUNS)
def test_damage_is_named_and_the_rest_continues(ask, run, command, damage):
    do_damage, file = DAMAGES[damage]
    do_damage(run)
    if command == "zoom":
        (run / "training_job_end.ts").unlink()
    answer = call(ask, command, run.parent)
    assert answer.code == {**INFORM, **FIND_ANYWAY}.get(command, 3)
    assert answer.out  # the rest
    assert "error:" not in answer.err
    if command not in INFORM:
        assert file in answer.out + answer.err
        assert "damaged" in answer.out + answer.err or "verify" in answer.out + answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("what", NOT_RUNS)
@pytest.mark.parametrize("command", sorted(set(READ_RUNS) - {"watch", "runs", "backtest"}))
def test_what_is_no_run_is_refused_with_what_is_there_instead(ask, run, command, what):
    replace, problem = NOT_RUNS[what]
    replace(run)
    before = sorted(run.parent.rglob("*"))
    answer = call(ask, command, run.parent)
    assert (answer.code, answer.out) == (3, "")
    assert f"There is no run at {run}" in answer.err
    assert problem in answer.err
    assert sorted(run.parent.rglob("*")) == before  # nothing was created


def test_watch_waits_where_no_run_has_begun_and_refuses_a_file(ask, run):
    empty(run)
    answer = call(ask, "watch", run.parent)
    assert (answer.code, "waiting for the first step" in answer.out) == (0, True)
    run.rmdir()
    run.write_text("no run")
    assert call(ask, "watch", run.parent).code == 3


@pytest.mark.parametrize("command", ["watch", "runs"])
def test_a_damaged_run_beside_others_is_named(ask, run, command):
    for file in (run / "collections").rglob("*.json"):
        file.write_text("{")
    answer = call(ask, command, run.parent)
    assert "cannot be read" in answer.out or "damaged" in answer.out


def test_a_run_of_which_nothing_can_be_read_has_no_values_to_export_or_show(ask, run):
    for file in (run / "index").rglob("*.json"):
        file.write_text("[")
    assert "index/000000000" in call(ask, "export npz", run.parent).err
    answer = call(ask, "tensor", run.parent)
    assert "10 index files cannot be read" in answer.err
    assert "It has no tensors that can be read." in answer.err


@pytest.mark.parametrize(
    "damage", [remove_an_event_file, flip_the_bits_of_a_curve], ids=["missing", "damaged"]
)
def test_a_curve_of_every_step_continues_beside_a_damaged_file(damage, tmp_path, ask):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for step in range(50):
            with hook.step():
                hook.record_all({"loss": 1 / (step + 1), "weight": np.ones(3)})
    damage(tmp_path / "run")
    place = str(tmp_path / "run")
    seen = ask("inspect", place).out
    assert re.search(r"loss +40 +1 +0.02 ", seen), seen
    assert re.search(r"run +ended +\d+ +0.02 ", ask("runs", str(tmp_path)).out)
    drawn = ask("plot", place, "--tensor", "loss", "-o", str(tmp_path / "loss.svg"))
    assert (drawn.code, "step 20" in drawn.err) == (3, True)
    assert (tmp_path / "loss.svg").exists()


def test_a_run_without_the_file_that_names_its_tensors_says_which_file_that_is(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "run")) as hook:
        for _ in range(3):
            with hook.step():
                hook.record_all({"loss": 1.0, "weight": np.ones(3)})
    file = index_key(0, "worker_0")
    (tmp_path / "run" / file).write_text("[]")
    listed = ask("runs", tmp_path / "run")
    assert (
        listed.code,
        f"run: 1 file cannot be read: {file}; run `smdebug verify" in listed.out,
    ) == (
        0,
        True,
    )
    answer = ask("inspect", tmp_path / "run")  # the event file has the names, too
    assert "weight  parameters" in answer.out
    assert (answer.code, file in answer.out) == (0, True)
    (tmp_path / "run" / event_key(0, "worker_0")).unlink()
    shown = ask("inspect", tmp_path / "run").out
    assert f"holds no smdebug/layout in the files that can be read: {file} cannot" in " ".join(shown.split())
    assert "was configured to save chosen tensors" not in shown
