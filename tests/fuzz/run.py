"""`make fuzz`: each target under a coverage-guided fuzzer, which keeps the inputs that reach new code.

python -m tests.fuzz.run                            each target for a minute
python -m tests.fuzz.run --seconds 600 index rules  these two, for ten minutes each
python -m tests.fuzz.run --keep                     and keep in `corpus` what reached new code

What breaks a target is printed, and added to its file in `corpus`, which the tests read.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LARGEST = 4096
SECONDS_FOR_ONE = 5
MEGABYTES = 1024
KEPT = 150  # of each target, the shortest


def inside(name: str, arguments: list[str]) -> None:
    """Fuzz in a separate process, which the fuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=["smdebug", "functions"]):
        from tests.fuzz.targets import TARGETS

    atheris.Setup([sys.argv[0], *arguments], lambda data: TARGETS[name].takes(data) and None)
    atheris.Fuzz()


def words_of(data: bytes) -> Iterator[str]:
    """The keys and short texts of a JSON document."""

    def below(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from value
            value = list(value.values())
        if isinstance(value, list):
            for element in value:
                yield from below(element)
        elif isinstance(value, str) and len(value) < 40:
            yield value

    try:
        yield from below(json.loads(data))
    except (ValueError, RecursionError):
        return


def fuzz(name: str, seconds: int, *, keep: bool) -> bool:
    """Fuzz the target; return whether it held."""
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as folder:
        places = {place: Path(folder, place) for place in ("new", "known", "broken")}
        for place in places.values():
            place.mkdir()
        known = {*target.seeds(), *target.kept}
        for number, data in enumerate(known):
            (places["known"] / str(number)).write_bytes(data)
        flags = [
            f"-max_len={LARGEST}",
            f"-timeout={SECONDS_FOR_ONE}",
            f"-rss_limit_mb={MEGABYTES}",
            f"-artifact_prefix={places['broken']}/",
        ]
        if target.is_text:
            words = sorted({word for data in known for word in words_of(data) if word.isascii()})
            tokens = [json.dumps(word) for word in words if word.isprintable() and '"' not in word]
            tokens += ["null", "true", "NaN", "1e999", "-1", "[[", '{"']
            escaped = ("".join(f"\\x{byte:02x}" for byte in token.encode()) for token in tokens)
            dictionary = Path(folder, "words")
            dictionary.write_text("".join(f'"{token}"\n' for token in escaped))
            flags.append(f"-dict={dictionary}")
        this = [sys.executable, "-m", "tests.fuzz.run", "--inside", name, "--"]
        done = subprocess.run(
            [
                *this,
                *flags,
                f"-max_total_time={seconds}",
                "-print_final_stats=1",
                *map(str, (places["new"], places["known"])),
            ],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode:
            broken = {path.read_bytes() for path in places["broken"].iterdir()}
            print(done.stdout[-3000:], done.stderr[-600:], *broken, sep="\n")
            target.keep({*target.kept, *broken})
        elif keep:
            found = {path.read_bytes() for path in places["new"].iterdir()}
            worth = sorted(found - known, key=len)[: max(0, KEPT - len(target.kept))]
            target.keep({*target.kept, *worth})
        runs = [line.split()[-1] for line in done.stderr.splitlines() if "executed_units" in line]
        new = len([*places["new"].iterdir()])
        result = "BROKEN" if done.returncode else "held"
        print(
            f"{name:>12}  {result}: {runs[0] if runs else '?'} inputs, {new} reached new code",
            flush=True,
        )
    return not done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("targets", nargs="*", help="which; all, if none is named")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", action="store_true", help="keep what reached new code")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        inside(asked.inside, asked.targets)
        return 0
    from tests.fuzz.targets import TARGETS

    held = [fuzz(name, asked.seconds, keep=asked.keep) for name in asked.targets or TARGETS]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
