"""Which names and tokens open the server, each with all that resembles it: without a socket."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.requests import Request

from smdebug.exceptions import SMDebugValueError
from smdebug.ui.answering.requests import MOST_POINTS, body_of, points, whole_number
from smdebug.ui.web.access import Access

TOKEN = "abcDEF-0123_xyz"
COOKIE = "smdebug-ui-4711"
HOSTS = ("127.0.0.1", "localhost", "::1", "box.x")


async def _nothing(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def ask(path="/api/runs", query="", method="GET", any_host=False, **headers):
    """Return the status and the headers of an answer; the name is a known one if none is given."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = {"host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "path": path,
        "query_string": query.encode(),
        "method": method,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    access = Access(_nothing, TOKEN, HOSTS, cookie=COOKIE, any_host=any_host)
    asyncio.run(access(scope, None, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


WRONG_TOKENS = [
    *(TOKEN[:length] for length in range(len(TOKEN))),
    *(TOKEN[:at] + "?" + TOKEN[at + 1 :] for at in range(len(TOKEN))),
    TOKEN[1:],
    TOKEN.lower(),
    TOKEN.swapcase(),
    TOKEN[::-1],
    TOKEN + "a",
    TOKEN + TOKEN,
    "a" + TOKEN,
    "a" * 100_000,
]


def test_a_token_that_resembles_the_right_one_is_refused_wherever_it_is():
    assert ask(x_smdebug_token=TOKEN)[0] == 200
    assert ask(cookie=f"{COOKIE}={TOKEN}")[0] == 200
    assert ask("/", f"token={TOKEN}")[0] == 303
    for wrong in WRONG_TOKENS:
        assert ask(x_smdebug_token=wrong)[0] == 403, wrong
        assert ask(cookie=f"{COOKIE}={wrong}")[0] == 403, wrong
        status, headers = ask("/", f"token={wrong}")
        assert (status, "set-cookie" in headers) == (200, False), wrong


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        TOKEN,
        COOKIE,
        f"={TOKEN}",
        f"{COOKIE};{TOKEN}",
        f"smdebug-ui={TOKEN}",
        f"smdebug-ui-4712={TOKEN}",
        f"a{COOKIE}={TOKEN}",
        f"{COOKIE}a={TOKEN}",
        f"{COOKIE.upper()}={TOKEN}",
        f"other={COOKIE}={TOKEN}",
    ],
)
def test_a_cookie_of_another_name_opens_nothing(cookie):
    assert ask(cookie=cookie)[0] == 403


def test_the_cookie_may_stand_among_others():
    assert ask(cookie=f"a=1; {COOKIE}={TOKEN}; b=2")[0] == 200


def test_a_wrong_header_is_not_made_good_by_the_cookie():
    assert ask(x_smdebug_token="wrong", cookie=f"{COOKIE}={TOKEN}")[0] == 403


RESEMBLING_NAMES = [
    "evilbox.x",
    "a.box.x",
    "evil-box.x",
    "box.x.evil",
    "box.xy",
    "box.x.",
    ".box.x",
    "box",
    "x",
    "boxxx",
    "",
    "evillocalhost",
    "a.localhost",
    "localhost.evil",
    "localhos",
    "127.0.0.10",
    "127.0.0.2",
    "1127.0.0.1",
    "127.0.0.1.evil",
    "[::11]",
    "[::1",
    "[::1]evil.x",
]


@pytest.mark.parametrize("suffix", ["", ":80"])
def test_a_name_that_resembles_an_allowed_one_is_refused(suffix):
    for name in ("box.x", "BOX.x", "localhost", "127.0.0.1", "[::1]"):
        assert ask("/", host=name + suffix)[0] == 200, name
    admitted = [name for name in RESEMBLING_NAMES if ask("/", host=name + suffix)[0] != 403]
    assert admitted == []


def test_a_page_whose_name_resembles_an_allowed_one_is_refused():
    assert ask(x_smdebug_token=TOKEN, origin="https://box.x")[0] == 200
    admitted = [
        name for name in RESEMBLING_NAMES if ask(x_smdebug_token=TOKEN, origin=f"https://{name}")[0] != 403
    ]
    assert admitted == []


def test_behind_a_hub_a_foreign_name_gets_data_for_the_token_in_the_header_alone():
    foreign = {"host": "hub.example", "any_host": True}
    assert ask(x_smdebug_token=TOKEN, **foreign)[0] == 200
    assert ask("/", **foreign)[0] == 200
    assert ask(cookie=f"{COOKIE}={TOKEN}", **foreign)[0] == 403
    assert [wrong for wrong in WRONG_TOKENS if ask(x_smdebug_token=wrong, **foreign)[0] != 403] == []
    assert ask("/", method="POST", **foreign)[0] == 403
    assert ask(x_smdebug_token=TOKEN, host="hub.example")[0] == 403


def body(*pieces, chunk=None):
    """Return what a request with a body of these pieces holds."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        return next(waiting)

    return asyncio.run(body_of(Request({"type": "http", "method": "POST", "headers": []}, receive)))


def json_of(length):
    return json.dumps({"a": "x" * (length - len('{"a": ""}'))}).encode()


def test_a_body_of_a_mebibyte_is_read_and_a_longer_one_is_not():
    most = 1 << 20
    assert len(body(json_of(most))["a"]) == most - 9
    whole = json_of(most + 1)
    for pieces in (
        [whole],
        [whole[:most], whole[most:]],
        [whole[at : at + 999] for at in range(0, most, 999)],
    ):
        with pytest.raises(SMDebugValueError, match="more than 1,048,576 bytes"):
            body(*pieces)


def test_an_endless_body_is_refused_before_its_end():
    sent = 0

    async def receive():
        nonlocal sent
        sent += 1
        assert sent < 10
        return {"type": "http.request", "body": b" " * (1 << 19), "more_body": True}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(SMDebugValueError, match="more than"):
        asyncio.run(body_of(request))
    assert sent == 3


@pytest.mark.parametrize(
    ("sent", "holds"),
    [(b"", {}), (b'{"a": 1}', {"a": 1}), (b"[]", None), (b"{", None), (b"[" * 100_000, None)],
)
def test_a_body_is_an_object_or_refused(sent, holds):
    if holds is not None:
        assert body(sent) == holds
        return
    with pytest.raises(SMDebugValueError, match="JSON"):
        body(sent)


def query(text):
    return Request({"type": "http", "method": "GET", "headers": [], "query_string": text.encode()})


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 2000),
        ("points=", 2000),
        ("points=0", 2000),
        ("points=1", 1),
        (f"points={MOST_POINTS}", MOST_POINTS),
        (f"points={MOST_POINTS + 1}", MOST_POINTS),
        (f"points={(1 << 62) - 1}", MOST_POINTS),
    ],
)
def test_no_more_points_are_drawn_than_a_screen_could_show(text, count):
    assert points(query(text)) == count


@pytest.mark.parametrize("text", ["-1", str(1 << 62), "1.5", "x", "9" * 5000])
def test_a_number_beyond_its_limits_is_refused(text):
    with pytest.raises(SMDebugValueError, match="step must be a whole number of at least 0"):
        whole_number(query(f"step={text}"), "step")
