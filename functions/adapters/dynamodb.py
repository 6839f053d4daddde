"""The item store on a DynamoDB table. Its expressions are built here only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from functions.ports import ALWAYS, ItemChange, Only, Refused, TooMuch
from smdebug.service.step_index.attributes import (
    as_attribute,
    as_attributes,
    item_in,
    read_pages,
)
from smdebug.service.step_index.item_reader import Item, ItemReader, KeyRange

_SLOW_DOWN = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "InternalServerError",
        "TransactionConflictException",
    }
)


class DynamoItems(ItemReader):
    """The items of one table."""

    def __init__(self, table: str, client: Any):
        self._table = table
        self._client = client

    def get(self, pk: str, sk: str) -> Item | None:
        answer = self._ask("get_item", Key=_key(pk, sk), ConsistentRead=True)
        return item_in(answer["Item"]) if "Item" in answer else None

    def read_range(self, keys: KeyRange) -> list[Item]:
        return read_pages(lambda **page: self._ask("query", **page), keys)

    def put(self, item: Item, only: Only = ALWAYS) -> None:
        words = _Words()
        condition = words.condition(only)
        self._ask("put_item", Item=as_attributes(item), **condition, **words.used())

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
        words = _Words()
        name, value = words.name, words.value
        sets = [f"{name(key)} = {value(new)}" for key, new in (set or {}).items()]
        for key, new in (set_once or {}).items():
            sets.append(f"{name(key)} = if_not_exists({name(key)}, {value(new)})")
        removes = [name(key) for key in remove]
        for key, entries in (put_in or {}).items():
            sets += [f"{name(key)}.{name(at)} = {value(new)}" for at, new in entries.items()]
        for key, removed in (remove_from or {}).items():
            removes += [f"{name(key)}.{name(at)}" for at in removed]
        adds = [f"{name(key)} {value(new)}" for key, new in (add or {}).items()]
        clauses = {"SET": sets, "REMOVE": removes, "ADD": adds}
        expression = " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items() if parts)
        answer = self._ask(
            "update_item",
            Key=_key(pk, sk),
            UpdateExpression=expression,
            ReturnValues="ALL_NEW",
            **words.condition(only),
            **words.used(),
        )
        return item_in(answer["Attributes"])

    def delete(self, pk: str, sk: str, only: Only = ALWAYS) -> None:
        words = _Words()
        condition = words.condition(only)
        self._ask("delete_item", Key=_key(pk, sk), **condition, **words.used())

    def change_together(self, changes: Sequence[ItemChange]) -> None:
        self._call("transact_write_items", TransactItems=list(map(self._one_of_several, changes)))

    def _one_of_several(self, change: ItemChange) -> dict[str, Any]:
        words = _Words()
        sets = [f"{words.name(key)} = {words.value(new)}" for key, new in change.set.items()]
        condition = words.condition(change.only)
        target = {"TableName": self._table, "Key": _key(change.pk, change.sk), **condition}
        if change.delete:
            return {"Delete": {**target, **words.used()}}
        expression = f"SET {', '.join(sets)}"
        return {"Update": {**target, "UpdateExpression": expression, **words.used()}}

    def _ask(self, what: str, **request: Any) -> Any:
        return self._call(what, TableName=self._table, **request)

    def _call(self, what: str, **request: Any) -> Any:
        from botocore.exceptions import ClientError, HTTPClientError
        from botocore.exceptions import ConnectionError as NotConnected

        try:
            return getattr(self._client, what)(**request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in ("ConditionalCheckFailedException", "TransactionCanceledException"):
                raise Refused(error.response["Error"].get("Message", code), _found(error.response)) from error
            if code in _SLOW_DOWN:
                raise TooMuch(f"{what} on table {self._table}: {code}") from error
            raise
        except (NotConnected, HTTPClientError) as error:
            raise TooMuch(f"{what} on table {self._table}: {error}") from error


class _Words:
    """The names and values of one request, as numbered placeholders, so that any attribute name is valid."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def name(self, name: str) -> str:
        return self._names.setdefault(name, f"#n{len(self._names)}")

    def value(self, value: Any) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = as_attribute(value)
        return placeholder

    def condition(self, only: Only) -> dict[str, str]:
        clauses = []
        if only.absent:
            clauses.append(f"attribute_not_exists({self.name('pk')})")
        if only.present:
            clauses.append(f"attribute_exists({self.name('pk')})")
        clauses += [f"{self.name(key)} = {self.value(expected)}" for key, expected in only.equal.items()]
        clauses += [
            f"(attribute_not_exists({self.name(key)}) OR {self.name(key)} < {self.value(bound)})"
            for key, bound in only.below.items()
        ]
        if not clauses:
            return {}
        return {
            "ConditionExpression": " AND ".join(clauses),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def used(self) -> dict[str, Any]:
        used: dict[str, Any] = {}
        if self._names:
            used["ExpressionAttributeNames"] = {short: name for name, short in self._names.items()}
        if self._values:
            used["ExpressionAttributeValues"] = self._values
        return used


def _found(answer: Mapping[str, Any]) -> list[Item]:
    """The items because of which a write was refused."""
    reasons = [answer, *answer.get("CancellationReasons", ())]
    return [item_in(reason["Item"]) for reason in reasons if reason.get("Item")]


def _key(pk: str, sk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}
