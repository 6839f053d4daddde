"""The object that requests a training to stop, and how it is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.saving.requests.control import STOP_KEY, ControlObject, StopRequest
from smdebug.storage.memory import MemoryStorage
from tests.saving.stop_requests import ATTEMPT, ask


def look(storage, attempt=ATTEMPT):
    return ControlObject(storage, attempt, look_every=0).look()


def test_a_request_for_another_training_is_ignored():
    storage = MemoryStorage()
    for request, is_meant in (
        ({"run_id": "run-1", "training_run": 1}, True),
        ({"run_id": "run-1", "training_run": 2}, True),
        ({"training_run": 1}, True),
        ({"run_id": "run-1", "training_run": 0}, False),
        ({"run_id": "run-2", "training_run": 1}, False),
        ({"run_id": "run-2"}, False),
    ):
        ask(storage, **request)
        assert (look(storage) is not None) == is_meant, request


def test_an_earlier_request_is_ignored_until_it_is_written_again(capsys):
    storage = MemoryStorage()
    ask(storage, reason="an older one")
    control = ControlObject(storage, ATTEMPT, look_every=0)
    assert control.look() is None
    assert control.look() is None
    assert capsys.readouterr().out.count("existed before this training") == 1
    ask(storage, reason="this one")
    assert control.look().reason == "this one"


def test_a_request_removed_and_written_again_is_new():
    storage = MemoryStorage()
    ask(storage)
    control = ControlObject(storage, ATTEMPT, look_every=0)
    assert control.look() is None
    storage.delete(STOP_KEY)
    assert control.look() is None
    ask(storage)
    assert control.look() == StopRequest()


@pytest.mark.parametrize(
    ("data", "request_"),
    [
        (b"", StopRequest()),
        (b"the loss explodes\n", StopRequest("the loss explodes")),
        (b'{"reason": "r", "finding_id": "f"}', StopRequest("r", "f")),
        (b'{"stop_at_step": "12"}', StopRequest(stop_at_step=12)),
        (b'{"stop_at_step": -1, "reason": 7}', StopRequest()),
        (b'{"stop_at_step": true}', StopRequest()),
        (b"[" * 100_000, StopRequest("[" * 500)),
        (b"null", StopRequest()),
        (b"\xff\x00", StopRequest("\ufffd")),
    ],
)
def test_whatever_the_object_holds_is_a_request(data, request_):
    assert StopRequest.read(data) == request_


@given(st.binary(max_size=200) | st.text(max_size=50).map(lambda text: json.dumps({"reason": text}).encode()))
def test_a_reason_is_one_printable_line(data):
    request = StopRequest.read(data)
    assert request.reason.isprintable()
    assert 0 < len(request.reason) <= 500
