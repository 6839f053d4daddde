"""The file of a rank that makes no progress."""

import json

import pytest

from smdebug.exceptions import DamagedFile
from smdebug.files.notes.stalls import MAX_BYTES, MOST_FRAMES, STANDS, Stall, stall_key
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.stall_reading import read_stalls

STALL = Stall(
    "worker_1",
    STANDS,
    412,
    "data",
    61.25,
    in_phase=60.5,
    limit=60.0,
    since=1795229224.5,
    processor=0.25,
    stack=("torch.utils.data.dataloader:DataLoader.__next__:733", "__main__:train:41"),
    run_id="3f0c9a",
    training_run=2,
)


def test_what_was_written_is_read():
    assert Stall.parse(STALL.encode(), "here") == STALL


def test_secrets_and_control_characters_stay_out():
    secret = "sk-ant-api03-" + "a1B2c3D4" * 12
    stall = Stall("worker_0", STANDS, 1, "data", 1.0, 1.0, 1.0, stack=(f"{secret}:f:1", "\x1b[2J:f:1"))
    assert secret.encode() not in stall.encode()
    by_hand = {**json.loads(stall.encode()), "stack": [f"{secret}:f:1", "\x1b[2J:f:1", 7]}
    read = Stall.parse(json.dumps(by_hand).encode(), "here")
    assert len(read.stack) == 2
    assert secret not in read.stack[0]
    assert "\x1b" not in read.stack[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"worker": 7},
        {"worker": ""},
        {"state": "flies"},
        {"state": ["stands"]},
        {"step": "1"},
        {"step": True},
        {"seconds": "long"},
        {"seconds": -1},
        {"seconds": 10**400},
        {"seconds": None},
        {"limit": 0},
        {"limit": float("nan")},
    ],
)
def test_a_file_that_does_not_say_where_and_how_long_is_refused(changes):
    content = {**json.loads(STALL.encode()), **changes}
    with pytest.raises(DamagedFile):
        Stall.parse(json.dumps(content).encode(), "here")


def test_what_is_not_needed_may_have_any_form():
    others = {"phase": 3, "stack": {"a": 1}, "processor": "all", "in_phase": [], "since": {}, "run_id": 1}
    read = Stall.parse(json.dumps({**json.loads(STALL.encode()), **others}).encode(), "here")
    assert (read.phase, read.stack, read.processor, read.run_id) == ("", (), None, "")
    long = Stall.parse(json.dumps({**json.loads(STALL.encode()), "stack": ["a"] * 900}).encode(), "here")
    assert len(long.stack) == MOST_FRAMES


def test_readers_leave_out_files_that_they_cannot_read():
    storage = MemoryStorage("stalls")
    storage.write(stall_key("worker_1"), STALL.encode())
    storage.write(stall_key("worker_2"), b"{")
    storage.write(stall_key("worker_3"), b"[" * 100_000)
    storage.write(stall_key("worker_4"), b" " * (MAX_BYTES + 1))
    storage.write("stalls/other.json", STALL.encode())
    assert read_stalls(storage) == {"worker_1": STALL}
