"""Scripts in forks of a process that has imported a framework: `python -m tests.frameworks.forks MODULE…`.

A framework takes seconds to import. It is imported once, and each script that arrives, a line of JSON, runs
in a fork of its own, with its own folder, arguments, environment and output. What the interpreter does with
an error that ends a script needs a real process.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from tests.frameworks.scripts import ROOT, environment_of


class Forks:
    """Runs scripts as `tests.frameworks.scripts.python` does, in a tenth of the time."""

    def __init__(self, *modules: str):
        self._command = [sys.executable, "-m", "tests.frameworks.forks", *modules]

    def __enter__(self) -> Forks:
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment_of({}),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # it ends where its input does

    def python(self, *words: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a script, or `-m` and a module, as Python does with these words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            outputs = [Path(folder, name) for name in ("stdout", "stderr")]
            arguments = [*map(str, words)]
            asked = {
                "words": arguments,
                "cwd": str(cwd),
                "environment": environment,
                "outputs": [*map(str, outputs)],
            }
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
            out, err = (output.read_text() for output in outputs)
        return subprocess.CompletedProcess(arguments, code, out, err)


def become(words: list[str], cwd: str, environment: dict[str, str], outputs: list[str]) -> NoReturn:
    """Be the process of this script. It ends as the interpreter does, but does not delete each object."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, output in enumerate(outputs, start=1):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(cwd)
    os.environ.update(environment)
    code: object = 1
    try:
        run(words)
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def run(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = str(Path(words[0]).parent)
        runpy.run_path(words[0], run_name="__main__")


def main(modules: Iterable[str]) -> None:
    for module in modules:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
