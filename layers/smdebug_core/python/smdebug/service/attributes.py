"""Items as DynamoDB's API has them, and back: each value with the letter of its type, and ranges of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smdebug.exceptions import SMDebugTypeError


def range_request(
    pk: str, *, first: str = "", last: str | None = None, newest_first: bool = False
) -> dict[str, Any]:
    """A query for the items whose sort keys lie from `first` to `last`, both included."""
    values = {":pk": {"S": pk}}
    condition = "pk = :pk"
    if first and last is not None:
        condition += " AND sk BETWEEN :first AND :last"
    elif first:
        condition += " AND sk >= :first"
    elif last is not None:
        condition += " AND sk <= :last"
    if first:
        values[":first"] = {"S": first}
    if last is not None:
        values[":last"] = {"S": last}
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        "ScanIndexForward": not newest_first,
    }


def page_by_page(
    ask: Callable[..., Mapping[str, Any]], request: Mapping[str, Any], limit: int | None
) -> list[dict[str, Any]]:
    """The items that a query gives, `limit` at most: each call of `ask` brings as many as fit into a page."""
    items: list[dict[str, Any]] = []
    page = dict(request)
    while limit is None or len(items) < limit:
        if limit is not None:
            page["Limit"] = limit - len(items)
        answer = ask(**page)
        items += map(item_in, answer["Items"])
        if "LastEvaluatedKey" not in answer:
            break
        page["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    return items


def as_attributes(item: Mapping[str, Any]) -> dict[str, Any]:
    """The item as a request has it. There are no empty sets in a table: an empty one is left out."""
    return {name: as_attribute(value) for name, value in item.items() if value != frozenset()}


def item_in(attributes: Mapping[str, Any]) -> dict[str, Any]:
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
            return {"M": {key: as_attribute(one) for key, one in value.items()}}
        case list() | tuple():
            return {"L": [as_attribute(one) for one in value]}
    raise SMDebugTypeError(f"A table does not hold a {type(value).__name__}")


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
            return [value_in(one) for one in value]
        case "NULL":
            return None
    raise SMDebugTypeError(
        f"The table holds an attribute of type {kind}, which nothing here writes"
    )
