"""A run in memory: for tests, notebooks, and steps that are written elsewhere later."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence

from smdebug.exceptions import ObjectMissing, SMDebugRuntimeError
from smdebug.storage.base import Buffer, ByteSpan, Sink
from smdebug.storage.keys import checked_key, checked_prefix, checked_span, checked_start, clipped
from smdebug.storage.versions import Version

_unnamed = itertools.count(1)


class MemoryStorage:
    """Objects in a dictionary.

    `MemoryStorage.named("x")` is the same one throughout the process. A copy made by pickle or by a fork
    holds the objects of that moment, and is independent.
    """

    _by_name: dict[str, MemoryStorage] = {}  # noqa: RUF012 - shared by all on purpose

    def __init__(self, name: str = ""):
        self._name = name or f"unnamed-{next(_unnamed)}"
        # One dictionary operation is one atomic step, so no lock is needed, nor left locked by a fork.
        # Each object is in a list of its own, so that `claim` can distinguish its list from an equal one.
        self._objects: dict[str, list[bytes]] = {}

    @classmethod
    def named(cls, name: str) -> MemoryStorage:
        """The storage behind `memory://<name>`, made on first use."""
        return cls._by_name.setdefault(name, cls(name))

    def __repr__(self) -> str:
        return f"MemoryStorage({self._name!r})"

    @property
    def location(self) -> str:
        return f"memory://{self._name}"

    @property
    def concurrency(self) -> int:
        return 1

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        data = self._object(key)
        if checked_span(span) is None:
            return data
        start, stop = clipped(span, len(data))
        return data[start:stop]

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        return memoryview(bytearray(self.read(key, span)))

    def size(self, key: str) -> int:
        return len(self._object(key))

    def exists(self, key: str) -> bool:
        return checked_key(key) in self._objects

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        checked_prefix(prefix)
        checked_start(start_after)
        # Text sorts by code point, which is the order of its UTF-8 bytes.
        return iter(
            sorted(
                key
                for key in tuple(self._objects)
                if key.startswith(prefix) and (start_after is None or key > start_after)
            )
        )

    def versions(self, prefix: str) -> Iterator[Version]:
        """Keys with their sizes and digests."""
        for key in self.list(prefix):
            data = self._objects[key][0]
            yield Version(key, len(data), hashlib.sha256(data).hexdigest())

    def write(self, key: str, data: Buffer) -> None:
        self._objects[checked_key(key)] = [bytes(data)]

    def create(self, key: str) -> Sink:
        return _MemorySink(self, checked_key(key))

    def claim(self, key: str) -> bool:
        mine = [b""]
        return self._objects.setdefault(checked_key(key), mine) is mine

    def replace(self, key: str, known: bytes | None, data: Buffer) -> bool:
        """Write the object if it is still `known`, or still missing; return False if another was first."""
        if known is None:
            mine = [bytes(data)]
            return self._objects.setdefault(checked_key(key), mine) is mine
        found = self._objects.get(checked_key(key))
        if found is None or found[0] != known:
            return False
        self.write(key, data)
        return True

    def delete(self, key: str) -> None:
        self._objects.pop(checked_key(key), None)

    def _object(self, key: str) -> bytes:
        try:
            return self._objects[checked_key(key)][0]
        except KeyError:
            raise ObjectMissing(f"{self.location}/{key}") from None


class _MemorySink:
    def __init__(self, storage: MemoryStorage, key: str):
        self._storage = storage
        self._key = key
        self._written: bytearray | None = bytearray()

    def write(self, pieces: Sequence[Buffer]) -> None:
        written = self._still_open()
        for piece in pieces:
            written += piece

    def commit(self) -> None:
        written = self._still_open()
        self._written = None
        self._storage.write(self._key, written)

    def abort(self) -> None:
        self._written = None

    def _still_open(self) -> bytearray:
        if self._written is None:
            raise SMDebugRuntimeError(f"{self._key} was already committed or aborted; create a new object")
        return self._written
