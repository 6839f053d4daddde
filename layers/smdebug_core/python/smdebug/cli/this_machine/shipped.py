"""The application that the wheel brings along, laid out as a checkout, so that it can run on this machine.

The wheel has its sources in `smdebug/app`. They are copied once into the user's cache, beside copies of the
installed library and rules, because the application is deployed from such a tree.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from smdebug.extras import install_command

APP = "app"
EXTRA = "local"
_NEEDED = ("moto", "flask", "boto3", "aws_cdk", "awslambdaric", "aws_lambda_powertools")
_OF_LAYER = ("smdebug", "tornasole", "tornasole_rules")
_OF_RULES = ("smdebug_rules", "smdebug_default_rules")
_IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def shipped_checkout() -> Path | None:
    """Return the tree of the installed application, made on first use; None if there is none."""
    import smdebug

    installed = Path(smdebug.__file__).resolve().parent
    app = installed / APP
    if not (app / "cdk.json").is_file():
        return None
    refuse_missing_packages(_NEEDED)
    place = _cache_folder() / f"app-{_fingerprint(app)}"
    if not (place / "cdk.json").is_file():
        try:
            _lay_out(app, installed.parent, place)
        except OSError as error:
            raise click.UsageError(
                f"The application cannot be copied to {place}: {error.strerror or error}. "
                "Name a folder of your own in XDG_CACHE_HOME"
            ) from error
    return place


def refuse_missing_packages(needed: Iterable[str]) -> None:
    """Raise a usage error that names the extra, if a package of the local application is missing."""
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise click.UsageError(
            f"This runs the application on this machine, for which {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed: "
            f"{install_command(EXTRA)}"
        )


def _lay_out(app: Path, site: Path, place: Path) -> None:
    """Copy everything, and let it appear at once: two commands may begin together."""
    import tempfile  # not for every command: loading it takes time

    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=place.parent) as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(app, tree, ignore=_IGNORED)
        for names, folder in ((_OF_LAYER, "layers/smdebug_core/python"), (_OF_RULES, "rules")):
            for name in names:
                target = tree / folder / name
                shutil.copytree(site / name, target, ignore=_IGNORED)
        shutil.rmtree(tree / "layers/smdebug_core/python/smdebug" / APP)
        try:
            tree.rename(place)
        except OSError:
            if not (place / "cdk.json").is_file():  # another command was first
                raise


def _fingerprint(app: Path) -> str:
    """Return what changes with the installed application and the interpreter."""
    import smdebug

    installed = (app / "cdk.json").stat().st_mtime_ns
    text = f"{smdebug.__version__} {app} {installed} {sys.version}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "smdebug"
