"""The interface of the places where runs are stored.

Keys are relative to the place, use `/`, and never begin with one. Memory, a local folder and S3 keep
the same promises, and one set of tests holds all three to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

Buffer = bytes | bytearray | memoryview
S3_SCHEME = "s3://"
"""What a path on S3 begins with."""


class ByteSpan(NamedTuple):
    """The bytes from `start` up to, and without, `stop`."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


class Sink(Protocol):
    """An object being written: it appears at `commit`, and never after `abort`."""

    def write(self, pieces: Sequence[Buffer]) -> None:
        """Append the pieces in order. The caller may reuse them afterwards."""

    def commit(self) -> None:
        """Make the object visible under its key, whole, replacing what was there."""

    def abort(self) -> None:
        """Leave no trace. Safe to call after a failure, and twice."""


@runtime_checkable
class Storage(Protocol):
    """Objects under one place: a folder, a prefix of a bucket, a dictionary in memory."""

    @property
    def location(self) -> str:
        """The place as a user would write it: `s3://bucket/prefix`, `/folder`, `memory://name`."""

    @property
    def concurrency(self) -> int:
        """How many concurrent requests are worthwhile: 1 where each is a local read."""

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        """The object, or just that span of it. `ObjectMissing`, `AccessDenied`, `StorageUnavailable`."""

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        """The same bytes without copying where the place allows; writable, and private to the caller.

        Large remote objects are mapped from a temporary file, which is removed with its last view.
        A span that reaches past the end of the object gives the bytes that are there.
        """

    def size(self, key: str) -> int:
        """How many bytes the object has. `ObjectMissing` if there is none."""

    def exists(self, key: str) -> bool:
        """Return whether there is an object under exactly this key."""

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        """Keys that begin with `prefix` and sort after `start_after`, in order (of UTF-8 bytes).

        Unfinished objects (`.tmp`) are not listed.
        """

    def write(self, key: str, data: Buffer) -> None:
        """Write the object, whole or not at all, replacing any earlier one."""

    def create(self, key: str) -> Sink:
        """Begin an object that is written piece by piece."""

    def claim(self, key: str) -> bool:
        """Create an empty object if there is none; False if another writer was first. Always True on S3."""

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens if there is none."""


@runtime_checkable
class ReplacingStorage(Storage, Protocol):
    """A storage in which a change by one process is not lost by that of another: memory, a folder, S3."""

    def replace(self, key: str, known: bytes | None, data: Buffer) -> bool:
        """Write the object if it is still `known`, or still missing; return False if another was first."""
