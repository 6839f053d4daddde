"""Opening the page in a browser, or saying how to reach it from a machine that has one."""

from __future__ import annotations

import getpass
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Mapping

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def has_browser(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Return whether a browser with a window can be opened here."""
    if environment.get("BROWSER"):
        return True
    needs_display = not platform.startswith(("darwin", "win", "cygwin"))
    if needs_display and not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def open_browser(address: str) -> None:
    """Open the address; what the browser prints is dropped."""
    command = [sys.executable, "-m", "webbrowser", address]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603


def way_here(host: str, port: int, environment: Mapping[str, str]) -> str:
    """Return what to do on another machine before the address can be opened there; empty if it is nothing."""
    if host not in LOOPBACK:
        return ""
    # The server's own end of the connection: address and port of the client, and of the server.
    connection = environment.get("SSH_CONNECTION", "").split()
    here, ssh_port = (connection[2], connection[3]) if len(connection) == 4 else (socket.gethostname(), "22")
    option = "" if ssh_port == "22" else f"-p {ssh_port} "
    return f"From your own machine: ssh {option}-N -L {port}:127.0.0.1:{port} {_user()}@{here}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this user, as in some containers
        return "USER"
