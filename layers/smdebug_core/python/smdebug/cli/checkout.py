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

from smdebug.cli.outcomes import CANNOT_LOOK

# Not -m: the package may have imported the module already, and Python would warn of that.
_CALL = """
import json, sys
try:
    from infra.local.errors import LocalStackError
    from {module} import {function}
except KeyboardInterrupt:
    sys.exit("Interrupted.")
given = json.loads(sys.argv.pop())
try:
    sys.exit({function}(*given["args"], **given["kwargs"]))
except LocalStackError as error:
    print(f"error: {{error}}", file=sys.stderr)
    sys.exit({code})
"""
_MARK = Path("infra") / "local" / "__init__.py"


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
    call = _CALL.format(module=module, function=function, code=CANNOT_LOOK)
    process = subprocess.Popen(  # noqa: S603 - a module of this project
        [sys.executable, "-c", call, json.dumps({"args": args, "kwargs": kwargs})],
        env={**os.environ, "PYTHONPATH": path},
    )
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())  # we alone were told
    try:
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                continue  # it has heard the same Ctrl-C, and is cleaning up
            return code if code >= 0 else 128 - code
    finally:
        signal.signal(signal.SIGTERM, before)
