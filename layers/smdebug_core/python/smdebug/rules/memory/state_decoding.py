"""Decode a rule's saved attributes. The bytes are not trusted: nothing in them is executed."""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import re
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from smdebug.exceptions import NewerRecord
from smdebug.mode_keys import ModeKeys
from smdebug.rules.memory.state_format import (
    FACTORIES,
    FOREIGN_TYPES,
    HEADER,
    MAGIC,
    PLAIN_KINDS,
    STATE_FORMAT,
)

_NEWER = re.compile(rb"smdebug-state ([1-9][0-9]{0,5}) ")


class InvalidState(ValueError):
    """These bytes are not a saved state."""


# Everything that decoding untrusted bytes can raise.
DECODING_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
    EOFError,
    OSError,
    NotImplementedError,
    SyntaxError,
    zipfile.BadZipFile,
    binascii.Error,
)


def decode(data: bytes) -> dict[str, Any]:
    """Return the attributes in a saved state, by name; one of `DECODING_ERRORS` if it is damaged."""
    text, packed = _parts(data)
    values = json.loads(text)
    if not isinstance(values, dict):
        raise InvalidState("it does not hold attributes")
    decoder = _Decoder(_arrays(packed))
    return {name: decoder.value(value) for name, value in values.items()}


def _parts(data: bytes) -> tuple[bytes, bytes]:
    if not data.startswith(MAGIC):
        if newer := _NEWER.match(data):
            raise NewerRecord("The saved state of a rule", f"format {newer[1].decode()}", f"{STATE_FORMAT}")
        raise InvalidState(f"it does not begin with {MAGIC.decode()!r}")
    length = data[len(MAGIC) : HEADER - 1]
    if not length.isdigit() or data[HEADER - 1 : HEADER] != b"\n":
        raise InvalidState("its length is not a number")
    end = HEADER + int(length)
    if end > len(data):
        raise InvalidState("it is truncated")
    return data[HEADER:end], data[end:]


def _arrays(packed: bytes) -> list[np.ndarray[Any, Any]]:
    """Return the arrays of the npz part: uncompressed, of the announced size, none of objects."""
    if not packed:
        return []
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise InvalidState("its arrays are compressed")
        if sum(member.file_size for member in members) > len(packed):
            raise InvalidState("its arrays are larger than the file")
        for member in members:
            with archive.open(member) as opened:
                _check_header(opened, member.file_size)
    with np.load(io.BytesIO(packed), allow_pickle=False) as loaded:
        return [loaded[f"a{at}"] for at in range(len(members))]


def _check_header(opened: Any, size: int) -> None:
    version = np.lib.format.read_magic(opened)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(opened)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(opened)
    else:
        raise InvalidState(f"its arrays have npy version {version}")
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > size or any(n < 0 for n in shape):
        raise InvalidState("an array does not match its header")


class _Decoder:
    """Decodes values of the JSON part, and the arrays they refer to."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]]):
        self._arrays = arrays

    def value(self, encoded: Any) -> Any:
        if isinstance(encoded, list):
            return [self.value(item) for item in encoded]
        if not isinstance(encoded, dict):
            return encoded
        if len(encoded) != 1:
            raise InvalidState("a value has no single type")
        (tag, content), *_ = encoded.items()
        decode_tag = self._BY_TAG.get(tag)
        if decode_tag is None:
            raise InvalidState(f"a value has the unknown type {tag!r}")
        return decode_tag(self, content)

    def _values(self, content: Any) -> list[Any]:
        if not isinstance(content, list):
            raise InvalidState("a list was expected")
        return [self.value(item) for item in content]

    def _pairs(self, content: Any) -> list[tuple[Any, Any]]:
        if not isinstance(content, list):
            raise InvalidState("pairs were expected")
        return [(self.value(key), self.value(value)) for key, value in content]

    def _inline_array(self, content: Any) -> Any:
        name, data, *shape = content
        dtype = _dtype(name, bits=True)
        if not dtype.itemsize:  # an empty text has no bytes to count
            return np.zeros(_shape(shape[0]), dtype) if shape else dtype.type()
        flat = np.frombuffer(_bytes(data), dtype)
        if not shape:
            if flat.size != 1:
                raise InvalidState("a number has no single value")
            return _typed(flat, name)[0]
        return _typed(flat.reshape(_shape(shape[0])).copy(), name)

    def _packed_array(self, content: Any) -> Any:
        at, name, shape = content
        if not isinstance(at, int) or at < 0:
            raise InvalidState("it refers to a missing array")
        array = self._arrays[at]
        if array.dtype != _dtype(name, bits=True) or array.shape != _shape(shape):
            raise InvalidState("an array does not have the announced type and shape")
        return _typed(array, name)

    def _object_array(self, content: Any) -> Any:
        shape, values = content
        array = np.empty(len(values), dtype=object)
        for at, value in enumerate(self._values(values)):
            array[at] = value
        return array.reshape(_shape(shape))

    def _deque(self, content: Any) -> Any:
        maxlen, values = content
        return deque(self._values(values), maxlen)

    def _defaultdict(self, content: Any) -> Any:
        factory, pairs = content
        return defaultdict(FACTORIES[factory], self._pairs(pairs))

    def _float(self, content: Any) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise InvalidState("a float is invalid")
        return float(content)

    _BY_TAG: Mapping[str, Callable[[_Decoder, Any], Any]] = {
        "u": lambda self, content: _bytes(content).decode("utf-8", "surrogatepass"),
        "i": lambda self, content: int(content, 16),
        "f": _float,
        "b": lambda self, content: _bytes(content),
        "mode": lambda self, content: ModeKeys[content],
        "n": _inline_array,
        "a": _packed_array,
        "x": _object_array,
        "t": lambda self, content: tuple(self._values(content)),
        "s": lambda self, content: set(self._values(content)),
        "z": lambda self, content: frozenset(self._values(content)),
        "d": lambda self, content: dict(self._pairs(content)),
        "o": lambda self, content: OrderedDict(self._pairs(content)),
        "c": lambda self, content: Counter(dict(self._pairs(content))),
        "q": _deque,
        "e": _defaultdict,
    }


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _shape(content: Any) -> tuple[int, ...]:
    if not isinstance(content, list) or not all(type(n) is int and n >= 0 for n in content):
        raise InvalidState("an array has no valid shape")
    return tuple(content)


def _dtype(name: Any, *, bits: bool) -> np.dtype[Any]:
    """Return the numpy type of that name; with `bits`, the one in which its values are stored."""
    if name in FOREIGN_TYPES:
        if bits:
            return np.dtype(np.uint16 if name == "bfloat16" else np.uint8)
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidState(f"reading {name} requires the package ml_dtypes") from None
        foreign: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return foreign
    dtype = np.dtype(str(name))
    if dtype.kind not in PLAIN_KINDS:
        raise InvalidState(f"it has values of type {name!r}")
    return dtype


def _typed(array: Any, name: str) -> Any:
    """Return the stored array as values of the type `name`."""
    return array.view(_dtype(name, bits=False)) if name in FOREIGN_TYPES else array
