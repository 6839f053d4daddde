"""The values of a request are checked before anything is read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import ClientDisconnect

from smdebug.exceptions import SMDebugValueError
from smdebug.ui.answering.requests import MOST_POINTS, NotFound, body_of, named, opened, points, whole_number


def asked(**query):
    return SimpleNamespace(query_params=query)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), (str((1 << 62) - 1), (1 << 62) - 1), ("", None), (None, None)]
)
def test_a_whole_number_is_read(text, number):
    request = asked() if text is None else asked(step=text)
    assert whole_number(request, "step") == number
    assert whole_number(request, "step", 5) == (5 if number is None else number)


@pytest.mark.parametrize("text", ["-1", "1.5", "x", str(1 << 62), "9" * 100])
def test_anything_else_is_refused_and_shortened(text):
    with pytest.raises(SMDebugValueError) as refused:
        whole_number(asked(step=text), "step")
    assert str(refused.value) == f"step must be a whole number of at least 0, not {text[:40]!r}"


@pytest.mark.parametrize(
    ("text", "count"), [(None, 2000), ("0", 2000), ("1", 1), ("20000", 20_000), ("20001", 20_000)]
)
def test_a_screen_has_between_one_and_20_000_points(text, count):
    assert points(asked() if text is None else asked(points=text)) == count
    assert MOST_POINTS == 20_000
    assert points(asked(), 7) == 7


def test_a_name_is_taken_as_it_is_or_as_it_is_shown():
    known = ["a", "b\x1b"]
    assert named(asked(name="a"), "name", known, "series") == "a"
    assert named(asked(name="b\x1b"), "name", known, "series") == "b\x1b"
    assert named(asked(name="b\\x1b"), "name", known, "series") == "b\x1b"
    with pytest.raises(NotFound) as refused:
        named(asked(name="c" * 200), "name", known, "series")
    assert str(refused.value) == f"This run has no series {'c' * 100!r}."
    with pytest.raises(NotFound, match="no tensor ''"):
        named(asked(), "name", iter(known), "tensor")


@pytest.mark.parametrize(("row", "reader"), [(None, 1), (1, None), (None, None)])
def test_a_run_that_is_not_listed_does_not_exist(row, reader):
    board = SimpleNamespace(row=lambda run_id: row, reader=lambda run_id: reader)
    with pytest.raises(NotFound, match="There is no such run here"):
        opened(board, "a")
    board = SimpleNamespace(row=lambda run_id: run_id, reader=lambda run_id: 2)
    assert opened(board, "a") == ("a", 2)


def body(*pieces, ends=True):
    async def stream():
        for piece in pieces:
            yield piece
        if not ends:
            raise ClientDisconnect

    return asyncio.run(body_of(SimpleNamespace(stream=stream)))


def test_a_body_is_an_object_of_json_in_any_number_of_pieces():
    assert body(b'{"a"', b": 1}") == {"a": 1}
    assert body() == {}
    longest = b'{"a": "' + b"x" * ((1 << 20) - 9) + b'"}'
    assert len(longest) == 1 << 20
    assert len(body(longest)["a"]) == (1 << 20) - 9


@pytest.mark.parametrize(
    ("pieces", "ends", "said"),
    [
        ([b"{"], True, "The request is not JSON"),
        ([b"[" * 100_000], True, "The request is not JSON"),
        ([b"[]"], True, "The request must be a JSON object"),
        ([b"{}"], False, "The connection ended before the whole request was sent"),
        ([b"x" * (1 << 20), b"x"], True, "The request has more than 1,048,576 bytes"),
    ],
)
def test_another_body_is_refused(pieces, ends, said):
    with pytest.raises(SMDebugValueError, match=said):
        body(*pieces, ends=ends)
