"""What was logged to be looked at, as the server gives it: these files alone, as what they are."""

from __future__ import annotations

import json

import pytest

import smdebug
from tests.ui.logged_runs import HOSTILE, keep_logged, log_values
from tests.ui.written_runs import WrittenRun


@pytest.fixture
def client(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(3, end=True)
    log_values(tmp_path / "a")
    return serve(tmp_path)


def test_each_value_is_served_as_what_it_is_and_cannot_be_taken_for_a_page(client):
    run = client.run()
    listed = client.get(f"/api/run/{run}/logged")["values"]
    assert [(each["number"], each["kind"], each["step"]) for each in listed[:3]] == [
        (0, "text", 0),
        (1, "image", 0),
        (2, "audio", 0),
    ]
    media = {"text": "value", "image": "image", "audio": "sound"}
    types = {"text": "application/json", "image": "image/png", "audio": "audio/wav"}
    for each in listed[:3]:
        path = f"/api/run/{run}/logged/{media[each['kind']]}?worker=worker_0&number={each['number']}"
        status, headers, content = client.ask(path)
        assert status == 200
        assert headers["content-type"] == types[each["kind"]]
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert content


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("value?worker=worker_0&number=1", 404),  # an image is no text
        ("image?worker=worker_0&number=0", 404),
        ("image?worker=worker_0&number=99", 404),
        ("image?worker=worker_0", 404),
        ("image?worker=../worker_0&number=1", 404),
        ("image?worker=worker_0/../../..&number=1", 404),
        ("image?worker=&number=1", 404),
        ("image?worker=worker_0&number=-1", 400),
        ("image?worker=worker_0&number=1.png", 400),
        ("../logged/catalogs/worker_0.value", 404),
        ("value/../../../a/collections", 404),
    ],
)
def test_nothing_else_is_served(client, query, status):
    assert client.ask(f"/api/run/{client.run()}/logged/{query}")[0] == status


def test_what_cannot_be_seen_is_escaped_wherever_it_stands_in_a_value(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(1, end=True)
    table = smdebug.Table([{"name": "a\x1b[31m", "share": 0.25}])
    keep_logged(tmp_path / "a", {"rows": table}, step=0)
    client = serve(tmp_path)
    path = f"/api/run/{client.run()}/logged/value?worker=worker_0&number=0"
    shown = json.dumps(client.get(path))
    assert "a\\\\x1b[31m" in shown
    assert "0.25" in shown


def test_without_the_token_nothing_is_served(client):
    path = f"/api/run/{client.run()}/logged/image?worker=worker_0&number=1"
    assert client.ask(path, headers={})[0] == 403


@pytest.mark.parametrize("data", [b"<html><script>alert(1)</script>", b"", b"\x89PNG" + bytes(5 << 20)])
def test_a_file_that_is_not_what_its_kind_says_is_not_served(client, tmp_path, data):
    run = client.run()
    (tmp_path / "a/logged/values/worker_0/000001.png").write_bytes(data)
    status, headers, content = client.ask(f"/api/run/{run}/logged/image?worker=worker_0&number=1")
    assert (status, headers["content-type"]) == (409, "application/json")
    assert b"alert" not in content
    (tmp_path / "a/logged/values/worker_0/000000.value").write_bytes(data)
    assert client.ask(f"/api/run/{run}/logged/value?worker=worker_0&number=0")[0] == 409


def test_a_damaged_catalog_is_said(client, tmp_path):
    (tmp_path / "a/logged/catalogs/worker_0.value").write_bytes(b"{")
    answer = client.get(f"/api/run/{client.run()}/logged")
    assert answer["values"] == []
    assert "worker_0.value" in answer["problem"]


def test_a_report_holds_the_values_and_nothing_that_runs(client):
    _, _, page = client.ask(f"/api/run/{client.run()}/report.html")
    assert b"media-src data:" in page
    assert HOSTILE.encode() not in page
    assert page.count(b"<script") == 2
