"""`make bench-cold`: the import time of each handler, with only the layer and the function asset.

Each handler is imported by a new interpreter of Lambda's version, isolated from the packages installed here.
Clients are made on first use, so boto3 is not included.
"""

from __future__ import annotations

import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.packaging.core_layer import LayerBuildError, build, find_lambda_python
from infra.settings import Architecture

ROOT = Path(__file__).parents[1]
PROMISED = 0.5  # seconds
TIMES = 7
_IMPORT = """
import sys, time
sys.path[:0] = {paths!r}
begin = time.perf_counter()
import {module}
took = time.perf_counter() - begin
import json
print(json.dumps([took, len(sys.modules), "boto3" in sys.modules]))
"""


def handlers() -> list[str]:
    """The names of the handlers."""
    sources = sorted((ROOT / "functions" / "handlers").glob("*.py"))
    return [source.stem for source in sources if "\ndef handler(" in source.read_text(encoding="utf-8")]


def seconds_to_import(python: str, module: str, paths: list[str]) -> tuple[float, bool]:
    """Return the import time in a new interpreter, and whether it loaded boto3."""
    program = _IMPORT.format(paths=paths, module=module)
    command = [python, "-I", "-S", "-B", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took, _, boto3 = json.loads(done.stdout)
    return took, boto3


def main() -> None:
    python = find_lambda_python() or sys.executable
    machine = Architecture.ARM64 if platform.machine() == "aarch64" else Architecture.X86_64
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        layer, asset = Path(folder, "layer"), Path(folder, "asset")
        try:
            build(layer, machine)
        except LayerBuildError as problem:
            sys.exit(str(problem))
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "functions", asset / "functions", ignore=ignored)
        paths = [str(layer / "python"), str(asset)]
        print(f"\nImporting a handler, {TIMES} times each, the files in the page cache:\n")
        print("handler".ljust(18) + "median".rjust(10) + "slowest".rjust(10) + "boto3".rjust(8))
        for name in handlers():
            runs = [seconds_to_import(python, f"functions.handlers.{name}", paths) for _ in range(TIMES)]
            median, slowest = statistics.median(t for t, _ in runs), max(t for t, _ in runs)
            state = "loaded" if runs[0][1] else "-"
            print(f"{name:18}{median * 1000:7.0f} ms{slowest * 1000:7.0f} ms{state:>8}")
            if median > PROMISED:
                failed.append(f"{name} takes {median:.2f} s, promised are {PROMISED} s")
    print(f"\nPromised: {PROMISED:.1f} s. A Lambda of 1 GB has about 0.6 of a core of this machine.")
    for broken in failed:
        print(f"NOT HELD: {broken}")


if __name__ == "__main__":
    main()
