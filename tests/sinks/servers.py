"""Servers of tools, started for a test or a picture."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen


@contextmanager
def tracking_server(folder: Path) -> Iterator[str]:
    """MLflow's own server, with its database and its artifacts in the folder."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{folder}/server.db", "--workers", "1"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    with (
        (folder / "server.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True) as process,
    ):
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers(f"{address}/health"))
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # and its worker


@contextmanager
def trackio_server(folder: Path, token: str) -> Iterator[str]:
    """trackio's own server, which takes runs from those who know the token."""
    port = free_port()
    options = f"open_browser=False, host='127.0.0.1', server_port={port}, block_thread=True"
    environment = {**os.environ, "TRACKIO_DIR": str(folder), "TRACKIO_WRITE_TOKEN": token}
    command = [sys.executable, "-c", f"import trackio; trackio.show({options})"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers(address))
            yield address
        finally:
            process.terminate()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(address: str) -> bool:
    """Whether a server answers there."""
    try:
        with urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask again until it holds: another process writes, and says nothing to this one."""
    asked = threading.Event()
    for _ in range(3000):
        if holds():
            return
        asked.wait(0.1)
    raise AssertionError("it did not happen within five minutes")
