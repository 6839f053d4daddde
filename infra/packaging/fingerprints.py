"""Fingerprints of sources: equal fingerprints mean equal assets. Imports no CDK."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def fingerprint_of(paths: Iterable[Path], *parameters: str) -> str:
    """Return a digest of the files and parameters, independent of where the checkout is."""
    digest = hashlib.sha256("\0".join(parameters).encode())
    for path in paths:
        for file in sorted(files_of(path)):
            digest.update(f"\0{path.name}/{file.relative_to(path)}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def files_of(path: Path) -> Iterable[Path]:
    """The file itself, or the files of a folder that are shipped."""
    if path.is_file():
        return [path]
    return [
        file
        for file in path.rglob("*")
        if file.is_file()
        and file.suffix != ".pyc"
        and not any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(path).parts)
    ]
