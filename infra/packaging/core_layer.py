"""The layer: the core library, the built-in rules and their dependencies, for Lambda's processors.

`python -m infra.packaging.core_layer arm64 build/layer` builds it without CDK, for inspection.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.packaging.assets import ROOT, bundle, copied
from infra.packaging.fingerprints import fingerprint_of
from infra.settings import Architecture

PYTHON = "3.13"
MOST_MEGABYTES = 90
LOCK = ROOT / "requirements" / "layer.txt"
SOURCES = (
    *(
        ROOT / "layers" / "smdebug_core" / "python" / name
        for name in ("smdebug", "tornasole", "tornasole_rules")
    ),
    ROOT / "rules" / "smdebug_rules",
    ROOT / "rules" / "smdebug_default_rules",
)
_PLATFORMS = {
    Architecture.ARM64: "aarch64-manylinux_2_28",
    Architecture.X86_64: "x86_64-manylinux_2_28",
}
# Parts of the wheels that nothing imports at run time, and records of the installation.
_TRIMMED = (
    "bin",
    ".lock",
    "**/tests",
    "**/*.pyi",
    "**/*.pxd",
    "**/*.h",
    "**/*.lib",
    "**/*.a",
    "numpy/f2py",
    "numpy/_pyinstaller",
    "numpy/conftest.py",
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    "*.dist-info/uv_cache.json",
    "*.dist-info/sboms",
)


class LayerBuildError(RuntimeError):
    """The layer could not be built: the message has the command and its output."""


def build(target: Path, architecture: Architecture) -> None:
    """Fill `target` with the contents of /opt: the locked wheels, our sources, and their bytecode."""
    python = target / "python"
    python.mkdir(parents=True)
    install(LOCK, python, architecture)
    for pattern in _TRIMMED:
        for found in sorted(python.glob(pattern)):
            shutil.rmtree(found) if found.is_dir() else found.unlink()
    copied(*SOURCES)(python)
    _compile(python)
    megabytes = sum(file.stat().st_size for file in target.rglob("*") if file.is_file()) / 1e6
    if megabytes > MOST_MEGABYTES:
        raise LayerBuildError(
            f"The layer has {megabytes:.0f} MB, and at most {MOST_MEGABYTES} MB are allowed: trim it."
        )


def install(lock: Path, target: Path, architecture: Architecture) -> None:
    """Install locked wheels for Lambda, on any machine."""
    options = {
        "--python-version": PYTHON,
        "--python-platform": _PLATFORMS[architecture],
        "--only-binary": ":all:",
        "--link-mode": "copy",
        "--target": str(target),
        "--requirements": str(lock),
    }
    flags = ["--quiet", "--no-config", "--require-hashes", "--no-deps", "--no-compile-bytecode"]
    words = [word for option in options.items() for word in option]
    _run([sys.executable, "-m", "uv", "pip", "install", *flags, *words])


class CoreLayer(Construct):
    """The layer of every function, in /opt/python."""

    def __init__(
        self, scope: Construct, id: str, *, architecture: Architecture, local: bool, name: str | None = None
    ) -> None:
        super().__init__(scope, id)
        self.version = lambda_.LayerVersion(
            self,
            "Version",
            layer_version_name=name,
            description="smdebug, its built-in rules, and their dependencies",
            code=_sources_alone() if local else _with_wheels(architecture),
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            compatible_architectures=[
                lambda_.Architecture.ARM_64
                if architecture is Architecture.ARM64
                else lambda_.Architecture.X86_64
            ],
        )


def _with_wheels(architecture: Architecture) -> lambda_.Code:
    fingerprint = fingerprint_of([LOCK, *SOURCES, Path(__file__)], PYTHON, architecture)
    return bundle(SOURCES[0], lambda target: build(target, architecture), fingerprint)


def _sources_alone() -> lambda_.Code:
    """The local stack uses the wheels of its own interpreter."""
    fingerprint = fingerprint_of(SOURCES, "local")
    return bundle(SOURCES[0], lambda target: copied(*SOURCES)(target / "python"), fingerprint)


def _compile(folder: Path) -> None:
    """Add bytecode, which halves the cold import; it must come from the Python version that runs it."""
    python = find_lambda_python()
    if python is None:
        print(
            f"No Python {PYTHON} found: the layer has no bytecode, so functions start more slowly.",
            file=sys.stderr,
        )
        return
    where = ["-s", str(folder), "-p", "/opt/python", str(folder)]
    flags = ["-q", "-j", "1", "--invalidation-mode", "unchecked-hash"]
    # The order of sets is part of the bytecode.
    _run([python, "-S", "-m", "compileall", *flags, *where], PYTHONHASHSEED="0")


def find_lambda_python() -> str | None:
    """Return an interpreter of Lambda's version: this one, one on the PATH, or one of pyenv's."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/python"))
    for candidate in (sys.executable, f"python{PYTHON}", *map(str, kept)):
        with suppress(OSError):
            command = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
            if done.stdout.strip() == PYTHON:
                return candidate
    return None


def _run(command: list[str], **environment: str) -> None:
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        raise LayerBuildError(f"{' '.join(command)}\nfailed with {done.returncode}:\n{done.stderr.strip()}")


if __name__ == "__main__":
    architecture, folder = Architecture(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    build(folder, architecture)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{architecture}: {size / 1e6:.1f} MB, {fingerprint_of([folder / 'python'])[:16]}")
