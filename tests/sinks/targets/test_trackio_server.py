"""A server of trackio is asked whether it takes a run, before trackio is."""

from __future__ import annotations

import threading

import pytest

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.sinks import requests
from smdebug.sinks.targets.trackio_server import check_server
from tests.sinks.collector import collector

TAKES = b'{"data": {"spaces": false, "allowed": true, "auth": "local"}}'
REFUSES = b'{"data": {"spaces": false, "allowed": false, "auth": "none"}}'


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    import os

    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TRACKIO_WRITE_TOKEN", "of the environment")


@pytest.mark.parametrize(
    ("query", "token"), [("", "of the environment"), ("/?write_token=of+the+address", "of the address")]
)
def test_the_token_of_the_address_comes_before_that_of_the_environment(query, token):
    with collector(answer=TAKES) as found:
        check_server(f"{found.address}{query}")
    ((path, headers, _),) = found.requests
    assert (path, headers["x-trackio-write-token"]) == ("/api/get_run_mutation_status", token)


def test_no_token_is_said_without_asking(monkeypatch):
    monkeypatch.delenv("TRACKIO_WRITE_TOKEN")
    with (
        collector(answer=TAKES) as found,
        pytest.raises(SinkRefused, match="the server needs a token: set TRACKIO_WRITE_TOKEN"),
    ):
        check_server(found.address)
    assert found.requests == []


@pytest.mark.parametrize(
    ("status", "answer", "error", "text"),
    [
        (200, REFUSES, SinkRefused, "refuses the credentials: set TRACKIO_WRITE_TOKEN"),
        (401, b"no", SinkRefused, r"refuses the credentials \(401\): set TRACKIO_WRITE_TOKEN"),
        (403, b"no", SinkRefused, r"refuses the credentials \(403\)"),
        (404, b"no", SinkRefused, "no server of trackio, or one that is too old: upgrade it to 0.43"),
        (200, b"<html>", SinkRefused, "no server of trackio"),
        (200, b"[]", SinkRefused, "no server of trackio"),
        (200, b'{"data": null}', SinkRefused, "no server of trackio"),
        (429, b"", SinkUnavailable, "status 429"),
        (502, b"", SinkUnavailable, "status 502"),
    ],
)
def test_what_a_server_answers_decides_who_has_to_act(status, answer, error, text):
    with collector(status, answer) as found, pytest.raises(error, match=text):
        check_server(found.address)


def test_a_server_that_is_down_or_hangs_is_unavailable(monkeypatch):
    with collector() as found:
        pass
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        check_server(found.address)
    monkeypatch.setattr(requests, "SECONDS", 0.05)
    with collector(release=threading.Event()) as found, pytest.raises(SinkUnavailable, match="too slowly"):
        check_server(found.address)


def test_the_token_follows_no_redirection_and_is_not_said():
    with (
        collector(answer=TAKES) as other,
        collector(302, headers={"Location": other.address}) as found,
        pytest.raises(SinkRefused, match="no server of trackio") as raised,
    ):
        check_server(f"{found.address}?write_token=hunter2hunter2")
    assert other.requests == []
    assert "hunter2" not in str(raised.value)


def test_an_address_without_http_is_refused():
    with pytest.raises(SinkRefused, match="begins with http"):
        check_server("host:7860")
