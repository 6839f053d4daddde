"""`smdebug verify`: what is damage, and what is not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.files.names import END_MARKER, ORIGIN, collections_key, event_key, index_key
from tests.cli.conftest import failing_run


def test_a_flipped_bit_is_found_by_verify_and_by_nothing_quicker(ask, failing):
    file = failing / event_key(20, "worker_0")
    data = bytearray(file.read_bytes())
    at = data.index(np.float32(1.8).tobytes())
    data[at] ^= 1
    file.write_bytes(data)
    answer = ask("verify", failing, "--json")
    assert answer.code == 1
    (problem,) = answer.json["problems"]
    assert (problem["tensor"], problem["step"]) == ("loss", 20)
    assert ask("verify", failing, "--quick").code == 0
    file.write_bytes(data[:-9])
    assert ask("verify", failing, "--quick").code == 1


def test_every_kind_of_damage_is_reported(ask, failing):
    (failing / event_key(30, "worker_0")).unlink()
    (failing / index_key(40, "worker_0")).write_text('{"meta": {}}')
    shutil.copy(failing / index_key(50, "worker_0"), failing / index_key(55, "worker_0"))
    (failing / index_key(60, "worker_0")).unlink()
    found = ask("verify", failing, "--json").json
    assert {problem["step"] for problem in found["problems"]} == {30, 40, 55, 60}
    assert "000000000060_worker_0.json is missing" in found["problems"][-1]["problem"]
    # The index files name no step before them, as those of the old library: a copy is found by verify alone.
    assert ask("inspect", failing).out.count("damaged: ") == 2


def test_a_run_without_all_its_collections_files_is_not_sound(ask, tmp_path):
    run = failing_run(tmp_path / "two", workers=2, steps=2)
    next(iter((tmp_path / "two" / "collections").rglob("worker_1*"))).unlink()
    answer = ask("verify", run.storage.location)
    assert (answer.code, "files of 1 workers, but the run has 2" in answer.out) == (1, True)


def test_the_last_step_of_a_worker_that_died_is_not_damage_and_a_lost_index_file_is(ask, tmp_path):
    run = failing_run(tmp_path / "two", workers=2, steps=3)
    (tmp_path / "two" / index_key(20, "worker_1")).unlink()
    found = ask("verify", run.storage.location, "--json")
    assert found.code == 0
    assert any("its worker stopped" in note["problem"] for note in found.json["notes"])
    (tmp_path / "two" / index_key(10, "worker_0")).unlink()
    (problem,) = ask("verify", run.storage.location, "--json").json["problems"]
    assert (problem["step"], "worker_0.json is missing" in problem["problem"]) == (10, True)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (index_key(1, "worker_0"), b'"training_run": 0', b'"training_run": 4'),
        (index_key(1, "worker_0"), b'"mode_step": 1', b'"mode_step": 3'),
        (collections_key("worker_0"), b'"training_run": 0', b'"training_run": 4'),
        (collections_key("worker_0"), b'"losses"', b'"lasses"'),
    ],
)
def test_json_that_changed_is_damage_and_not_another_attempt(ask, tmp_path, file, old, new):
    attempt(tmp_path / "run", 3)
    place = tmp_path / "run" / file
    assert old in place.read_bytes()
    place.write_bytes(place.read_bytes().replace(old, new))
    found = ask("verify", tmp_path / "run", "--json")
    (problem,) = found.json["problems"]
    assert (found.code, problem["file"]) == (1, file)
    assert problem["problem"].startswith("it has changed since it was written")
    assert len(found.json["attempts"]) == 1


def test_a_damaged_origin_is_reported(ask, tmp_path):
    attempt(tmp_path / "run", 1)
    (tmp_path / "run" / ORIGIN).write_bytes(b'{"version": 1')
    answer = ask("verify", tmp_path / "run")
    assert (answer.code, "damaged  origin.json: its JSON cannot be read" in answer.out) == (1, True)


def attempt(place: Path, steps: int, *, first: int = 0, crashes: bool = False) -> None:
    """A training that saves each of these steps, or dies at the last one before the index file is there."""
    every = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(place), save_config=every) as hook:
        for step in range(first + steps):
            with hook.step():
                if step >= first:
                    hook.record("loss", 1.0)
    if crashes:
        (place / index_key(first + steps - 1, "worker_0")).unlink()
        (place / END_MARKER).unlink()
        collections = place / collections_key("worker_0")
        content = json.loads(collections.read_text())
        for key in ("closed", "last_step", "steps_written", "file_crc32c"):
            del content["_meta"][key]
        collections.write_text(json.dumps(content))


def test_a_step_that_was_never_committed_is_not_damage(ask, tmp_path):
    attempt(tmp_path / "run", 3, crashes=True)
    assert ask("verify", tmp_path / "run").code == 0
    attempt(tmp_path / "run", 3, first=3)
    found = ask("verify", tmp_path / "run", "--json")
    assert (found.code, found.json["is_sound"]) == (0, True)
    (note,) = found.json["notes"]
    assert (note["step"], note["harmless"]) == (2, True)
    assert "the training was interrupted there and resumed at step 3, or" in note["problem"]


def test_a_step_that_a_process_continued_without_is_not_damage(ask, tmp_path):
    attempt(tmp_path / "run", 2)
    (tmp_path / "run" / END_MARKER).unlink()
    attempt(tmp_path / "run", 2, first=5)
    uncommitted = tmp_path / "run" / event_key(1, "worker_0")
    for step in (3, 7):  # the second after all that was committed
        place = tmp_path / "run" / event_key(step, "worker_0")
        place.parent.mkdir()
        shutil.copy(uncommitted, place)
    index = tmp_path / "run" / index_key(6, "worker_0")
    payload = json.loads(index.read_text())
    payload["meta"]["previous_step"] = 1
    del payload["meta"]["file_crc32c"]
    (tmp_path / "run" / index_key(5, "worker_0")).unlink()
    index.write_text(json.dumps(payload))
    found = ask("verify", tmp_path / "run", "--json").json
    notes = {note["step"]: note["problem"] for note in found["notes"]}
    assert all("never committed" in notes[step] for step in (3, 5))
    assert "step 6 followed step 1" in notes[3]
    assert "its worker stopped" in notes[7]
    assert found["problems"] == []


def test_an_index_file_that_was_there_and_is_not_is_damage(ask, tmp_path):
    attempt(tmp_path / "run", 6)
    for step in (2, 3, 5):
        (tmp_path / "run" / index_key(step, "worker_0")).unlink()
    found = ask("verify", tmp_path / "run", "--json")
    assert (found.code, [problem["step"] for problem in found.json["problems"]]) == (1, [2, 3, 5])


def test_the_last_step_of_a_training_that_continued_and_saved_nothing_is_not_damage(ask, tmp_path):
    attempt(tmp_path / "run", 3, crashes=True)
    attempt(tmp_path / "run", 0, first=3)
    found = ask("verify", tmp_path / "run", "--json")
    assert (found.code, "its worker stopped" in found.json["notes"][0]["problem"]) == (0, True)


def test_a_training_that_dies_in_its_first_step_is_not_damage_and_a_lost_folder_is(ask, tmp_path):
    attempt(tmp_path / "run", 1, crashes=True)
    assert ask("verify", tmp_path / "run").code == 0
    attempt(tmp_path / "other", 2, crashes=True)
    shutil.rmtree(tmp_path / "other" / "index")
    answer = ask("verify", tmp_path / "other")
    assert (answer.code, "but no index files" in answer.out) == (1, True)
