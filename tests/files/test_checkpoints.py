"""The list of a training's checkpoints, as a file has it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.exceptions import DamagedFile
from smdebug.files.notes.checkpoints import (
    MAX_BYTES,
    MOST,
    Checkpoint,
    encode_checkpoints,
    last_before,
    parse_checkpoints,
    with_another,
)

CHECKPOINTS = st.builds(
    Checkpoint,
    st.integers(-1, 10**9),
    st.from_regex(r"[a-zé/]{1,20}", fullmatch=True),
    st.floats(0, 1e10),
)


@given(st.lists(CHECKPOINTS, max_size=20, unique_by=lambda checkpoint: checkpoint.step))
def test_what_was_written_is_read_in_the_order_of_steps(checkpoints):
    read = parse_checkpoints(encode_checkpoints("run", checkpoints))
    assert read == sorted(checkpoints, key=lambda checkpoint: checkpoint.step)


@given(st.lists(CHECKPOINTS, max_size=20), st.integers(-1, 10**9))
def test_the_last_one_before_a_step_is_earlier_and_no_other_lies_between(checkpoints, step):
    last = last_before(checkpoints, step)
    earlier = [checkpoint.step for checkpoint in checkpoints if checkpoint.step < step]
    assert (last and last.step) == (max(earlier) if earlier else None)


def test_of_two_checkpoints_of_one_step_the_later_one_is_the_last():
    assert last_before([Checkpoint(3, "late", 2.0), Checkpoint(3, "early", 1.0)], 4).path == "late"


def test_a_path_that_is_written_again_has_its_last_step():
    listed = with_another([Checkpoint(1, "last.pt"), Checkpoint(1, "a.pt")], Checkpoint(9, "last.pt"))
    assert listed == [Checkpoint(1, "a.pt"), Checkpoint(9, "last.pt")]


def test_of_many_checkpoints_the_newer_half_is_kept_whole_and_the_oldest_stays():
    listed = []
    for step in range(5 * MOST):
        listed = with_another(listed, Checkpoint(step, f"checkpoint-{step}"))
    steps = [checkpoint.step for checkpoint in listed]
    assert len(steps) <= MOST
    assert steps == sorted(steps)
    assert steps[0] == 0
    assert steps[-MOST // 3 :] == list(range(5 * MOST - MOST // 3 - 1, 5 * MOST))


def test_secrets_in_paths_are_neither_written_nor_read():
    secret = "AKIAIOSFODNN7EXAMPLE"
    signed = f"s3://bucket/a.pt?X-Amz-Credential={secret}&X-Amz-Signature=0f9a8b7c6d5e4f3a2b1c"
    data = encode_checkpoints("run", [Checkpoint(1, signed)])
    assert secret.encode() not in data
    read = parse_checkpoints(json.dumps({"checkpoints": [{"step": 1, "path": signed}]}).encode())
    assert read == parse_checkpoints(data)
    assert read[0].path.startswith("s3://bucket/a.pt")
    assert secret not in read[0].path


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {},
        {"step": 1},
        {"path": "a"},
        {"step": "1", "path": "a"},
        {"step": True, "path": "a"},
        {"step": -2, "path": "a"},
        {"step": 1, "path": ""},
        {"step": 1, "path": ["a"]},
    ],
)
def test_an_entry_of_another_form_costs_that_entry(entry):
    data = json.dumps({"checkpoints": [entry, {"step": 4, "path": "b", "more": 1}]}).encode()
    assert parse_checkpoints(data) == [Checkpoint(4, "b")]


@pytest.mark.parametrize("time", [None, "now", True, math.inf, math.nan])
def test_a_time_that_is_none_is_not_known(time):
    data = json.dumps({"checkpoints": [{"step": 4, "path": "b", "time": time}]}).encode()
    assert parse_checkpoints(data) == [Checkpoint(4, "b", 0.0)]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"checkpoints": {}}', b"[" * 100_000, b" " * (MAX_BYTES + 1)]
)
def test_a_file_that_is_no_list_is_damaged(data):
    with pytest.raises(DamagedFile, match=r"checkpoints\.json"):
        parse_checkpoints(data)
