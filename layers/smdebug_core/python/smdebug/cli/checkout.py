"""The checkout that the application is deployed from, and that a local stack runs from."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from smdebug.cli.exit_codes import INTERNAL_ERROR, INTERRUPTED

# Not -m: the package may have imported the module already, and Python would warn of that. A Ctrl-C
# waits until the process can tell of it: until then it is blocked. Its lifeline is a pipe that closes when
# the one who began it is no more, even if killed: that is then like a SIGTERM.
_CALL = """
import json, os, signal, sys, threading
def interrupted(*_):
    os.write(2, b"Interrupted. Nothing was left behind.\\n")
    os._exit({interrupted})
for stopping in (signal.SIGINT, signal.SIGTERM):
    signal.signal(stopping, interrupted)
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
def hold_on():
    os.read({lifeline}, 1)
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=hold_on, daemon=True).start()
from {module} import {function}
given = json.loads(sys.argv.pop())
try:
    code = {function}(*given["args"], **given["kwargs"])
except Exception as error:
    if {debug}:
        raise
    print(f"error: smdebug itself failed: {{type(error).__name__}}: {{error}}", file=sys.stderr)
    print("hint: the same command with --debug shows where; please report that", file=sys.stderr)
    code = {defect}
sys.exit(code)
"""
_MARK = Path("local_aws") / "__init__.py"


def find_checkout() -> Path | None:
    """The checkout that this library lies in, or the one that one stands in."""
    import smdebug

    here = Path(smdebug.__file__).resolve()
    for folder in (*here.parents, Path.cwd(), *Path.cwd().parents):
        if (folder / _MARK).is_file() and (folder / "cdk.json").is_file():
            return folder
    return None


def run_from_checkout(module: str, function: str, *args: Any, **kwargs: Any) -> int:
    """Call a function of the checkout in a process of its own; its exit code.

    Ctrl-C reaches it, and it cleans up by itself.
    """
    checkout = find_checkout()
    if checkout is None:
        raise click.UsageError(
            "This needs a checkout of the project, since the application runs from its sources. "
            "Clone it, and call this within it (or: make demo)."
        )
    if not (checkout / Path(*module.split("."))).with_suffix(".py").is_file():
        raise click.UsageError(f"The checkout at {checkout} has no {module}: update it (git pull)")
    paths = [str(checkout), str(checkout / "layers/smdebug_core/python"), str(checkout / "rules")]
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([*paths, *([inherited] if inherited else [])])
    lifeline, ours = os.pipe()
    call = _CALL.format(
        lifeline=lifeline,
        module=module,
        function=function,
        interrupted=INTERRUPTED,
        defect=INTERNAL_ERROR,
        debug="--debug" in sys.argv,
    )
    stopping = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    try:
        process = subprocess.Popen(  # noqa: S603 - a module of this project
            [sys.executable, "-c", call, json.dumps({"args": args, "kwargs": kwargs})],
            env={**os.environ, "PYTHONPATH": path},
            pass_fds=(lifeline,),
        )
        # Ctrl-C reaches both, and it cleans up; of a SIGTERM we alone are told.
        before = {
            signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
            signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: process.terminate()),
        }
    finally:
        os.close(lifeline)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping)
    try:
        code = process.wait()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        os.close(ours)
    return code if code >= 0 else 128 - code
