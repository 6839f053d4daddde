"""How many bytes an item has, as DynamoDB counts them for its limits and its prices.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.service.step_index.attributes import as_attributes

WRITE_UNIT = 1024


def item_size(item: Mapping[str, Any]) -> int:
    """The bytes of the item, names and all."""
    return sum(_named(name, attribute) for name, attribute in as_attributes(item).items())


def _named(name: str, attribute: Mapping[str, Any]) -> int:
    return len(name.encode()) + _size(attribute)


def _size(attribute: Mapping[str, Any]) -> int:
    ((kind, value),) = attribute.items()
    match kind:
        case "S":
            return len(value.encode())
        case "B":
            return len(value)
        case "N":
            return _digits(value)
        case "SS":
            return sum(len(element.encode()) for element in value)
        case "M":
            return 3 + sum(1 + _named(key, element) for key, element in value.items())
        case "L":
            return 3 + sum(1 + _size(element) for element in value)
    return 1  # NULL and BOOL


def _digits(number: str) -> int:
    mantissa = number.lower().partition("e")[0]
    significant = mantissa.lstrip("-").replace(".", "").strip("0")
    return (len(significant) + 1) // 2 + 1 + number.startswith("-")
