"""The template and its assets, synthesized for this machine and cached for the same sources."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from infra.packaging.fingerprints import fingerprint_of
from local_aws.errors import NotSynthesized, explain_os_error, missing_module

ROOT = Path(__file__).parents[2]
KEPT = 4  # newest assemblies, beside those in use
END_WITH_PARENT = """
import os, signal, sys, threading

def end_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)  # node, too

threading.Thread(target=end_with_parent, daemon=True).start()
"""
SYNTHESIZE = """
import json, sys
from infra.app import app_with
from infra.settings import Settings, SettingsError
try:
    # All runs on this machine belong to one person.
    given = {"tenants": "all=/", **json.loads(sys.argv[1])}
    settings = Settings.from_context({**given, "local": True})
except SettingsError as error:
    sys.exit(str(error))
app_with(settings, outdir=sys.argv[2], builtin_cloud_formation_validation=False).synth()
"""


class Assembly:
    """A folder that `cdk synth` filled. It is not removed while this object lives, in any process."""

    def __init__(self, folder: Path, stack: str = "smdebug"):
        self.folder = folder
        self.stack = stack
        held = os.open(folder, os.O_RDONLY)
        weakref.finalize(self, os.close, held)
        fcntl.flock(held, fcntl.LOCK_SH)

    @cached_property
    def template(self) -> dict[str, Any]:
        text = (self.folder / f"{self.stack}.template.json").read_text(encoding="utf-8")
        template: dict[str, Any] = json.loads(text)
        return template

    @cached_property
    def assets(self) -> dict[str, Path]:
        """The folder behind each key that the template names."""
        manifest = self.folder / f"{self.stack}.assets.json"
        files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
        return {
            place["objectKey"]: self.folder / file["source"]["path"]
            for file in files.values()
            for place in file["destinations"].values()
        }


def synthesized(settings: Mapping[str, Any] | None = None, cache: Path | None = None) -> Assembly:
    """Return the assembly of these settings (as for `cdk -c`), from the cache if nothing changed."""
    settings = dict(settings or {})
    sources = sources_of(settings)
    settings_json = json.dumps(settings, sort_keys=True, default=str)
    place = cache or ROOT / "build" / "local"
    folder = place / f"assembly-{fingerprint_of(sorted(sources), settings_json, sys.version)[:24]}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _locked(place / ".lock"):
            if not folder.exists():
                _synthesize(settings_json, folder)
                _remove_old(place, folder)
            os.utime(folder)
            return Assembly(folder, str(settings.get("stack") or "smdebug"))
    except OSError as error:
        if (known := explain_os_error(error, str(place))) is None:
            raise
        raise known from error


def sources_of(settings: Mapping[str, Any]) -> list[Path]:
    """Return the files and folders on which an assembly depends."""
    custom = Path(settings.get("custom_rules") or ROOT / "rules" / "custom")
    code = [ROOT / name for name in ("infra", "functions", "rules", "layers")]
    return [*code, custom, ROOT / "requirements" / "layer.txt"]


def _synthesize(settings: str, folder: Path) -> None:
    for abandoned in folder.parent.glob("synth-*"):  # by a killed process
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix="synth-", dir=folder.parent, ignore_cleanup_errors=True
    ) as scratch:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", END_WITH_PARENT + SYNTHESIZE, settings, f"{scratch}/assembly"],
            stdin=subprocess.PIPE,  # closes when we end, which ends the process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYTHONWARNINGS": "ignore",
                "TMPDIR": scratch,  # the CDK leaves node's files there when it is killed
            },
            start_new_session=True,  # Ctrl-C is for us: node would end before its caller
        )
        with process:
            assert process.stderr is not None
            output = process.stderr.read().strip()
            failed = process.wait()
        if failed:
            if "ENOSPC" in output or "No space left" in output:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if "node" in output.lower() and "FileNotFoundError" in output:
                raise NotSynthesized(
                    "The CDK needs node and found none: run `make setup`, which installs it, or put "
                    "Node.js 20 or newer on the PATH."
                )
            short = output.splitlines()[-1] if "Traceback" in output else output
            if missing := missing_module(short):
                raise NotSynthesized(missing)
            raise NotSynthesized(f"The template could not be synthesized: {short or 'no reason given'}")
        Path(f"{scratch}/assembly").rename(folder)


def _remove_old(place: Path, kept: Path) -> None:
    assemblies = place.glob("assembly-*")
    newest = sorted(assemblies, key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in newest[KEPT:]:
        if folder != kept and not _is_in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_in_use(folder: Path) -> bool:
    """Whether a stack runs from there: its functions start more processes as long as it stands."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Let one process at a time make an assembly; the others then find it in the cache."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
