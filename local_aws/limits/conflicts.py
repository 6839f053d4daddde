"""Transactions that meet another write of the same item: DynamoDB cancels them, and moto lets them wait."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

_CONFLICT = "Transaction is ongoing for the item"


class WritesInProgress:
    """The items that are being written, and those within transactions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._written: Counter[str] = Counter()
        self._transacted: Counter[str] = Counter()
        self._own = threading.local()

    @contextmanager
    def transaction(self, items: Sequence[str]) -> Iterator[list[bool]]:
        """Give which of the items another write has; none is taken if there is one."""
        with self._lock:
            taken = [bool(self._written[item] or self._transacted[item]) for item in items]
            if not any(taken):
                self._transacted.update(items)
        self._own.depth = getattr(self._own, "depth", 0) + 1
        try:
            yield taken
        finally:
            self._own.depth -= 1
            if not any(taken):
                with self._lock:
                    self._transacted.subtract(items)

    @contextmanager
    def write(self, item: str) -> Iterator[bool]:
        """Give whether a transaction of another has the item."""
        if getattr(self._own, "depth", 0):  # a part of our own transaction
            yield False
            return
        with self._lock:
            is_taken = bool(self._transacted[item])
            if not is_taken:
                self._written[item] += 1
        try:
            yield is_taken
        finally:
            if not is_taken:
                with self._lock:
                    self._written[item] -= 1


def conflict_as_dynamodb_does() -> None:
    """Refuse what meets a transaction. After `make_dynamodb_thread_safe`, outside of its lock."""
    from moto.dynamodb.exceptions import DynamodbException, TransactionCanceledException
    from moto.dynamodb.models import DynamoDBBackend

    def transacting(transact: Any) -> Any:
        def limited(backend: Any, transact_items: list[dict[str, Any]]) -> None:
            parts = [next(iter(item.values())) for item in transact_items]
            with _WRITES.transaction([_item(backend, part) for part in parts]) as taken:
                if any(taken):
                    reasons = [("TransactionConflict" if it else None, _CONFLICT, None) for it in taken]
                    raise TransactionCanceledException(reasons)
                transact(backend, transact_items)

        return limited

    def writing(write: Any) -> Any:
        def limited(backend: Any, table_name: str, key: Any, *args: Any, **kw: Any) -> Any:
            with _WRITES.write(_name(backend, table_name, key)) as is_taken:
                if is_taken:
                    kind = "com.amazonaws.dynamodb.v20120810#TransactionConflictException"
                    raise DynamodbException(kind, _CONFLICT)
                return write(backend, table_name, key, *args, **kw)

        return limited

    _wrap(DynamoDBBackend, "transact_write_items", transacting)
    for name in ("put_item", "update_item", "delete_item"):
        _wrap(DynamoDBBackend, name, writing)


_WRITES = WritesInProgress()


def _wrap(owner: Any, name: str, around: Callable[[Any], Any]) -> None:
    """Put it around what is there, its lock included, unless an earlier stack has done so."""
    present = getattr(owner, name)
    if not hasattr(present, "conflicts"):
        wrapped = functools.wraps(present)(around(present))
        wrapped.conflicts = True  # type: ignore[attr-defined]
        setattr(owner, name, wrapped)


def _item(backend: Any, part: Mapping[str, Any]) -> str:
    return _name(backend, part["TableName"], part.get("Key") or part["Item"])


def _name(backend: Any, table: str, attributes: Mapping[str, Any]) -> str:
    found = backend.get_table(table)
    keys = (found.hash_key_attr, found.range_key_attr)
    return json.dumps([found.name, *(attributes.get(key) for key in keys if key)])
