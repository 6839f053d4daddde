"""The child process: trains one program with several seeds, one after another, watched by smdebug.start."""

from __future__ import annotations

import sys
from pathlib import Path

import smdebug
from bench.verdicts.zoo import find


def main() -> None:
    name, kind, seeds, folder = sys.argv[1:]
    trained = find(name, kind)
    for seed in range(int(seeds)):
        with smdebug.start(Path(folder) / f"seed-{seed}"):
            trained.train(seed)


if __name__ == "__main__":
    main()
