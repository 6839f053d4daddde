"""The checkout that the application is deployed from, and that a local stack runs from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

_MARK = Path("infra") / "local" / "__init__.py"


def find_checkout() -> Path | None:
    """The checkout that this library lies in, or the one that one stands in."""
    import smdebug

    here = Path(smdebug.__file__).resolve()
    for folder in (*here.parents, Path.cwd(), *Path.cwd().parents):
        if (folder / _MARK).is_file() and (folder / "cdk.json").is_file():
            return folder
    return None


def run_from_checkout(module: str, arguments: Sequence[str]) -> int:
    """`python -m module` in the checkout; its exit code. Ctrl-C reaches it, and it cleans up by itself."""
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
    process = subprocess.Popen(  # noqa: S603 - a module of this project
        [sys.executable, "-m", module, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # it has heard the same Ctrl-C, and is cleaning up
