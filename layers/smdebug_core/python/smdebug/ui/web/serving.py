"""Starting the server: a free port, a token, threads that read and check, and the browser."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import uvicorn

from smdebug.exceptions import SMDebugError, SMDebugRuntimeError
from smdebug.logger import get_logger
from smdebug.service.client import Debugger
from smdebug.service.records import RequestedRule
from smdebug.ui.finding.glance import Glance
from smdebug.ui.watching.audience import Audience
from smdebug.ui.watching.board import Board
from smdebug.ui.watching.cache import Cache, default_folder
from smdebug.ui.watching.judging import Judge
from smdebug.ui.web.server import application

LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
_IDLE = 1.0  # seconds
_SERVING = "smdebug-ui"
_NOTEBOOKS = "'self' http://localhost:* http://127.0.0.1:* https://localhost:*"


class UiServer:
    """A server of pages on some runs. `start` returns once it accepts connections."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        rules: Sequence[RequestedRule] | None = None,
        rule_file: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        allowed_hosts: Sequence[str] = (),
        cache: Cache | None = None,
        debugger: Debugger | None = None,
        background: bool = True,
        in_notebook: bool = False,
        behind_hub: bool = False,
        token: str | None = None,
    ):
        self.token = token or secrets.token_urlsafe(24)
        self._cache = cache if cache is not None else Cache(default_folder())
        self.board = Board(paths, rules, rule_file, cache=self._cache, debugger=debugger)
        self.audience = Audience()
        self._socket = _listening(host, port)
        self._host = host
        self.port = int(self._socket.getsockname()[1])
        app = application(
            self.board,
            self.audience,
            self.token,
            {*LOCAL_NAMES, host, *allowed_hosts},
            cookie=f"smdebug-ui-{self.port}",
            frame_ancestors=_NOTEBOOKS if in_notebook else "'none'",
            any_host=behind_hub,
        )
        self._server = _ClosingServer(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._judge = Judge(self._cache, rules) if background else None
        self.board.checks.is_on = background
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{self._shown_host}:{self.port}/?token={self.token}"

    @property
    def _shown_host(self) -> str:
        if self._host in ("0.0.0.0", "::"):  # noqa: S104 - the user asked for every interface
            return "localhost"
        return f"[{self._host}]" if ":" in self._host else self._host

    def start(self) -> None:
        """Accept connections, and read what pages show, in threads that end with the process."""
        works: list[tuple[str, Callable[[], Any]]] = [
            (_SERVING, self._serve),
            ("smdebug-ui-reading", self._read),
        ]
        if self._judge is not None:
            works.append(("smdebug-ui-checking", self._check))
        for name, work in works:
            thread = threading.Thread(target=work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def wait(self) -> None:
        """Wait until the server was stopped."""
        while any(thread.is_alive() for thread in self._threads):
            for thread in self._threads:
                thread.join(0.5)

    def stop(self) -> None:
        """End the server and what it reads. Requests that still wait for storage are given up."""
        self._stopping.set()
        self.audience.is_over = True
        self._server.should_exit = True
        self.audience.has_come.set()
        if self._judge is not None:
            self._judge.stop()
        for thread in self._threads:
            thread.join(10 if thread.name == _SERVING else 1)
        self._socket.close()  # it is open still if the server was never started

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _read(self) -> None:
        self._cache.trim()
        with suppress(Exception):  # logged when a page asks for them
            self.board.find_runs(local_only=True)
        while not self._stopping.is_set():
            if self.audience.is_empty:
                self.audience.has_come.clear()
                if self.audience.is_empty:  # no page was opened meanwhile
                    self.audience.has_come.wait(_IDLE)
                continue
            shown = self.audience.runs
            try:
                pause = self.board.work(shown, list_is_open=self.audience.has_list)
            except Exception:  # noqa: BLE001 - one run that surprises must not end the others
                get_logger().exception("smdebug ui could not read a run")
                pause = 1.0
            if pause:
                self.audience.has_come.clear()
                self.audience.has_come.wait(min(pause, 0.5))

    def _check(self) -> None:
        """Work out verdicts while a page is open, one run at a time."""
        assert self._judge is not None
        while not self._stopping.wait(_IDLE / 4):
            row = None if self.audience.is_empty else self.board.next_check()
            if row is None:
                continue
            try:
                found: Glance | SMDebugError = self._judge.judge(row.path)
            except SMDebugError as error:
                found = error
            except Exception as error:  # noqa: BLE001 - one run that surprises must not end the others
                found = SMDebugRuntimeError(str(error))
            self.board.end_check(row, found)


class _ClosingServer(uvicorn.Server):
    """A server that closes every connection when it ends.

    A connection that comes while the others are asked to end is asked by nobody, and would stay open.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # they are closed by the loop


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # from now on browsers wait, instead of being refused
    except OSError as error:
        listening.close()
        raise SMDebugRuntimeError(
            f"Port {port} of {host} cannot be used: {error.strerror or error}. "
            "Leave out --port to use a free one."
        ) from error
    return listening
