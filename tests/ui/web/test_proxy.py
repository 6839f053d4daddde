"""The page behind a hub of notebooks: under a prefix, a foreign name, and its own origin."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path

import pytest

import smdebug.ui
from smdebug.ui.web.access import prefix_in
from smdebug.ui.web.inline import hub_prefix, show
from tests.ui.proxying import Proxy
from tests.ui.written_runs import WrittenRun

PREFIX = "/user/ada/proxy/{port}"
HUB = "hub.example.org"
PAGE = Path(smdebug.ui.__file__).parent / "page"


@pytest.fixture
def hub(serve, tmp_path):
    """A request through the proxy to a server on a run, as the page makes them."""
    WrittenRun(tmp_path / "a", loss=float).write(6)
    client = serve(tmp_path, in_notebook=True, behind_hub=True)
    prefix = PREFIX.format(port=client.server.port)
    proxy = Proxy(client.server.port, prefix)

    def ask(path, *, method="GET", body=None, headers=None, stream=False):
        connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)
        token = {"x-smdebug-token": client.server.token, "x-smdebug": "1", "host": HUB}
        target = prefix + path
        if stream:
            token["accept"] = "text/event-stream"
        data = None if body is None else json.dumps(body)
        connection.request(method, target, body=data, headers=token if headers is None else headers)
        answer = connection.getresponse()
        if stream:
            line = answer.readline()
            connection.close()
            return answer.status, line
        return answer.status, dict(answer.getheaders()), answer.read()

    ask.client = client
    yield ask
    proxy.stop()


def test_the_page_its_data_its_events_and_its_downloads_come_through(hub):
    run_id = hub.client.run()
    status, _, page = hub("/")
    assert status == 200
    for asset in re.findall(rb'(?:src|href)="([^"#]+)"', page):
        assert not asset.startswith((b"/", b"http"))  # relative to the prefix
        assert hub(f"/{asset.decode()}")[0] == 200
    assert json.loads(hub("/api/runs")[2])["runs"][0]["id"] == run_id
    status, line = hub(f"/api/events?runs={run_id}", stream=True)
    assert (status, line[:6]) == (200, b"data: ")
    status, headers, content = hub(f"/api/run/{run_id}/export.csv?name=loss")
    assert status == 200
    assert headers["content-disposition"].startswith("attachment")
    assert content.decode().split()[-1] == "5,5.0"


def test_an_action_with_the_origin_of_the_hub_is_allowed_with_the_token_alone(hub):
    run_id = hub.client.run()
    path = f"/api/run/{run_id}/stop"
    page = {"host": HUB, "origin": f"https://{HUB}", "x-smdebug": "1"}
    token = hub.client.server.token
    assert hub(path, method="POST", body={}, headers=page)[0] == 403
    cookie = {**page, "cookie": f"smdebug-ui-{hub.client.server.port}={token}"}
    other = {**cookie, "origin": "https://evil.example"}
    assert hub(path, method="POST", body={}, headers=other)[0] == 403  # a cookie is sent by any page
    assert hub(path, method="POST", body={}, headers={**page, "x-smdebug-token": token})[0] == 200


def test_the_cookie_is_for_the_prefix_alone(hub):
    token = hub.client.server.token
    status, headers, _ = hub(f"/?token={token}", headers={"host": HUB})
    assert (status, headers["location"]) == (303, "./")
    port = hub.client.server.port
    assert f"Path={PREFIX.format(port=port)}/" in headers["set-cookie"]


def test_the_absolute_form_of_the_proxy_passes_its_path_on(serve, tmp_path):
    WrittenRun(tmp_path / "a").write(2, end=True)
    client = serve(tmp_path)
    prefix = f"/user/ada/proxy/absolute/{client.server.port}"
    status, headers, _ = client.ask(f"{prefix}?token=x&frame=1")
    assert (status, headers["location"]) == (307, f"{prefix}/?token=x&frame=1")
    status, headers, _ = client.ask(f"{prefix}/?token={client.server.token}")
    assert (status, headers["location"]) == (303, "./")
    assert f"Path={prefix}/;" in headers["set-cookie"]
    assert client.ask(f"{prefix}/page/app.js")[0] == 200
    assert client.ask(f"{prefix}/api/runs")[0] == 200
    # The checks hold below it as well.
    assert client.ask(f"{prefix}/api/runs", headers={})[0] == 403
    assert client.ask(f"{prefix}/page/../../server.py")[0] == 404
    assert client.ask("/proxy/absolute/1/proxy/absolute/2/api/runs", headers={})[0] in (403, 404)


def test_a_forged_prefix_is_not_taken_over():
    for given in ("/x; Domain=evil.example", "x", "", "/a\nb", "/" + "x" * 600, "/ä"):
        assert prefix_in({"x-forwarded-prefix": given}) == "/"
    assert prefix_in({"x-forwarded-prefix": "/user/a@b"}) == "/user/a@b/"


def test_elsewhere_a_foreign_name_needs_the_option(serve, tmp_path):
    client = serve(tmp_path, allowed_hosts=[HUB])
    token = {"x-smdebug-token": client.server.token}
    assert client.ask("/api/runs", headers={**token, "host": HUB})[0] == 200
    assert client.ask("/api/runs", headers={**token, "host": "other.example"})[0] == 403
    origin = {**token, "host": HUB, "origin": f"https://{HUB}"}
    assert client.ask("/api/runs", headers=origin)[0] == 200


def test_the_prefix_is_that_of_the_hub_or_of_the_notebook_server(tmp_path):
    assert hub_prefix({"JUPYTERHUB_SERVICE_PREFIX": "/user/ada/"}) == "/user/ada/"
    assert hub_prefix({}) == ""
    environ = {"JPY_PARENT_PID": "17", "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    assert hub_prefix(environ) == ""
    for base, expected in (("/jupyterlab/default/", "/jupyterlab/default/"), ("/", "")):
        (tmp_path / "jpserver-17.json").write_text(json.dumps({"base_url": base}))
        assert hub_prefix(environ) == expected
    (tmp_path / "jpserver-17.json").write_text("[]")
    assert hub_prefix(environ) == ""


def test_the_file_of_the_notebook_server_is_looked_for_below_its_data(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for data in (tmp_path / "home" / ".local" / "share" / "jupyter", tmp_path / "data"):
        (data / "runtime").mkdir(parents=True)
        (data / "runtime" / "jpserver-17.json").write_text(json.dumps({"base_url": f"/{data.name}/"}))
    assert hub_prefix({"JPY_PARENT_PID": "17"}) == "/jupyter/"
    assert hub_prefix({"JPY_PARENT_PID": "17", "JUPYTER_DATA_DIR": str(tmp_path / "data")}) == "/data/"


@pytest.mark.parametrize("prefix", ["/user/ada/", "/jupyterlab/default/", ""])
def test_a_notebook_frames_the_address_that_its_browser_reaches(tmp_path, monkeypatch, prefix):
    monkeypatch.setenv("SMDEBUG_UI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", prefix)
    WrittenRun(tmp_path / "a").write(2, end=True)
    shown = show([str(tmp_path / "a")])
    try:
        port, token = shown._server.port, shown._server.token
        source = re.search(r'src="([^"]+)"', shown._repr_html_())[1]
        query = f"?token={token}&amp;frame=1"
        if prefix:
            assert source == f"{prefix.rstrip('/')}/proxy/{port}/{query}"
        else:
            assert source == f"http://127.0.0.1:{port}/{query}"
    finally:
        shown.stop()
