"""Call functions of the checkout, from which the application is deployed and local stacks run."""

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
from smdebug.cli.this_machine.shipped import shipped_checkout
from smdebug.extras import install_command

# Not -m: the package may already have imported the module, and Python would warn. Ctrl-C is blocked until
# the process can handle it. The lifeline is a pipe that closes when the parent dies, even if it is killed;
# the process then treats this like a SIGTERM.
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
    print("hint: run the same command with --debug, and report the traceback", file=sys.stderr)
    code = {defect}
sys.exit(code)
"""
_MARK = Path("local_aws") / "__init__.py"


def find_checkout() -> Path | None:
    """Return the checkout that contains this library or the current folder."""
    import smdebug

    here = Path(smdebug.__file__).resolve()
    for folder in (*here.parents, Path.cwd(), *Path.cwd().parents):
        if (folder / _MARK).is_file() and (folder / "cdk.json").is_file():
            return folder
    return None


def run_from_checkout(module: str, function: str, *args: Any, **kwargs: Any) -> int:
    """Call a function of the checkout in a process of its own; return its exit code.

    Ctrl-C reaches that process, which cleans up after itself.
    """
    checkout = find_checkout() or shipped_checkout()
    if checkout is None:
        raise click.UsageError(
            "This needs the sources of the application, which this installation lacks: install the wheel "
            f"with {install_command('local')}, or run the command inside a checkout."
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
        # Ctrl-C reaches both processes, and the child cleans up; a SIGTERM must be passed on.
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
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ours)
    return code if code >= 0 else 128 - code
