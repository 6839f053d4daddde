"""The ports in memory, for tests and simulation; one set of tests holds them to AWS's side."""

from __future__ import annotations

import copy
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from functions.ports import ALWAYS, Item, Only, Refused
from smdebug.exceptions import ObjectMissing


class MemoryItems:
    """A table in memory."""

    def __init__(self) -> None:
        self._partitions: dict[str, dict[str, Item]] = {}
        self._lock = threading.Lock()

    def get(self, pk: str, sk: str) -> Item | None:
        with self._lock:
            return copy.deepcopy(self._partitions.get(pk, {}).get(sk))

    def query(
        self,
        pk: str,
        *,
        first: str = "",
        last: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
    ) -> list[Item]:
        with self._lock:
            items = self._partitions.get(pk, {})
            keys = sorted(items, key=str.encode)
            ordered = [key.encode() for key in keys]
            begin = bisect_left(ordered, first.encode())
            end = len(keys) if last is None else bisect_right(ordered, last.encode())
            chosen = keys[begin:end]
            if newest_first:
                chosen.reverse()
            return [copy.deepcopy(items[key]) for key in chosen[:limit]]

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        with self._lock:
            items = self._partitions.setdefault(item["pk"], {})
            _check(items.get(item["sk"]), only)
            items[item["sk"]] = copy.deepcopy(item)

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
            items = self._partitions.setdefault(pk, {})
            _check(items.get(sk), only)
            item = copy.deepcopy(items.get(sk, {"pk": pk, "sk": sk}))
            item |= copy.deepcopy(dict(set or {}))
            for name, value in (set_once or {}).items():
                item.setdefault(name, copy.deepcopy(value))
            for name, value in (add or {}).items():
                known = item.get(name)
                if isinstance(value, frozenset):
                    item[name] = value | (known or frozenset())
                else:
                    item[name] = value + (known or 0)
            for name, entries in (put_in or {}).items():
                item[name] = {**item[name], **copy.deepcopy(dict(entries))}
            for name, keys in (remove_from or {}).items():
                gone = frozenset(keys)
                item[name] = {key: one for key, one in item[name].items() if key not in gone}
            for name in remove:
                item.pop(name, None)
            items[sk] = item
            return copy.deepcopy(item)

    def delete(self, pk: str, sk: str) -> None:
        with self._lock:
            self._partitions.get(pk, {}).pop(sk, None)


def _check(item: Item | None, only: Only) -> None:
    held = (
        not (only.absent and item is not None)
        and not (only.present and item is None)
        and all((item or {}).get(name) == value for name, value in only.equal.items())
        and all((item or {}).get(name, value - 1) < value for name, value in only.below.items())
    )
    if not held:
        raise Refused(f"{only} does not hold")


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
        self.buckets.setdefault(bucket, {})[key] = MemoryObject(key, modified, content)

    def read(self, bucket: str, key: str) -> bytes:
        known = self.buckets.get(bucket, {}).get(key)
        if known is None:
            raise ObjectMissing(f"s3://{bucket}/{key}")
        return known.content

    def list(self, bucket: str, prefix: str, after: str | None = None) -> Iterator[MemoryObject]:
        objects = self.buckets.get(bucket, {})
        for key in sorted(objects, key=str.encode):
            if key.startswith(prefix) and (after is None or key.encode() > after.encode()):
                yield objects[key]


class MemoryWorkflow:
    """Executions that were asked for, to be run by whoever holds this."""

    def __init__(self) -> None:
        self.started: dict[str, Mapping[str, Any]] = {}

    def start(self, name: str, told: Mapping[str, Any]) -> None:
        self.started.setdefault(name, told)


class MemoryChecks:
    """Messages left for later."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Mapping[str, Any]]] = []

    def leave(self, message: Mapping[str, Any], *, after_seconds: int) -> None:
        self.waiting.append((after_seconds, message))


class MemorySchedules:
    """When each run will be looked at."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def wake(self, run: str, *, at: float) -> None:
        self.at[run] = at


class HandClock:
    """A clock that goes when it is told to."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time
