"""Lambda's Runtime API, through which a handler's process gets events and returns results."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RuntimeApi:
    """The API of one environment: `next` waits for an event, `response` returns the result."""

    def __init__(self, arn: str) -> None:
        self.arn = arn
        self.started = threading.Event()
        self.results: queue.Queue[tuple[bytes, str | None]] = queue.Queue()
        self.events: queue.Queue[tuple[str, bytes, float] | None] = queue.Queue()
        api = self

        class BoundRequests(_Requests):
            _api = api

        self._server = _Server(("127.0.0.1", 0), BoundRequests)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def send(self, request: str, event: bytes, deadline: float) -> None:
        self.events.put((request, event, deadline))

    def close(self) -> None:
        self.events.put(None)
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Ignore the error: a killed process leaves its long poll open."""


class _Requests(BaseHTTPRequestHandler):
    _api: RuntimeApi
    protocol_version = "HTTP/1.1"
    # One write per response: a second small packet would wait 40 ms for an acknowledgment.
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        self._api.started.set()
        item = self._api.events.get()
        if item is None:
            self.close_connection = True
            return
        request, event, deadline = item
        self._reply(
            200,
            event,
            {
                "Lambda-Runtime-Aws-Request-Id": request,
                "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": self._api.arn,
                "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
            },
        )

    def do_POST(self) -> None:
        body = self._body()
        if self.path.endswith("/response"):
            self._api.results.put((body, None))
        else:  # an error of the handler, or of its initialization
            kind = self.headers.get("Lambda-Runtime-Function-Error-Type", "")
            with contextlib.suppress(ValueError):
                kind = json.loads(body).get("errorType") or kind
            self._api.results.put((body, kind or "Unknown"))
            self._api.started.set()
        self._reply(202, b"{}", {})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


def error_payload(kind: str, message: str, trace: list[str] | None = None) -> bytes:
    """An error as Lambda's client reports it."""
    error: dict[str, Any] = {"errorType": kind, "errorMessage": message}
    return json.dumps({**error, "stackTrace": trace} if trace else error).encode()
