"""The process that plays AWS: starts it, waits until it is ready, and ends it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local_aws import errors
from local_aws.deployment.assembly import ROOT
from local_aws.errors import DidNotStart, LocalStackError, missing_module
from local_aws.janitor import WITHIN
from local_aws.template import REGION

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


class CloudProcess:
    """`python -m local_aws.cloud`, for as long as its standard input is open."""

    def __init__(self, request: Mapping[str, Any]):
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "MOTO_", "SMDEBUG_", "PYTEST_", "COV_"))
        }
        environment |= {"PYTHONPATH": str(ROOT), **CREDENTIALS, "AWS_DEFAULT_REGION": REGION}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-W", "ignore", "-m", "local_aws.cloud", json.dumps(request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us; closing the pipe ends it
        )
        self._errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def wait_until_ready(self) -> dict[str, Any]:
        """Return the description of the stack, or raise why it did not start."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._reader.join(2)
            output = "".join(self._errors).strip()[-2000:]
            output = output or f"exit code {self._process.returncode}"
            raise DidNotStart(missing_module(output) or f"The local AWS ended before it was ready: {output}")
        answer: dict[str, Any] = json.loads(line)
        raise_if_error(answer)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its children and its folder follow
            self._process.wait()
        self._reader.join(2)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _read_errors(self) -> None:
        self._errors.extend(self._process.stderr or ())


def raise_if_error(answer: Mapping[str, Any]) -> None:
    """Raise the error that the process reported, if it did."""
    if "error" in answer:
        raise getattr(errors, answer["error"], LocalStackError)(answer["message"])


def wait_for_janitor(folder: str) -> None:
    """Wait until the janitor has ended the remaining processes and removed the folder."""
    until = time.monotonic() + WITHIN + 30
    while folder and Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.02)
