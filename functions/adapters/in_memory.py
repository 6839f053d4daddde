"""The ports in memory, for tests and simulation. The same tests hold for them and for AWS."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from functions.ports import ALWAYS, LARGEST_OBJECT, ItemChange, Only, Refused, too_large
from smdebug.exceptions import ObjectMissing
from smdebug.service.step_index.item_reader import Item, ItemReader, KeyRange


class MemoryItems(ItemReader):
    """A table in memory."""

    def __init__(self) -> None:
        self._partitions: dict[str, _Partition] = {}
        self._lock = threading.Lock()

    def get(self, pk: str, sk: str) -> Item | None:
        with self._lock:
            partition = self._partitions.get(pk)
            item = partition.items.get(sk) if partition else None
            return None if item is None else _copy(item)

    def read_range(self, keys: KeyRange) -> list[Item]:
        with self._lock:
            partition = self._partitions.get(keys.pk)
            if partition is None:
                return []
            found = partition.between(keys.first, keys.last)
            ordered = reversed(found) if keys.newest_first else iter(found)
            return [_copy(partition.items[key.decode()]) for key in islice(ordered, keys.limit)]

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        with self._lock:
            partition = self._partitions.setdefault(item["pk"], _Partition())
            _check(partition.items.get(item["sk"]), only)
            partition.put(item["sk"], _copy(item))

    def update(
        self,
        pk: str,
        sk: str,
        *,
        set: Mapping[str, Any] | None = None,
        set_once: Mapping[str, Any] | None = None,
        add: Mapping[str, Any] | None = None,
        put_in: Mapping[str, Mapping[str, Any]] | None = None,
        remove_from: Mapping[str, Iterable[str]] | None = None,
        remove: Sequence[str] = (),
        only: Only = ALWAYS,
    ) -> Item:
        with self._lock:
            partition = self._partitions.setdefault(pk, _Partition())
            _check(partition.items.get(sk), only)
            item: Item = _copy(partition.items.get(sk, {"pk": pk, "sk": sk}))
            item |= _copy(set or {})
            for name, value in _copy(set_once or {}).items():
                item.setdefault(name, value)
            for name, value in (add or {}).items():
                known = item.get(name)
                if isinstance(value, frozenset):
                    item[name] = value | (known or frozenset())
                else:
                    item[name] = value + (known or 0)
            for name, entries in (put_in or {}).items():
                item[name] = {**item[name], **_copy(entries)}
            for name, keys in (remove_from or {}).items():
                removed = frozenset(keys)
                item[name] = {key: entry for key, entry in item[name].items() if key not in removed}
            for name in remove:
                item.pop(name, None)
            partition.put(sk, item)
            changed: Item = _copy(item)
            return changed

    def delete(self, pk: str, sk: str, only: Only = ALWAYS) -> None:
        with self._lock:
            partition = self._partitions.setdefault(pk, _Partition())
            _check(partition.items.get(sk), only)
            partition.remove(sk)

    def change_together(self, changes: Sequence[ItemChange]) -> None:
        with self._lock:
            for change in changes:
                partition = self._partitions.setdefault(change.pk, _Partition())
                _check(partition.items.get(change.sk), change.only)
            for change in changes:
                partition = self._partitions[change.pk]
                if change.delete:
                    partition.remove(change.sk)
                    continue
                item = partition.items.get(change.sk, {"pk": change.pk, "sk": change.sk})
                partition.put(change.sk, _copy(item) | _copy(change.set))


class _Partition:
    """The items under one partition key, and their sort keys in the order of their bytes."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.keys: list[bytes] = []

    def put(self, sk: str, item: Item) -> None:
        if sk not in self.items:
            insort(self.keys, sk.encode())
        self.items[sk] = item

    def remove(self, sk: str) -> None:
        if self.items.pop(sk, None) is not None:
            del self.keys[bisect_left(self.keys, sk.encode())]

    def between(self, first: str, last: str | None) -> Sequence[bytes]:
        begin = bisect_left(self.keys, first.encode())
        end = len(self.keys) if last is None else bisect_right(self.keys, last.encode())
        return self.keys[begin:end]


_UNCHANGEABLE = frozenset({str, int, float, bool, bytes, frozenset, type(None)})


def _copy(value: Any) -> Any:
    """Return a deep copy of plain data."""
    if type(value) in _UNCHANGEABLE:
        return value
    if isinstance(value, dict | Mapping):
        return {key: entry if type(entry) in _UNCHANGEABLE else _copy(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(entry) for entry in value]
    return value


def _check(item: Item | None, only: Only) -> None:
    held = (
        not (only.absent and item is not None)
        and not (only.present and item is None)
        and all((item or {}).get(name) == value for name, value in only.equal.items())
        and all(name not in (item or {}) or (item or {})[name] < value for name, value in only.below.items())
    )
    if not held:
        raise Refused(f"{only} does not hold", [] if item is None else [_copy(item)])


class MemoryObject(NamedTuple):
    """An object in a bucket."""

    key: str
    modified: float
    content: bytes = b""


class MemoryObjects:
    """Buckets in memory."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, MemoryObject]] = {}

    def write(self, bucket: str, key: str, content: bytes, modified: float = 0.0) -> None:
        whole_seconds = float(int(modified))  # as S3 reports it
        self.buckets.setdefault(bucket, {})[key] = MemoryObject(key, whole_seconds, content)

    def read(self, bucket: str, key: str) -> bytes:
        known = self.buckets.get(bucket, {}).get(key)
        if known is None:
            raise ObjectMissing(f"s3://{bucket}/{key}")
        if len(known.content) > LARGEST_OBJECT:
            raise too_large(f"s3://{bucket}/{key}", len(known.content))
        return known.content

    def modified(self, bucket: str, key: str) -> float | None:
        known = self.buckets.get(bucket, {}).get(key)
        return None if known is None else known.modified

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterator[MemoryObject]:
        objects = self.buckets.get(bucket, {})
        behind = None if after is None else after.encode()
        found = [key for key in objects if key.startswith(prefix)]
        for key in sorted(found, key=str.encode):
            if behind is None or key.encode() > behind:
                yield objects[key]


class MemoryWorkflow:
    """The requested executions, for the caller to run; a name starts one execution, ever."""

    def __init__(self) -> None:
        self.started: dict[str, Mapping[str, Any]] = {}
        self._names: set[str] = set()

    def start(self, name: str, request: Mapping[str, Any]) -> None:
        if name not in self._names:
            self._names.add(name)
            self.started[name] = request


class MemoryChecks:
    """Messages left for later."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Mapping[str, Any]]] = []

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        self.waiting.append((after_seconds, message))


class MemorySchedules(MemoryChecks):
    """The time at which to look for silence, of each run, and the messages left for later."""

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[str, float] = {}

    def wake(self, run: str, *, at: float) -> None:
        self.at[run] = at


class MemoryLender:
    """Credentials without access, and the policies that were requested."""

    def __init__(self) -> None:
        self.policies: dict[str, Mapping[str, Any]] = {}
        self.seconds: list[int] = []

    def lend(self, name: str, policy: Mapping[str, Any], *, seconds: int) -> Mapping[str, str]:
        self.seconds.append(seconds)
        self.policies[name] = policy
        return {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": "-", "AWS_SESSION_TOKEN": "-"}


class HandClock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time
