"""The layer: the core library, the built-in rules and what they need, for Lambda's own processors.

`python -m infra.core_layer arm64 build/layer` builds it outside of CDK, to look at or to measure.
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

from infra.assets import ROOT, bundle, copied
from infra.fingerprints import fingerprint_of
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
)
_PLATFORMS = {
    Architecture.ARM64: "aarch64-manylinux_2_28",
    Architecture.X86_64: "x86_64-manylinux_2_28",
}
# Parts of the wheels that nothing imports at run time, and files that say when and how they were installed.
_TRIMMED = (
    *("bin", ".lock", "**/tests", "**/*.pyi", "**/*.pxd", "**/*.h", "**/*.lib", "**/*.a"),
    *("numpy/f2py", "numpy/_pyinstaller", "numpy/conftest.py"),
    *(
        "*.dist-info/RECORD",
        "*.dist-info/INSTALLER",
        "*.dist-info/REQUESTED",
        "*.dist-info/direct_url.json",
    ),
    *("*.dist-info/uv_cache.json", "*.dist-info/sboms"),
)


class LayerBuildError(RuntimeError):
    """The layer could not be built: the text says by which command, and what it answered."""


def build(target: Path, architecture: Architecture) -> None:
    """Fill `target` with what is to be under /opt: the locked wheels, our sources, and their bytecode."""
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
            f"The layer has {megabytes:.0f} MB, and {MOST_MEGABYTES} MB is what we allow: trim it."
        )


def install(lock: Path, target: Path, architecture: Architecture) -> None:
    """Install locked wheels for Lambda, whatever machine this is."""
    asked = {
        "--python-version": PYTHON,
        "--python-platform": _PLATFORMS[architecture],
        "--only-binary": ":all:",
        "--link-mode": "copy",
        "--target": str(target),
        "--requirements": str(lock),
    }
    flags = ["--quiet", "--no-config", "--require-hashes", "--no-deps", "--no-compile-bytecode"]
    told = [word for pair in asked.items() for word in pair]
    _run([sys.executable, "-m", "uv", "pip", "install", *flags, *told])


class CoreLayer(Construct):
    """What every function has under /opt/python."""

    def __init__(
        self, scope: Construct, id: str, *, architecture: Architecture, local: bool
    ) -> None:
        super().__init__(scope, id)
        self.version = lambda_.LayerVersion(
            self,
            "Version",
            description="smdebug, its built-in rules, and what they need",
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
    """On a laptop the wheels are those of its own interpreter."""
    fingerprint = fingerprint_of(SOURCES, "local")
    return bundle(SOURCES[0], lambda target: copied(*SOURCES)(target / "python"), fingerprint)


def _compile(folder: Path) -> None:
    """Bytecode halves the cold import; it has to come from the Python that will run it."""
    python = lambdas_python()
    if python is None:
        print(
            f"No Python {PYTHON} here: the layer goes without bytecode, and starts slower.",
            file=sys.stderr,
        )
        return
    where = ["-s", str(folder), "-p", "/opt/python", str(folder)]
    flags = ["-q", "-j", "1", "--invalidation-mode", "unchecked-hash"]
    # The order of sets is part of the bytecode.
    _run([python, "-S", "-m", "compileall", *flags, *where], PYTHONHASHSEED="0")


def lambdas_python() -> str | None:
    """An interpreter of Lambda's version: this one, one on the PATH, or one that pyenv keeps."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/python"))
    for candidate in (sys.executable, f"python{PYTHON}", *map(str, kept)):
        with suppress(OSError):
            asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            said = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
            if said.stdout.strip() == PYTHON:
                return candidate
    return None


def _run(command: list[str], **environment: str) -> None:
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        raise LayerBuildError(
            f"{' '.join(command)}\nfailed with {done.returncode}:\n{done.stderr.strip()}"
        )


if __name__ == "__main__":
    architecture, folder = Architecture(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    build(folder, architecture)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{architecture}: {size / 1e6:.1f} MB, {fingerprint_of([folder / 'python'])[:16]}")
