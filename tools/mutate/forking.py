"""Processes that have imported everything already: each request is answered in a fork of one of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Answer = Mapping[str, Any]


def serve(answer: Callable[[Answer], Answer], requests: int, answers: int, hello: Answer) -> None:
    """Say hello, and answer requests, one JSON line each, until the pipe is closed."""
    with os.fdopen(requests, "rb") as incoming, os.fdopen(answers, "wb") as outgoing:
        outgoing.write(json.dumps(hello).encode() + b"\n")
        outgoing.flush()
        for line in incoming:
            request = json.loads(line)
            outgoing.write(json.dumps(in_a_fork(answer, request)).encode() + b"\n")
            outgoing.flush()


def in_a_fork(answer: Callable[[Answer], Answer], request: Answer) -> Answer:
    """Answer in a process of its own, with folders of its own; `{"timeout": True}` if it takes too long."""
    place = Path(tempfile.mkdtemp(prefix="mutate-fork-"))
    try:
        child = os.fork()
        if child == 0:
            _answer_and_end(answer, request, place)
        is_done = _wait(child, time.monotonic() + request["limit"])
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        if not is_done:
            os.waitpid(child, 0)
            return {"timeout": True}
        written = place / "answer.json"
        return json.loads(written.read_bytes()) if written.exists() else {"died": "without a word"}
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _answer_and_end(answer: Callable[[Answer], Answer], request: Answer, place: Path) -> None:
    try:
        os.setsid()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = str(place)
        tempfile.tempdir = None
        try:
            given = json.dumps(answer(request))
        except BaseException:  # noqa: BLE001 - the end of a process, which says why
            given = json.dumps({"died": traceback.format_exc()})
        (place / "answer.part").write_text(given, encoding="utf-8")
        (place / "answer.part").rename(place / "answer.json")
    finally:
        os._exit(0)


def _wait(child: int, deadline: float) -> bool:
    pause = 0.002
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    return False
