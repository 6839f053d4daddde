"""The limits of a table: the size of an item, the throughput, and the items that expire."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from local_aws.limits.numbers import KB, Limits
from local_aws.limits.replacing import replace
from local_aws.moto_fixes import WRITING
from local_aws.template import ACCOUNT, REGION


def item_size(item: Mapping[str, Any]) -> int:
    """The bytes of an item in DynamoDB's own form: its names and values."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(typed: Mapping[str, Any]) -> int:
    ((kind, value),) = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "B":
            return len(value) * 3 // 4  # base64
        case "N":
            return _size_of_number(value)
        case "SS":
            return sum(len(text.encode()) for text in value)
        case "NS":
            return sum(map(_size_of_number, value))
        case "BS":
            return sum(len(text) * 3 // 4 for text in value)
        case "M":
            return 3 + len(value) + item_size(value)
        case "L":
            return 3 + len(value) + sum(map(_size, value))
    return 1  # BOOL, NULL


def _size_of_number(text: str) -> int:
    """About one byte for two significant digits, and one more."""
    digits = str(text).lower().partition("e")[0].strip("-+").replace(".", "").strip("0")
    return 1 + math.ceil(len(digits) / 2)


class Throughput:
    """The units that were used in the present second."""

    def __init__(self, limits: Limits, now: Callable[[], float]):
        self._limits = limits
        self._now = now
        self._used: Counter[tuple[str, ...]] = Counter()
        self._second = 0
        self._lock = threading.Lock()

    def write(self, table: str, key: str, size: int) -> None:
        """Use write units, or raise what botocore repeats."""
        units = max(1, math.ceil(size / KB))
        self._use(("write", table), units, self._limits.table_writes)
        self._use(("write", table, key), units, self._limits.key_writes)

    def read(self, table: str, size: int) -> None:
        """Use units of consistent reads."""
        units = max(1, math.ceil(size / (4 * KB)))
        self._use(("read", table), units, self._limits.table_reads)

    def _use(self, what: tuple[str, ...], units: int, most: int) -> None:
        from moto.dynamodb.exceptions import DynamodbException

        with self._lock:
            second = int(self._now())
            if second != self._second:
                self._second, self._used = second, Counter()
            if self._used[what] + units > most and self._used[what]:
                raise DynamodbException(
                    "com.amazonaws.dynamodb.v20120810#ThrottlingException",
                    "Throughput exceeds the current capacity of your table or index",
                )
            self._used[what] += units


def limit_table(limits: Limits, now: Callable[[], float]) -> None:
    """Refuse larger items than DynamoDB holds, undo what was written of them, and throttle.

    Before `make_dynamodb_thread_safe`, which serializes the writes.
    """
    from moto.dynamodb.exceptions import ItemSizeTooLarge, ItemSizeToUpdateTooLarge
    from moto.dynamodb.models import DynamoDBBackend

    throughput = Throughput(limits, now)

    def limited_put(put: Any) -> Any:
        def limited(backend: Any, table_name: str, item_attrs: Any, *args: Any, **kw: Any) -> Any:
            size = item_size(item_attrs)
            if size > limits.item_bytes:
                raise ItemSizeTooLarge
            throughput.write(table_name, _key_of(backend.get_table(table_name), item_attrs), size)
            return put(backend, table_name, item_attrs, *args, **kw)

        return limited

    def limited_update(update: Any) -> Any:
        def limited(backend: Any, table_name: str, key: Any, *args: Any, **kw: Any) -> Any:
            table = backend.get_table(table_name)
            before = _stored(table, key)
            throughput.write(table_name, _key_of(table, key), item_size(before or key))
            after = update(backend, table_name, key, *args, **kw)
            if item_size(after.to_json()["Attributes"]) > limits.item_bytes:
                table.delete_item(*_keys(table, key))
                if before is not None:
                    table.put_item(before)
                raise ItemSizeToUpdateTooLarge
            return after

        return limited

    def limited_get(get: Any) -> Any:
        def limited(backend: Any, table_name: str, *args: Any, **kw: Any) -> Any:
            item = get(backend, table_name, *args, **kw)
            throughput.read(table_name, _size_of_items([item] if item else []))
            return item

        return limited

    def limited_query(query: Any) -> Any:
        def limited(backend: Any, table_name: str, *args: Any, **kw: Any) -> Any:
            found = query(backend, table_name, *args, **kw)
            throughput.read(table_name, _size_of_items(found[0]))
            return found

        return limited

    replace(DynamoDBBackend, "put_item", limited_put)
    replace(DynamoDBBackend, "update_item", limited_update)
    replace(DynamoDBBackend, "get_item", limited_get)
    replace(DynamoDBBackend, "query", limited_query)


def delete_expired(now: float) -> int:
    """Delete the items whose time to live is over, as DynamoDB does within days; return how many."""
    from moto.dynamodb.models import dynamodb_backends

    deleted = 0
    for table in list(dynamodb_backends[ACCOUNT][REGION].tables.values()):
        if table.ttl.get("TimeToLiveStatus") != "ENABLED":
            continue
        attribute = table.ttl["AttributeName"]
        for item in list(table.all_items()):
            expires = item.attrs.get(attribute)
            if expires is not None and expires.type == "N" and float(expires.value) < now:
                with WRITING:
                    table.delete_item(item.hash_key, item.range_key)
                deleted += 1
    return deleted


def _keys(table: Any, key: Mapping[str, Any]) -> tuple[Any, Any]:
    from moto.dynamodb.models.dynamo_type import DynamoType

    ranged = table.range_key_attr and DynamoType(key[table.range_key_attr])
    return DynamoType(key[table.hash_key_attr]), ranged


def _key_of(table: Any, item: Mapping[str, Any]) -> str:
    return str(item[table.hash_key_attr])


def _stored(table: Any, key: Mapping[str, Any]) -> dict[str, Any] | None:
    item = table.get_item(*_keys(table, key))
    return None if item is None else dict(item.to_json()["Attributes"])


def _size_of_items(items: list[Any]) -> int:
    return sum(item_size(item.to_json()["Attributes"]) for item in items)
