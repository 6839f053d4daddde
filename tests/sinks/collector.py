"""A small collector: it keeps what is posted to it, and answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Collector:
    """What arrived: the path, the headers and the body of each request."""

    def __init__(self) -> None:
        self.address = ""
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    def bodies(self, path: str) -> list[bytes]:
        return [body for at, _, body in self.requests if at == path]


@contextmanager
def collector(
    status: int = 200,
    answer: bytes = b"{}",
    release: threading.Event | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Collector]:
    """Listen on a free port of this machine; with `release`, answer nothing before it is set."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.requests.append(
                (self.path, {name.lower(): text for name, text in self.headers.items()}, body)
            )
            if release is not None:
                release.wait(60)
                return
            self.send_response(status)
            for name, text in (headers or {}).items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST  # noqa: N815 - where a redirection would lead

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        if release is not None:
            release.set()
        server.shutdown()
        thread.join()
        server.server_close()
