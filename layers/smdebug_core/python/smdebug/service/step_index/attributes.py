"""Items in the format of DynamoDB's API, where each value has the letter of its type; and range queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError
from smdebug.service.step_index.item_reader import Item, KeyRange


def range_request(keys: KeyRange) -> dict[str, Any]:
    """The arguments of a query for the items in a range of sort keys."""
    values = {":pk": {"S": keys.pk}}
    condition = "pk = :pk"
    if keys.first and keys.last is not None:
        condition += " AND sk BETWEEN :first AND :last"
    elif keys.first:
        condition += " AND sk >= :first"
    elif keys.last is not None:
        condition += " AND sk <= :last"
    if keys.first:
        values[":first"] = {"S": keys.first}
    if keys.last is not None:
        values[":last"] = {"S": keys.last}
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        "ScanIndexForward": not keys.newest_first,
    }


def read_pages(ask: Callable[..., Mapping[str, Any]], keys: KeyRange) -> list[Item]:
    """The items in a range; each call of `ask` returns as many as fit into a page."""
    items: list[Item] = []
    request = range_request(keys)
    while keys.limit is None or len(items) < keys.limit:
        if keys.limit is not None:
            request["Limit"] = keys.limit - len(items)
        answer = ask(**request)
        items += map(item_in, answer["Items"])
        if "LastEvaluatedKey" not in answer:
            break
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    return items


def as_attributes(item: Mapping[str, Any]) -> dict[str, Any]:
    """The item as a request has it. DynamoDB has no empty sets: they are omitted."""
    return {name: as_attribute(value) for name, value in item.items() if value != frozenset()}


def item_in(attributes: Mapping[str, Any]) -> Item:
    """The item in an answer."""
    return {name: value_in(attribute) for name, attribute in attributes.items()}


def as_attribute(value: Any) -> dict[str, Any]:
    """One value, with its type."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float():
            return {"N": repr(value)}
        case bytes():
            return {"B": value}
        case frozenset():
            return {"SS": sorted(value)}
        case Mapping():
            return {"M": {key: as_attribute(item) for key, item in value.items()}}
        case list() | tuple():
            return {"L": [as_attribute(item) for item in value]}
    raise SMDebugTypeError(f"A table cannot hold a {type(value).__name__}")


def value_in(attribute: Mapping[str, Any]) -> Any:
    """The value of an attribute."""
    ((kind, value),) = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return int(value) if value.lstrip("-").isdigit() else float(value)
        case "B":
            return bytes(value)
        case "SS":
            return frozenset(value)
        case "M":
            return item_in(value)
        case "L":
            return [value_in(item) for item in value]
        case "NULL":
            return None
    raise SMDebugTypeError(f"The table holds an attribute of the unexpected type {kind}")
