"""Valid keys and spans, defined once, so that every storage refuses the same ones before it is accessed.

Keys also come from index files, which may come from a stranger: a key that could lead outside its place is
refused by its text alone.
"""

from __future__ import annotations

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.files.names import TEMPORARY_SUFFIX
from smdebug.storage.base import ByteSpan

_NOWHERE = frozenset(("", ".", ".."))


def checked_key(key: str) -> str:
    """Return `key` if it can name an object inside a place; `SMDebugValueError` names the problem."""
    if problem := _problem_of(key):
        raise SMDebugValueError(f"{key!r} cannot be the key of an object: {problem}")
    return key


def checked_prefix(prefix: str) -> str:
    """Return `prefix` if keys can begin with it. It may be empty, and may end in the middle of a name."""
    folder, slash, _ = prefix.rpartition("/")
    if problem := _problem_of_text(prefix) or (slash and _problem_of_path(folder)):
        raise SMDebugValueError(f"{prefix!r} cannot be the prefix of keys: {problem}")
    return prefix


def checked_start(start_after: str | None) -> None:
    """Raise `SMDebugValueError` for a start that keys cannot be compared with."""
    if start_after is not None and (problem := _problem_of_text(start_after)):
        raise SMDebugValueError(f"Keys cannot be listed from {start_after!r} on: {problem}")


def is_key(key: str) -> bool:
    """Return whether this can be the key of an object. Folder markers and unfinished objects are not."""
    return not _problem_of(key)


def clipped(span: ByteSpan | None, size: int) -> ByteSpan:
    """The part of `span` that an object of `size` bytes has; the whole object without a span."""
    if span is None:
        return ByteSpan(0, size)
    return ByteSpan(min(span.start, size), min(span.stop, size))


def checked_span(span: ByteSpan | None) -> ByteSpan | None:
    """Return `span` if it begins at 0 or later and ends after its beginning."""
    if span is not None and not 0 <= span.start <= span.stop:
        raise SMDebugValueError(
            f"Bytes {span.start} to {span.stop} are not a span: it begins at 0 or later, and ends later"
        )
    return span


def _problem_of(key: str) -> str:
    problem = _problem_of_text(key) or _problem_of_path(key)
    if not problem and key.endswith(TEMPORARY_SUFFIX):
        problem = f"{TEMPORARY_SUFFIX} marks an object that is not finished"
    return problem


def _problem_of_text(key: str) -> str:
    if not isinstance(key, str):
        raise SMDebugTypeError(f"A key must be text, not {type(key).__name__}: {key!r}")
    if "\0" in key or "\\" in key:
        return "it holds a NUL or a backslash"
    if not key.isascii():
        try:
            key.encode()
        except UnicodeEncodeError:
            return "it is not valid Unicode"
    return ""


def _problem_of_path(path: str) -> str:
    # The common case first: nothing in it can be an empty, `.` or `..` segment.
    if "//" not in path and "./" not in path and path[:1] not in ("", "/") and path[-1] not in "/.":
        return ""
    if not _NOWHERE.isdisjoint(path.split("/")):
        return "it is not a plain path below its place (no leading or double /, no . or ..)"
    return ""
