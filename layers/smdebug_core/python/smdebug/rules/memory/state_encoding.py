"""Encode a rule's attributes as bytes.

A list is a JSON list; every type that JSON lacks is {"<tag>": ...}. Larger arrays go into an npz part.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from smdebug.mode_keys import ModeKeys
from smdebug.numbers.foreign_types import FIRST_FOREIGN_TYPE
from smdebug.rules.memory.state_format import (
    FACTORIES,
    FOREIGN_TYPES,
    MAGIC,
    PLAIN_KINDS,
    STATE_LIMIT,
    size_error,
)

_INLINE_ARRAY = 256
_MAX_DEPTH = 60
_NAME_OF_FACTORY = {factory: name for name, factory in FACTORIES.items()}


class NotPlainData(Exception):
    """This value cannot be saved; the text names its type."""


class StateEncoder:
    """Collects attributes with `add`; `encoded` returns them as bytes.

    `SMDebugValueError` as soon as the state exceeds the limit.
    """

    def __init__(self, rule_name: str):
        self._rule_name = rule_name
        self._used = 0
        self._arrays: list[np.ndarray[Any, Any]] = []
        self._values: dict[str, Any] = {}

    def add(self, name: str, value: Any) -> None:
        """Add an attribute, or raise `NotPlainData` and leave it out."""
        mark = len(self._arrays)
        try:
            self._values[name] = self._encode(value, ())
        except NotPlainData:
            del self._arrays[mark:]
            raise

    def encoded(self) -> bytes:
        """Return the state of all attributes added."""
        text = json.dumps(self._values, separators=(",", ":"), allow_nan=False).encode()
        data = MAGIC + b"%010d\n" % len(text) + text
        if self._arrays:
            packed = io.BytesIO()
            members: dict[str, Any] = {f"a{at}": array for at, array in enumerate(self._arrays)}
            np.savez(packed, **members)
            data += packed.getvalue()
        self._check(len(data))
        return data

    def _spend(self, size: int) -> None:
        self._used += size
        self._check(self._used)

    def _check(self, size: int) -> None:
        if size > STATE_LIMIT:
            raise size_error(self._rule_name, size)

    def _encode(self, value: Any, parents: tuple[Any, ...]) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            self._spend(len(value))
            if _is_unicode(value):
                return value
            return {"u": _base64(value.encode("utf-8", "surrogatepass"))}
        if kind is int:
            return value if -(2**63) <= value < 2**64 else {"i": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"f": repr(value)}
        if kind is bytes:
            self._spend(len(value))
            return {"b": _base64(value)}
        if kind is ModeKeys:
            return {"mode": value.name}
        if isinstance(value, np.generic):
            return {"n": [_type_name(value.dtype), _base64(_bits(np.asarray(value)).tobytes())]}
        if kind is np.ndarray:
            return self._encode_array(value, parents)
        return self._encode_container(value, parents)

    def _encode_container(self, value: Any, parents: tuple[Any, ...]) -> Any:
        if any(value is parent for parent in parents) or len(parents) > _MAX_DEPTH:
            raise NotPlainData("something that contains itself")
        self._spend(8)
        parents = (*parents, value)

        def each(values: Iterable[Any]) -> list[Any]:
            return [self._encode(item, parents) for item in values]

        def pairs(mapping: Mapping[Any, Any]) -> list[Any]:
            return [[self._encode_key(key), self._encode(item, parents)] for key, item in mapping.items()]

        kind = type(value)
        if kind is list:
            return each(value)
        if kind is tuple:
            return {"t": each(value)}
        if kind is set:
            return {"s": each(value)}
        if kind is frozenset:
            return {"z": each(value)}
        if kind is dict:
            return {"d": pairs(value)}
        if kind is OrderedDict:
            return {"o": pairs(value)}
        if kind is Counter:
            return {"c": pairs(value)}
        if kind is deque:
            return {"q": [value.maxlen, each(value)]}
        if kind is defaultdict and value.default_factory in _NAME_OF_FACTORY:
            return {"e": [_NAME_OF_FACTORY[value.default_factory], pairs(value)]}
        raise NotPlainData(_with_article(kind.__name__))

    def _encode_key(self, key: Any) -> Any:
        kind = type(key)
        if kind is tuple:
            self._spend(8)
            return {"t": [self._encode_key(item) for item in key]}
        scalars = (bool, int, float, str, bytes, ModeKeys, type(None))
        if kind in scalars or isinstance(key, np.generic):
            return self._encode(key, ())
        raise NotPlainData(f"a key that is {_with_article(kind.__name__)}")

    def _encode_array(self, array: np.ndarray[Any, Any], parents: tuple[Any, ...]) -> Any:
        if array.dtype == object:
            parents = (*parents, array)
            if len(parents) > _MAX_DEPTH:
                raise NotPlainData("something that contains itself")
            values = [self._encode(item, parents) for item in array.ravel()]
            return {"x": [list(array.shape), values]}
        name = _type_name(array.dtype)
        self._spend(array.nbytes)
        if array.nbytes <= _INLINE_ARRAY:
            return {"n": [name, _base64(_bits(array).tobytes()), list(array.shape)]}
        # A copy: the rule may go on changing its array before the state is packed.
        self._arrays.append(np.array(_bits(array), order="C"))
        return {"a": [len(self._arrays) - 1, name, list(array.shape)]}


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array in a type that npz knows: bfloat16 and its like as the integers of their bits."""
    if array.dtype.num < FIRST_FOREIGN_TYPE:
        return array
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def _type_name(dtype: np.dtype[Any]) -> str:
    if dtype.num >= FIRST_FOREIGN_TYPE:
        if dtype.name in FOREIGN_TYPES:
            return dtype.name
        raise NotPlainData(f"an array of {dtype.name}")
    if dtype.kind in PLAIN_KINDS:
        return dtype.str
    raise NotPlainData(f"an array of {dtype}")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
