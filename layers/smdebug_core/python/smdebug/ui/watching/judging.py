"""Verdicts in the background: a process of low priority that reads runs, one at a time.

The server sends a path in a line, and the process answers with a line: the run's summary. What it has read
goes to the cache, so that the page of the run shows it at once. `python -m smdebug.ui.watching.judging`
is that process; it ends with the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from smdebug.exceptions import SMDebugError, SMDebugRuntimeError
from smdebug.service.records import RequestedRule, RuleConfiguration
from smdebug.ui.finding.glance import Glance
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.cache import Cache
from smdebug.ui.watching.keeping import keep, kept_of
from smdebug.ui.watching.summary import summary_of

NICE = 15
MOST_SECONDS = 300.0
"""How long one run may take; the rest of it is checked when its page is opened."""
MOST_FOLLOWED = 4
"""Runs that have not ended, of which the process keeps what it has read."""
_SLICE = 1.0


class Judge:
    """Asks a process for the verdicts on runs. One thread calls `judge`; any may call `stop`."""

    def __init__(self, cache: Cache, rules: Sequence[RequestedRule] | None):
        self._settings = {
            "cache": None if cache.folder is None else str(cache.folder),
            "rules": None if rules is None else [_plain(rule) for rule in rules],
        }
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_over = False

    def judge(self, path: str) -> Glance:
        """Return the summary of a run with its verdict; raise `SMDebugRuntimeError` if that fails."""
        process = self._started()
        if process is None:
            raise SMDebugRuntimeError("the server is ending")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(path) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            self._end()
            raise SMDebugRuntimeError("the process that checks runs ended; the run may need too much memory")
        return Glance.from_dict(json.loads(line))

    def stop(self) -> None:
        """End the process; `judge` raises."""
        self._is_over = True
        self._end()

    def _started(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._is_over:
                return None
            if self._process is None:
                self._process = subprocess.Popen(  # noqa: S603 - this Python, this module
                    [
                        sys.executable,
                        "-m",
                        "smdebug.ui.watching.judging",
                        json.dumps(self._settings),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    # The same modules, also where a program or a test has added their folders.
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,  # Ctrl-C ends the server, which ends this
                )
            return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


class Judging:
    """Reads runs to their ends, and keeps those that have not ended open."""

    def __init__(
        self,
        cache: Cache,
        rules: Sequence[RequestedRule] | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._cache = cache
        self._rules = rules
        self._clock = clock
        self._readers: OrderedDict[str, RunReader] = OrderedDict()

    def judge(self, path: str) -> Glance:
        """Read what is new of a run; return its summary."""
        reader = self._readers.pop(path, None)
        if reader is None:
            kept = kept_of(self._cache, path)
            reader = RunReader(path, self._rules, kept=kept, is_alone=True)
        until = self._clock() + MOST_SECONDS
        while reader.advance(_SLICE) and self._clock() < until:
            pass
        if not reader.error:
            with suppress(SMDebugError):  # removed meanwhile
                keep(self._cache, path, reader)
        if not reader.has_ended:
            self._readers[path] = reader
            while len(self._readers) > MOST_FOLLOWED:
                self._readers.popitem(last=False)
        return summary_of(Glance(), reader)


def serve(source: IO[str], to: IO[str], settings: Any) -> None:
    """Answer each line until there is none."""
    from pathlib import Path

    folder = settings["cache"]
    judging = Judging(Cache(None if folder is None else Path(folder)), settings["rules"])
    for line in source:
        glance = judging.judge(json.loads(line))
        to.write(json.dumps(glance.to_dict()) + "\n")
        to.flush()


def _plain(rule: RequestedRule) -> Any:
    return rule.to_dict() if isinstance(rule, RuleConfiguration) else rule


if __name__ == "__main__":
    os.nice(NICE)
    # What rules print must not reach the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    serve(sys.stdin, answers, json.loads(sys.argv[1]))
