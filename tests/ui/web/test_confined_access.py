"""Who gets an answer: by host, origin, site, token and method, one request each."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.datastructures import Headers

from smdebug.ui.web.access import Access, bearer_in, name_in, prefix_in, token_in

TOKEN = "t" * 24
HOSTS = ["localhost", "127.0.0.1", "My.Host"]
ABSOLUTE = "/user/a/proxy/absolute/8765"


def asked(
    path="/api/runs", *, method="GET", query="", host="localhost:80", any_host=False, kind="http", **headers
):
    """Ask once; return the status, the headers, the problem, and the scope that the page's server saw."""
    sent, seen = [], []

    async def app(scope, receive, send):
        seen.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def send(message):
        sent.append(message)

    given = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": kind,
        "path": path,
        "method": method,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value is not None],
    }
    asyncio.run(Access(app, TOKEN, HOSTS, any_host=any_host)(scope, None, send))
    if not sent:
        return None, {}, "", seen
    body = b"".join(message.get("body", b"") for message in sent)
    problem = json.loads(body)["error"] if sent[0]["status"] == 403 else ""
    return sent[0]["status"], dict(Headers(raw=sent[0]["headers"]).items()), problem, seen


KNOWN = {"x_smdebug_token": TOKEN}
ACTION = {**KNOWN, "method": "POST", "x_smdebug": "1"}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (KNOWN, ""),
        ({}, "token is missing or wrong"),
        ({"x_smdebug_token": "wrong"}, "token is missing or wrong"),
        ({"x_smdebug_token": TOKEN * 20}, "token is missing or wrong"),
        ({"authorization": f"Bearer {TOKEN}"}, ""),
        ({"authorization": f"bearer  {TOKEN} "}, ""),
        ({"authorization": f"Basic {TOKEN}"}, "token is missing or wrong"),
        ({"cookie": f"smdebug-ui={TOKEN}"}, ""),
        ({"cookie": f"other={TOKEN}"}, "token is missing or wrong"),
        ({"cookie": "smdebug-ui=wrong"}, "token is missing or wrong"),
        ({"cookie": f"smdebug-ui={TOKEN}", "x_smdebug_token": "wrong"}, "token is missing or wrong"),
        ({"path": "/"}, ""),
        ({"path": "/app.js"}, ""),
        ({"path": "/api"}, ""),
        ({**KNOWN, "host": "127.0.0.1"}, ""),
        ({**KNOWN, "host": "LOCALHOST:1"}, ""),
        ({**KNOWN, "host": "my.host"}, ""),
        ({**KNOWN, "host": "evil.example"}, "does not answer to the name 'evil.example'"),
        ({**KNOWN, "host": "localhost.evil.example"}, "does not answer to the name"),
        ({**KNOWN, "host": None}, "does not answer to the name ''"),
        ({"path": "/", "host": "evil.example"}, "does not answer to the name"),
        ({**KNOWN, "origin": "http://localhost:80"}, ""),
        ({**KNOWN, "origin": "http://localhost:81"}, "pages of another origin"),
        ({**KNOWN, "origin": "http://my.host:9"}, ""),
        ({**KNOWN, "origin": "https://evil.example"}, "pages of another origin"),
        ({**KNOWN, "origin": "null"}, "pages of another origin"),
        ({**KNOWN, "origin": ""}, "pages of another origin"),
        ({**KNOWN, "origin": "http://["}, "pages of another origin"),
        ({**KNOWN, "sec_fetch_site": "cross-site"}, ""),
        (
            {**KNOWN, "sec_fetch_site": "cross-site", "method": "POST", "x_smdebug": "1"},
            "pages of another site",
        ),
        ({**KNOWN, "sec_fetch_site": "same-origin", "method": "POST", "x_smdebug": "1"}, ""),
        ({**KNOWN, "method": "POST"}, "needs the header x-smdebug"),
        ({**KNOWN, "method": "DELETE"}, "needs the header x-smdebug"),
        ({**KNOWN, "method": "HEAD"}, ""),
        ({**KNOWN, "method": "POST", "x_smdebug": "1"}, ""),
        ({"authorization": f"Bearer {TOKEN}", "method": "POST"}, ""),
        ({"method": "POST", "x_smdebug": "1"}, "token is missing or wrong"),
    ],
)
def test_a_request_is_answered_or_refused_with_the_reason(request_, problem):
    status, _, said, seen = asked(**request_)
    assert problem in said
    assert (status, len(seen)) == ((403, 0) if problem else (200, 1))


@pytest.mark.parametrize(
    ("request_", "is_answered"),
    [
        ({**KNOWN, "host": "hub.example", "origin": "https://hub.example"}, True),
        ({**KNOWN, "host": "hub.example", "origin": "https://elsewhere.example"}, True),
        ({"cookie": f"smdebug-ui={TOKEN}", "host": "hub.example"}, False),
        ({"authorization": f"Bearer {TOKEN}", "host": "hub.example"}, False),
        ({"x_smdebug_token": "wrong", "host": "hub.example"}, False),
        ({"path": "/", "host": "hub.example"}, True),
        ({"path": "/", "host": "hub.example", "method": "POST"}, False),
        ({**KNOWN, "host": "hub.example", "method": "POST"}, False),
        ({**KNOWN, "host": "hub.example", "method": "POST", "x_smdebug": "1"}, True),
    ],
)
def test_behind_a_hub_the_token_in_the_header_stands_for_the_name(request_, is_answered):
    status, _, problem, _ = asked(**request_, any_host=True)
    assert status == (200 if is_answered else 403), problem
    assert asked(**request_)[0] == 403 or request_.get("method") == "GET"


def test_an_answer_is_confined_whatever_it_is():
    for headers in (asked(**KNOWN)[1], asked()[1]):
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["content-security-policy"].endswith("frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "query", "extra", "moved", "cookie_path"),
    [
        ("/", f"token={TOKEN}", {}, "./", "/"),
        ("/", f"a=1&token={TOKEN}", {"x_forwarded_prefix": "/hub/a"}, "./", "/hub/a/"),
        (f"{ABSOLUTE}/", f"token={TOKEN}", {}, "./", f"{ABSOLUTE}/"),
        ("/", f"token={TOKEN}&frame=1", {}, None, None),
        ("/", "token=wrong", {}, None, None),
        ("/app.js", f"token={TOKEN}", {}, None, None),
        ("/", "", {}, None, None),
    ],
)
def test_the_token_in_the_address_becomes_a_cookie_of_this_page_alone(path, query, extra, moved, cookie_path):
    status, headers, _, seen = asked(path, query=query, **extra)
    if moved is None:
        assert (status, len(seen)) == (200, 1)
        assert "set-cookie" not in headers
        return
    assert (status, headers["location"], seen) == (303, moved, [])
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"smdebug-ui={TOKEN};")
    assert {"HttpOnly", "SameSite=strict", f"Path={cookie_path}"} <= set(cookie.split("; "))
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("query", "where"), [("", "/"), ("a=1", "/?a=1")])
def test_an_address_without_its_last_slash_is_moved(query, where):
    status, headers, _, seen = asked(ABSOLUTE, query=query)
    assert (status, headers["location"], seen) == (307, f"{ABSOLUTE}{where}", [])


def test_the_part_of_a_proxy_is_taken_off_a_path():
    (scope,) = asked(f"{ABSOLUTE}/api/runs", **KNOWN)[3]
    assert (scope["path"], scope["raw_path"]) == ("/api/runs", b"/api/runs")
    assert asked(f"{ABSOLUTE}/api/runs")[0] == 403
    (scope,) = asked("/user/a/proxy/8765/x")[3]
    assert scope["path"] == "/user/a/proxy/8765/x"


def test_what_is_no_request_reaches_the_server_only_at_its_beginning_and_end():
    assert len(asked(kind="lifespan")[3]) == 1
    assert asked(kind="websocket") == (None, {}, "", [])


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("a", "a"),
        ("a:80", "a"),
        ("[::1]", "::1"),
        ("[::1]:80", "::1"),
        ("[::1]x", "[::1]x"),
        ("[::1", "[::1"),
        ("::1", "::1"),
        ("a:b:c", "a:b:c"),
        ("", ""),
    ],
)
def test_a_name_is_what_stands_before_the_port(host, name):
    assert name_in(host) == name


@pytest.mark.parametrize(
    ("headers", "prefix"),
    [
        ({}, "/"),
        ({"x-forwarded-prefix": "/a"}, "/a/"),
        ({"x-forwarded-prefix": "/a/"}, "/a/"),
        ({"x-forwarded-prefix": "no path", "x-proxycontextpath": "/b"}, "/b/"),
        ({"x-forwarded-context": "/c;x"}, "/"),
        ({"x-forwarded-prefix": "/" + "a" * 500}, "/" + "a" * 500 + "/"),
        ({"x-forwarded-prefix": "/" + "a" * 501}, "/"),
    ],
)
def test_a_proxy_names_its_path(headers, prefix):
    assert prefix_in(Headers(headers)) == prefix


def test_a_token_is_found_where_it_may_be():
    assert bearer_in(Headers({})) is None
    assert bearer_in(Headers({"authorization": "Bearer"})) == ""
    assert token_in(b"a=1&token=x&token=y") == "x"
    assert token_in(b"") == ""
