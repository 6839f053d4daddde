"""Requests that are refused: foreign names, foreign pages, missing tokens, and paths that were not given."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.requests import Request

from smdebug.ui.answering.requests import body_of
from smdebug.ui.web.routes import answered
from tests.ui.written_runs import WrittenRun


@pytest.fixture
def client(serve, tmp_path):
    WrittenRun(tmp_path / "runs" / "a").write(3, end=True)
    (tmp_path / "secret.txt").write_text("secret")
    return serve(tmp_path / "runs")


def test_data_needs_the_token(client):
    for headers in ({}, {"x-smdebug-token": "wrong"}, {"cookie": "smdebug-ui=wrong"}):
        status, _, content = client.ask("/api/runs", headers=headers)
        assert status == 403
        assert "token" in json.loads(content)["error"]


def test_the_printed_address_sets_a_cookie_that_scripts_and_other_sites_cannot_use(client):
    status, headers, _ = client.ask(f"/?token={client.server.token}", headers={})
    assert (status, headers["location"]) == (303, "./")  # relative, so a proxy may add a prefix
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.ask("/api/runs", headers={"cookie": cookie.split(";")[0]})[0] == 200
    assert "set-cookie" not in client.ask("/?token=wrong", headers={})[1]


def test_a_foreign_host_name_is_refused(client):
    token = {"x-smdebug-token": client.server.token}
    for host in ("evil.example", "127.0.0.1.evil.example:80", "", "[::2]:80"):
        status, _, content = client.ask("/api/runs", headers={**token, "host": host})
        assert status == 403, host
        assert "--allow-host" in json.loads(content)["error"]
    own = f"localhost:{client.server.port}"
    assert client.ask("/api/runs", headers={**token, "host": own})[0] == 200


def test_a_page_of_another_origin_is_refused(client):
    token = {"x-smdebug-token": client.server.token, "x-smdebug": "1"}
    own = f"http://127.0.0.1:{client.server.port}"
    malformed = ("http://[", "http://]", "http://[zz]/")
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", *malformed):
        status, _, content = client.ask("/api/runs", headers={**token, "origin": origin})
        assert status == 403, origin
        assert "another origin" in json.loads(content)["error"]
    assert client.ask("/api/runs", headers={**token, "origin": own})[0] == 200


def test_a_change_needs_a_header_that_no_form_can_send(client):
    run = client.get("/api/runs")["runs"][0]["id"]
    token = {"x-smdebug-token": client.server.token}
    path = f"/api/run/{run}/stop"
    assert client.ask(path, method="POST", body={}, headers=token)[0] == 403
    cross = {**token, "x-smdebug": "1", "sec-fetch-site": "cross-site"}
    assert client.ask(path, method="POST", body={}, headers=cross)[0] == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/"), ("DELETE", "/api/runs"), ("PUT", "/page/app.js"), ("GET", "/api/run/x/stop")],
)
def test_a_method_that_an_address_does_not_know_is_refused_in_words(client, method, path):
    headers = {"x-smdebug-token": client.server.token, "x-smdebug": "1"}
    status, answered_with, content = client.ask(path, method=method, headers=headers)
    assert status == 405
    assert answered_with["allow"]
    assert method in json.loads(content)["error"]


def test_a_request_whose_client_leaves_early_is_answered_like_a_wrong_one():
    messages = iter(
        [
            {"type": "http.request", "body": b'{"reason', "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive():
        return next(messages)

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    answer = asyncio.run(answered(body_of)(request))
    assert answer.status_code == 400
    assert "connection ended" in json.loads(answer.body)["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/page/../../../../secret.txt",
        "/page/%2e%2e/%2e%2e/serving.py",
        "/page//etc/passwd",
        "/api/run/..%2f..%2fsecret.txt",
        "/api/run/%2fetc",
        "/secret.txt",
    ],
)
def test_nothing_outside_of_the_given_places_is_read(client, path):
    status, _, content = client.ask(path)
    assert status in (404, 405)
    assert b"secret" not in content.replace(b"secret.txt", b"")


def test_the_page_is_confined(client):
    _, headers, content = client.ask("/", headers={})
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert b"<script>" not in content
    assert b"style=" not in content
    assert b'src="/' not in content  # addresses are relative


def test_every_address_is_described(client):
    document = client.get("/api/openapi.json")
    assert document["openapi"] == "3.1.0"
    assert "/api/run/{id}/matrix" in document["paths"]
    assert document["components"]["schemas"]["SeriesAnswer"]["properties"]["low"]["type"] == "array"
    assert all(
        operation["summary"].endswith((".", ":", "}.", "}"))
        for path in document["paths"].values()
        for operation in path.values()
    )
