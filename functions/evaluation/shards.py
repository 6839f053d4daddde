"""The files of a step in shards: what each reading function is asked, what it answers, and the whole.

An answer holds files under their keys, so answers merge in any order, and a file that no answer holds is
read by whoever asked. Functions of two versions may ask each other: one that does not know the other's
version reads nothing, which is no loss either.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

VERSION = 1
LARGEST_ANSWER = 4 << 20  # bytes of files; in base64, with their keys, less than Lambda's 6 MB

Files = Sequence[tuple[str, int]]
"""Keys below the run, each with the end of what is wanted of the file; 0 for all of it."""


def cut(files: Files, *, at_once: int, least: int) -> list[Files]:
    """Return the files in at most `at_once` shards, each of at least so many if there are as many."""
    size = max(least, ceil(len(files) / at_once))
    return [files[at : at + size] for at in range(0, len(files), size)]


def request_for(run: str, files: Files) -> dict[str, Any]:
    """Return what a function is asked that reads a shard."""
    return {"version": VERSION, "run": run, "files": [list(file) for file in files]}


def files_asked_for(request: Mapping[str, Any]) -> Files:
    """Return the files of a request; none if it is of another version."""
    if request.get("version") != VERSION:
        return []
    return [(str(key), int(end)) for key, end in request["files"]]


def answer_with(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the answer that holds these files, in their order, up to the largest that fits."""
    sizes: list[list[Any]] = []
    contents: list[bytes] = []
    room = LARGEST_ANSWER
    for key, content in files.items():
        size = len(key) + len(content)
        if size <= room:
            room -= size
            sizes.append([key, len(content)])
            contents.append(content)
    packed = zlib.compress(b"".join(contents), 1)
    return {"version": VERSION, "sizes": sizes, "content": b64encode(packed).decode("ascii")}


def files_in(answer: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Return the files of an answer; none if there is no answer, or if it is not one of this version."""
    if answer is None or answer.get("version") != VERSION:
        return {}
    try:
        content = zlib.decompress(b64decode(answer["content"], validate=True))
        files: dict[str, bytes] = {}
        start = 0
        for key, size in answer["sizes"]:
            files[key] = content[start : start + size]
            start += size
    except (KeyError, TypeError, ValueError, zlib.error):
        return {}
    return files if start == len(content) else {}


def merged(parts: Iterable[Mapping[str, bytes]]) -> dict[str, bytes]:
    """Return the files of all parts: the same for any way to cut them, and in any order."""
    together: dict[str, bytes] = {}
    for part in parts:
        together.update(part)
    return together
