"""A small API server of Kubernetes with the jobs of one namespace, in pages, and one token."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

JOBS = "/apis/batch/v1/namespaces/ml/jobs"


class FakeKubernetes:
    """The jobs by name; `allowed` are the verbs that the caller's role has."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.allowed = {"GET", "PATCH"}
        self.page = 2
        self.url = ""

    def add(self, name: str, *, status: Any = None, annotations: Any = None, **container: Any) -> None:
        self.jobs[name] = {
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"suspend": False, "template": {"spec": {"containers": [container]}}},
            "status": status or {},
        }

    def answer(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, Any]:
        address = urlsplit(path)
        if method not in self.allowed:
            return 403, {"reason": "Forbidden"}
        if method == "GET" and address.path == JOBS:
            first = int(parse_qs(address.query).get("continue", ["0"])[0])
            names = list(self.jobs)[first:]
            more = {"continue": str(first + self.page)} if len(names) > self.page else {}
            return 200, {"items": [self.jobs[name] for name in names[: self.page]], "metadata": more}
        job = self.jobs.get(address.path.removeprefix(f"{JOBS}/"))
        if method != "PATCH" or job is None:
            return 404, {"reason": "NotFound"}
        if content_type != "application/merge-patch+json":
            return 415, {"reason": "UnsupportedMediaType"}
        change = json.loads(body)
        for part, values in change.items():
            for key, value in values.items():
                job[part][key] = {**job[part].get(key, {}), **value} if isinstance(value, dict) else value
        return 200, job


@contextmanager
def served() -> Iterator[FakeKubernetes]:
    """Answer at `url` until the end of the block."""
    cluster = FakeKubernetes()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, content = cluster.answer(
                self.command, self.path, body, self.headers.get("Content-Type", "")
            )
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        do_GET = do_PATCH = do_DELETE = _answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
