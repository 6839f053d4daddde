"""A reverse proxy of a hub of notebooks, and a page of the hub that frames what is behind it."""

from __future__ import annotations

import http.client
import http.server
import threading


class Proxy:
    """Passes requests below a prefix on, as jupyter-server-proxy does.

    An answer is passed on as it comes if the request accepts a stream of events alone, else at its end.
    Below `proxy/absolute/PORT` the whole path is passed on, else what follows the prefix.
    """

    def __init__(self, port: int, prefix: str, *, framed: str = ""):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Passing)
        self._server.daemon_threads = True
        self._server.behind, self._server.prefix = port, prefix
        self._server.strips = "/absolute/" not in prefix
        self._server.framed = framed
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where the hub listens."""
        return self._server.server_port

    def stop(self) -> None:
        """End the hub."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


class _Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        prefix = self.server.prefix
        if self.path == "/lab" and self.server.framed:
            self._show(f"<!doctype html><link rel=icon href=data:,>{self.server.framed}".encode())
            return
        if not self.path.startswith(f"{prefix}/"):
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        behind = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        headers, path = dict(self.headers), self.path
        if self.server.strips:
            headers |= {"X-Forwarded-Context": prefix, "X-ProxyContextPath": prefix}
            path = path.removeprefix(prefix)
        behind.request(self.command, path, body=body, headers=headers)
        answer = behind.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        is_stream = self.headers.get("accept") == "text/event-stream"
        while data := answer.read1(65536) if is_stream else answer.read():
            try:
                self.wfile.write(data)
                self.wfile.flush()
            except OSError:
                break
        behind.close()
        self.close_connection = True

    do_POST = do_GET  # noqa: N815

    def _show(self, page: bytes):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass
