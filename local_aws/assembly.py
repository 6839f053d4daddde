"""The template and its assets, as `cdk synth` writes them for a laptop; made once for the same sources."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from infra.fingerprints import fingerprint_of
from local_aws.errors import NotSynthesized, in_words, missing_module

ROOT = Path(__file__).parents[1]
KEPT = 4  # assemblies, the newest
ALONE = """
import os, signal, sys, threading

def end_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)  # and node with us

threading.Thread(target=end_with_parent, daemon=True).start()
"""
SYNTHESIZE = """
import json, sys
from infra.app import app_with
from infra.settings import Settings, SettingsError
try:
    settings = Settings.from_context({**json.loads(sys.argv[1]), "local": True})
except SettingsError as error:
    sys.exit(str(error))
app_with(settings, outdir=sys.argv[2], builtin_cloud_formation_validation=False).synth()
"""


class Assembly:
    """A folder that `cdk synth` has filled."""

    def __init__(self, folder: Path, stack: str = "smdebug"):
        self.folder = folder
        self.stack = stack

    @cached_property
    def template(self) -> dict[str, Any]:
        text = (self.folder / f"{self.stack}.template.json").read_text(encoding="utf-8")
        template: dict[str, Any] = json.loads(text)
        return template

    @cached_property
    def assets(self) -> dict[str, Path]:
        """The folder behind each key that the template names."""
        told = json.loads((self.folder / f"{self.stack}.assets.json").read_text(encoding="utf-8"))
        return {
            place["objectKey"]: self.folder / file["source"]["path"]
            for file in told["files"].values()
            for place in file["destinations"].values()
        }


def synthesized(settings: Mapping[str, Any] | None = None, cache: Path | None = None) -> Assembly:
    """The assembly of these settings (as `cdk -c` takes them), from the cache if nothing has changed."""
    settings = dict(settings or {})
    custom = Path(settings.get("custom_rules") or ROOT / "rules" / "custom")
    sources = [*(ROOT / "infra").glob("*.*"), ROOT / "functions", ROOT / "rules", ROOT / "layers"]
    sources += [custom, ROOT / "requirements" / "layer.txt"]
    told = json.dumps(settings, sort_keys=True, default=str)
    place = cache or ROOT / "build" / "local"
    folder = place / f"assembly-{fingerprint_of(sorted(sources), told, sys.version)[:24]}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _alone(place / ".lock"):
            if not folder.exists():
                _synthesize(told, folder)
                _forget_old(place, folder)
            os.utime(folder)
    except OSError as error:
        if (known := in_words(error, str(place))) is None:
            raise
        raise known from error
    return Assembly(folder)


def _synthesize(settings: str, folder: Path) -> None:
    for left in folder.parent.glob("synth-*"):  # by somebody who was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix="synth-", dir=folder.parent, ignore_cleanup_errors=True
    ) as made:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", ALONE + SYNTHESIZE, settings, f"{made}/assembly"],
            stdin=subprocess.PIPE,  # whatever ends us closes it, and that ends the process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYTHONWARNINGS": "ignore",
                "TMPDIR": made,  # the CDK leaves its node's files there when it is killed
            },
            start_new_session=True,  # Ctrl-C is for us: node would end before the one who speaks to it
        )
        with process:
            assert process.stderr is not None
            said = process.stderr.read().strip()
            failed = process.wait()
        if failed:
            if "ENOSPC" in said or "No space left" in said:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if "node" in said.lower() and "FileNotFoundError" in said:
                raise NotSynthesized(
                    "The CDK needs node, and found none: run `make setup`, which brings it, or put "
                    "Node.js 20 or newer on the PATH."
                )
            short = said.splitlines()[-1] if "Traceback" in said else said
            if missing := missing_module(short):
                raise NotSynthesized(missing)
            raise NotSynthesized(f"The template could not be made: {short or 'no reason told'}")
        Path(f"{made}/assembly").rename(folder)


def _forget_old(place: Path, kept: Path) -> None:
    there = sorted(place.glob("assembly-*"), key=lambda one: one.stat().st_mtime, reverse=True)
    for folder in there[KEPT:]:
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process at a time makes an assembly; the others find it made."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
