"""What a rule remembers from step to step, as bytes: its own attributes, where they are plain data.

    state = save_state(rule)                       # after a step
    rule = MyRule(trial, threshold="0.5")          # later, in another process
    restore_state(rule, state)                     # goes on where the first one was

The bytes are JSON, followed by one npz file when there are larger arrays. Nothing in them is executed
when they are read, whoever wrote them.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smdebug.exceptions import DamagedFile, SMDebugValueError
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys

if TYPE_CHECKING:
    from smdebug.rules.rule import Rule

STATE_LIMIT = 64 * 1024 * 1024
_MAGIC = b"smdebug-state 1 "
_HEADER = len(_MAGIC) + 11  # the length of the JSON part in ten digits, and a newline
_INLINE_ARRAY = 256
_DEEPEST = 60

# What a fresh rule has from its base class: given, not remembered.
BASE_ATTRIBUTES = frozenset(
    (
        "base_trial",
        "other_trials",
        "trials",
        "req_tensors",
        "logger",
        "rule_name",
        "report",
        "findings",
        "looked",
        "skipped",
        "_actions",
    )
)

_already_named: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class RuleState:
    """The remembered attributes of one rule; `left_out` names those that are no plain data."""

    data: bytes
    left_out: tuple[str, ...] = ()

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)


def save_state(rule: Rule) -> RuleState:
    """What the rule remembers, as bytes for `restore_state`.

    Kept are None, bool, int, float, str, bytes, lists, tuples, sets, dicts (also ordered, default and
    counting ones), deques, modes, numpy scalars and arrays, in any nesting; their types come back as
    they were. An attribute that holds anything else is named once in a warning and not kept.
    `SMDebugValueError` above 64 MB.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    kept: dict[str, Any] = {}
    left_out = []
    budget = _Budget(rule.rule_name)
    for name, value in vars(rule).items():
        if name in BASE_ATTRIBUTES or any(value is trial for trial in rule.trials):
            continue
        if getattr(type(value), "comes_from_parameters", False):
            continue  # the constructor makes it again
        mark = len(arrays)
        try:
            kept[name] = _encode(value, arrays, budget, ())
        except _NotPlain as problem:
            del arrays[mark:]
            left_out.append(name)
            _name_once(rule, name, str(problem))
    text = json.dumps(kept, separators=(",", ":"), allow_nan=False).encode()
    data = _MAGIC + b"%010d\n" % len(text) + text
    if arrays:
        packed = io.BytesIO()
        members: dict[str, Any] = {f"a{at}": array for at, array in enumerate(arrays)}
        np.savez(packed, **members)
        data += packed.getvalue()
    budget.check(len(data))
    return RuleState(data, tuple(left_out))


def restore_state(rule: Rule, state: RuleState | bytes | bytearray | memoryview) -> None:
    """Give a fresh rule the attributes that `save_state` kept.

    `DamagedFile` if the bytes are not such a state; the rule is then as it was.
    """
    for name, value in read_state(state, rule_name=rule.rule_name).items():
        setattr(rule, name, value)


def read_state(
    state: RuleState | bytes | bytearray | memoryview, *, rule_name: str = "?"
) -> dict[str, Any]:
    """The attributes in a saved state, by name."""
    data = state.data if isinstance(state, RuleState) else bytes(state)
    if len(data) > STATE_LIMIT:
        raise _Budget(rule_name).exceeded(len(data))
    try:
        text, packed = _parts(data)
        values = json.loads(text)
        if not isinstance(values, dict):
            raise _Damaged("it does not hold attributes")
        read = _Reader(_arrays(packed))
        decoded = {name: read.value(value) for name, value in values.items()}
        if forbidden := BASE_ATTRIBUTES & set(decoded):
            raise _Damaged(f"it would replace {', '.join(sorted(forbidden))}")
        if any(name.startswith("__") for name in decoded):
            raise _Damaged("it would replace what belongs to Python")
    except _DAMAGE as error:
        problem = str(error) or type(error).__name__
        raise DamagedFile(f"the saved state of rule {rule_name}", problem) from error
    return decoded


class _NotPlain(Exception):
    """This value cannot be remembered; the text says what it is, and where."""


class _Damaged(ValueError):
    """These bytes are no state."""


# All that reading bytes of unknown origin can end in.
_DAMAGE = (
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


class _Budget:
    """How much of the limit is left, so that a state that is too large is refused before it is built."""

    def __init__(self, rule_name: str):
        self.rule_name = rule_name
        self.used = 0

    def spend(self, size: int) -> None:
        self.used += size
        self.check(self.used)

    def check(self, size: int) -> None:
        if size > STATE_LIMIT:
            raise self.exceeded(size)

    def exceeded(self, size: int) -> SMDebugValueError:
        return SMDebugValueError(
            f"The state of rule {self.rule_name} is larger than {STATE_LIMIT >> 20} MB "
            f"({size >> 20} MB or more). Let the rule keep what it needs of a tensor, not all of it."
        )


def _name_once(rule: Rule, attribute: str, problem: str) -> None:
    key = (f"{type(rule).__module__}.{type(rule).__qualname__}", attribute)
    if key not in _already_named:
        _already_named.add(key)
        get_logger().warning(
            "Rule %s: attribute %s is not remembered between steps, because %s is no plain data",
            rule.rule_name,
            attribute,
            problem,
        )


# Writing. A list is a JSON list; everything that JSON does not have is {"<tag>": ...}.


def _encode(
    value: Any, arrays: list[np.ndarray[Any, Any]], budget: _Budget, inside: tuple[Any, ...]
) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        budget.spend(len(value))
        return (
            value if _is_unicode(value) else {"u": _base64(value.encode("utf-8", "surrogatepass"))}
        )
    if kind is int:
        return value if -(2**63) <= value < 2**64 else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if kind is bytes:
        budget.spend(len(value))
        return {"b": _base64(value)}
    if kind is ModeKeys:
        return {"mode": value.name}
    if isinstance(value, np.generic):
        return {"n": [_type_name(value.dtype), _base64(_bits(np.asarray(value)).tobytes())]}
    if isinstance(value, np.ndarray) and kind is np.ndarray:
        return _encode_array(value, arrays, budget, inside)
    if any(value is one for one in inside) or len(inside) > _DEEPEST:
        raise _NotPlain("something that contains itself")
    budget.spend(8)
    inside = (*inside, value)

    def each(values: Iterable[Any]) -> list[Any]:
        return [_encode(one, arrays, budget, inside) for one in values]

    def pairs(mapping: Mapping[Any, Any]) -> list[Any]:
        return [[_encode_key(key, budget), *each([one])] for key, one in mapping.items()]

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
    raise _NotPlain(f"{_article(kind.__name__)}")


def _encode_key(key: Any, budget: _Budget) -> Any:
    kind = type(key)
    if kind is tuple:
        budget.spend(8)
        return {"t": [_encode_key(one, budget) for one in key]}
    if kind in (bool, int, float, str, bytes, ModeKeys, type(None)) or isinstance(key, np.generic):
        return _encode(key, [], budget, ())
    raise _NotPlain(f"a key that is {_article(kind.__name__)}")


def _encode_array(
    array: np.ndarray[Any, Any],
    arrays: list[np.ndarray[Any, Any]],
    budget: _Budget,
    inside: tuple[Any, ...],
) -> Any:
    if array.dtype == object:
        inside = (*inside, array)
        if len(inside) > _DEEPEST:
            raise _NotPlain("something that contains itself")
        values = [_encode(one, arrays, budget, inside) for one in array.ravel()]
        return {"x": [list(array.shape), values]}
    name = _type_name(array.dtype)
    budget.spend(array.nbytes)
    if array.nbytes <= _INLINE_ARRAY:
        return {"n": [name, _base64(_bits(array).tobytes()), list(array.shape)]}
    # A copy: the rule may go on changing its array before the state is packed.
    arrays.append(np.array(_bits(array), order="C"))
    return {"a": [len(arrays) - 1, name, list(array.shape)]}


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in a type that npz knows: bfloat16 and its like as the integers of their bits."""
    if array.dtype.num < _FIRST_FOREIGN_TYPE:
        return array
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


_FIRST_FOREIGN_TYPE = 256  # NPY_USERDEF
_FOREIGN_TYPES = frozenset(
    (
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
    )
)


def _type_name(dtype: np.dtype[Any]) -> str:
    if dtype.num >= _FIRST_FOREIGN_TYPE:
        if dtype.name in _FOREIGN_TYPES:
            return dtype.name
        raise _NotPlain(f"an array of {dtype.name}")
    if dtype.kind in "biufcSUmM":
        return dtype.str
    raise _NotPlain(f"an array of {dtype}")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


_FACTORIES: Mapping[str, Callable[[], Any] | None] = {
    "None": None,
    "list": list,
    "dict": dict,
    "set": set,
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "tuple": tuple,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
}
_NAME_OF_FACTORY = {factory: name for name, factory in _FACTORIES.items()}


# Reading.


def _parts(data: bytes) -> tuple[bytes, bytes]:
    if not data.startswith(_MAGIC):
        raise _Damaged(f"it does not begin with {_MAGIC.decode()!r}")
    length = data[len(_MAGIC) : _HEADER - 1]
    if not length.isdigit() or data[_HEADER - 1 : _HEADER] != b"\n":
        raise _Damaged("its length is not a number")
    end = _HEADER + int(length)
    if end > len(data):
        raise _Damaged("it is cut off")
    return data[_HEADER:end], data[end:]


def _arrays(packed: bytes) -> list[np.ndarray[Any, Any]]:
    """The arrays of the npz part, each of which is as long as it says, and none of which is an object."""
    if not packed:
        return []
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise _Damaged("its arrays are compressed")
        if sum(member.file_size for member in members) > len(packed):
            raise _Damaged("its arrays are larger than the file")
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
        raise _Damaged(f"its arrays are of npy version {version}")
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > size or any(n < 0 for n in shape):
        raise _Damaged("an array in it is not what its header says")


class _Reader:
    """Values out of the JSON, with the arrays they refer to."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]]):
        self._arrays = arrays

    def value(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self.value(one) for one in told]
        if not isinstance(told, dict):
            return told
        if len(told) != 1:
            raise _Damaged("a value in it has no single type")
        (tag, content), *_ = told.items()
        read = self._READERS.get(tag)
        if read is None:
            raise _Damaged(f"it has a value of unknown type {tag!r}")
        return read(self, content)

    def _values(self, told: Any) -> list[Any]:
        if not isinstance(told, list):
            raise _Damaged("a list was expected")
        return [self.value(one) for one in told]

    def _pairs(self, told: Any) -> list[tuple[Any, Any]]:
        if not isinstance(told, list):
            raise _Damaged("pairs were expected")
        return [(self.value(key), self.value(value)) for key, value in told]

    def _packed(self, told: Any) -> Any:
        name, data, *shape = told
        dtype = _dtype(name, bits=True)
        if not dtype.itemsize:  # a text of no characters has no bytes to count
            return np.zeros(_shape(shape[0]), dtype) if shape else dtype.type()
        flat = np.frombuffer(_bytes(data), dtype)
        if not shape:
            if flat.size != 1:
                raise _Damaged("a number in it has no single value")
            return _unpacked(flat, name)[0]
        return _unpacked(flat.reshape(_shape(shape[0])).copy(), name)

    def _array(self, told: Any) -> Any:
        at, name, shape = told
        if not isinstance(at, int) or at < 0:
            raise _Damaged("it refers to an array that is not there")
        array = self._arrays[at]
        if array.dtype != _dtype(name, bits=True) or array.shape != _shape(shape):
            raise _Damaged("an array in it is not what was announced")
        return _unpacked(array, name)

    def _objects(self, told: Any) -> Any:
        shape, values = told
        array = np.empty(len(values), dtype=object)
        for at, value in enumerate(self._values(values)):
            array[at] = value
        return array.reshape(_shape(shape))

    def _queue(self, told: Any) -> Any:
        longest, values = told
        return deque(self._values(values), longest)

    def _default(self, told: Any) -> Any:
        factory, pairs = told
        return defaultdict(_FACTORIES[factory], self._pairs(pairs))

    def _float(self, told: Any) -> float:
        if told not in ("nan", "inf", "-inf"):
            raise _Damaged("a float in it is none")
        return float(told)

    _READERS: Mapping[str, Callable[[_Reader, Any], Any]] = {
        "u": lambda self, told: _bytes(told).decode("utf-8", "surrogatepass"),
        "i": lambda self, told: int(told, 16),
        "f": _float,
        "b": lambda self, told: _bytes(told),
        "mode": lambda self, told: ModeKeys[told],
        "n": _packed,
        "a": _array,
        "x": _objects,
        "t": lambda self, told: tuple(self._values(told)),
        "s": lambda self, told: set(self._values(told)),
        "z": lambda self, told: frozenset(self._values(told)),
        "d": lambda self, told: dict(self._pairs(told)),
        "o": lambda self, told: OrderedDict(self._pairs(told)),
        "c": lambda self, told: Counter(dict(self._pairs(told))),
        "q": _queue,
        "e": _default,
    }


def _bytes(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _shape(told: Any) -> tuple[int, ...]:
    if not isinstance(told, list) or not all(type(n) is int and n >= 0 for n in told):
        raise _Damaged("an array in it has no shape")
    return tuple(told)


def _dtype(name: Any, *, bits: bool) -> np.dtype[Any]:
    """The numpy type of that name; with `bits`, the one in which such values are stored."""
    if name in _FOREIGN_TYPES:
        if bits:
            return np.dtype(np.uint16 if name == "bfloat16" else np.uint8)
        try:
            import ml_dtypes
        except ImportError:
            raise _Damaged(f"reading {name} needs the package ml_dtypes") from None
        foreign: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return foreign
    dtype = np.dtype(str(name))
    if dtype.kind not in "biufcSUmM":
        raise _Damaged(f"it has values of type {name!r}")
    return dtype


def _unpacked(array: Any, name: str) -> Any:
    return array.view(_dtype(name, bits=False)) if name in _FOREIGN_TYPES else array
