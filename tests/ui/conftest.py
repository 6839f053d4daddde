"""A server on a folder of runs, and requests to it."""

from __future__ import annotations

import http.client
import json

import pytest

from smdebug.ui.watching.cache import Cache
from smdebug.ui.web.serving import UiServer
from tests.reports.browser import Tab
from tests.ui.browsing import LOADED, until


class Client:
    """Requests to a server, with the token unless a test gives other headers."""

    def __init__(self, server: UiServer):
        self.server = server

    def ask(self, path, *, method="GET", body=None, headers=None):
        """Return the status, the headers and the body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        given = {"x-smdebug-token": self.server.token} if headers is None else headers
        data = None if body is None else json.dumps(body)
        if body is not None and headers is None:
            given = {**given, "x-smdebug": "1"}
        connection.request(method, path, body=data, headers=given)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def get(self, path):
        status, _, content = self.ask(path)
        assert status == 200, content
        return json.loads(content)

    def post(self, path, body):
        status, _, content = self.ask(path, method="POST", body=body)
        return status, json.loads(content)

    def run(self, name=None):
        """Return the id of a run, after all of it was read and checked."""
        runs = self.get("/api/runs")["runs"]
        row = next(row for row in runs if name in (None, row["name"]))
        reader = self.server.board.reader(row["id"])
        while reader.advance(1.0):
            pass
        return row["id"]


@pytest.fixture
def serve():
    """Start servers that end with the test."""
    servers = []

    def started(*paths, find=True, **options):
        options = {"cache": Cache(None), "background": False, "token": "t" * 24, **options}
        server = UiServer([str(path) for path in paths], **options)
        servers.append(server)
        server.start()
        if find:
            server.board.find_runs(patience=0)
        return Client(server)

    yield started
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def chromium():
    """The browser of a module's tests."""
    with Tab("about:blank", ready="true") as tab:
        yield tab


@pytest.fixture
def page(serve, chromium, tmp_path):
    """Open the page on the runs of a folder, at an address behind `#`, with a profile of its own."""

    def opened(
        hash="#/",
        ready="document.querySelector('tbody tr td a') !== null",
        *,
        width=1250,
        height=1200,
        dark=False,
        **options,
    ):
        client = serve(tmp_path, **options)
        tab = chromium
        tab.rows = {row["name"]: row["id"] for row in client.get("/api/runs")["runs"]}
        tab.client = client
        tab.restart = lambda port: serve(tmp_path, port=port)
        tab.look = {"width": width, "height": height, "dark": dark}
        tab.renew(f"{client.server.address}{hash.format(**tab.rows)}", **tab.look)
        until(tab, LOADED)
        until(tab, ready)
        return tab

    return opened
