"""A headless Chromium: a page as it renders it, and its complaints."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Without any network: no updates, no name resolution but that of a hub on this machine.
_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP hub.example.org 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--hide-scrollbars",
)
# The browser reads from file descriptor 3 and writes to 4.
_WITH_PIPES = """
import fcntl, os, sys
ours = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(ours[0], 3)
os.dup2(ours[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


_CODES = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "/": 191,
    "?": 191,
    "+": 187,
    "-": 189,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
_COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")

# Measures the texts and touch targets of a page: sizes and contrasts.
PROBE = Path(__file__).with_name("probe.js").read_text(encoding="utf-8")


class Page(NamedTuple):
    """A page after its scripts have run."""

    html: str
    complaints: list[str]


def browser() -> str:
    """The path of Chromium; `.ci/run` installs it, and `make test` skips these tests without it."""
    named = os.environ.get("SMDEBUG_BROWSER")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, "These tests need Chromium: install Debian's chromium, or name another in SMDEBUG_BROWSER"
    return found


def visit(file: Path, *options: str, width: int = 1250, height: int = 1200) -> Page:
    """Open the page, draw everything, and return the resulting HTML."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [
                browser(),
                *_QUIET,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                "--virtual-time-budget=10000",
                "--enable-logging=stderr",
                *options,
                "--dump-dom",
                f"{file.as_uri()}#all",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    complaints = [line for line in done.stderr.splitlines() if re.search(r"CONSOLE", line)]
    return Page(done.stdout, complaints)


class Tab:
    """A page in a browser, controlled over the DevTools protocol.

    The browser is controlled through two pipes, with the protocol of its developer tools.
    """

    def __init__(
        self,
        file: Path | str,
        *,
        width: int = 1250,
        height: int = 1200,
        dark: bool = False,
        ready: str = "document.documentElement?.dataset.ready === 'yes'",
    ):
        self._ready = ready
        self._file, self._width, self._height, self._dark = file, width, height, dark
        self._asked = 0
        self._session: str | None = None
        self.complaints: list[str] = []

    def __enter__(self) -> Tab:
        with ExitStack() as stack:
            profile = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            theirs_in, ours_out = os.pipe()
            ours_in, theirs_out = os.pipe()
            self._out = stack.enter_context(os.fdopen(ours_out, "wb", buffering=0))
            self._in = stack.enter_context(os.fdopen(ours_in, "rb"))
            words = [*_QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-S",
                    "-c",
                    _WITH_PIPES,
                    str(theirs_in),
                    str(theirs_out),
                    browser(),
                    *words,
                    "about:blank",
                ],
                pass_fds=(theirs_in, theirs_out),
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            stack.callback(self._process.wait)
            stack.callback(self._process.kill)
            os.close(theirs_in)
            os.close(theirs_out)
            self._begin()
            self._stack = stack.pop_all()
        return self

    def renew(self, address: str, *, width: int = 1250, height: int = 1200, dark: bool = False) -> None:
        """Show another page in the same browser, with neither the cookies nor the storage of the last."""
        self._session = None
        self.ask("Target.disposeBrowserContext", browserContextId=self._context)
        self._file, self._width, self._height, self._dark = address, width, height, dark
        self.complaints = []
        self._begin()

    def _begin(self) -> None:
        """Open the page in a new profile."""
        self._context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=self._context)
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Page.enable")
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=self._width,
            height=self._height,
            deviceScaleFactor=1,
            mobile=self._width < 500,
        )
        self.media("screen")
        url = self._file if isinstance(self._file, str) else f"{self._file.as_uri()}#all"
        self.ask("Log.enable")
        self.ask("Page.navigate", url=url)
        while not self.value(self._ready):
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def media(self, kind: str) -> None:
        """As on a screen or in print."""
        theme = {"name": "prefers-color-scheme", "value": "dark" if self._dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=kind, features=[theme])

    def value(self, script: str) -> Any:
        """Return the value of an expression of JavaScript, as plain data."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key of the keyboard: a letter, or one that is named."""
        code = _CODES.get(key) or ord(key.upper())
        text = {"text": "\r" if key == "Enter" else key} if key == "Enter" or len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=8 * shift,
                **(text if kind == "keyDown" else {}),
            )

    def picture(self, *, whole: bool = False) -> bytes:
        """A PNG of what is seen, or of the whole page."""
        answer = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def paper(self) -> bytes:
        """A PDF of the page."""
        self.media("")  # that of paper
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        message: dict[str, Any] = {"id": self._asked, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._asked:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            if answer.get("method") in _COMPLAINTS and answer.get("sessionId") == self._session:
                self.complaints.append(json.dumps(answer["params"]))

    def _read(self) -> dict[str, Any]:
        received = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "the browser has ended"
            received += byte
        found: dict[str, Any] = json.loads(received)
        return found
