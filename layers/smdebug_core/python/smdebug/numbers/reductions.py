"""One number for a whole tensor: its mean, its norm, its largest value.

The result is correct at any size and in any type: sums are computed in float64, block by block, so
16-bit values neither overflow nor lose what is small, and a norm is √Σx² or Σ|x| whatever the rank.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.numbers.foreign_types import FIRST_FOREIGN_TYPE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

REDUCTIONS_PREFIX = "smdebug/reductions/"
ALLOWED_REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "median")
ALLOWED_NORMS = ("l1", "l2")
REDUCTION_NAMES = (*ALLOWED_REDUCTIONS, *ALLOWED_NORMS)

_ABS = "abs_"
COLON_INDEX = re.compile(r":\d+")
# 32k float64 are 256 KB: block and copy stay in the cache of one core.
_BLOCK = 1 << 15
# Up to here the sum in the tensor's own type costs little and is tried first: see `_as_before`.
_SMALL = 256
_NEXT_LARGER: Mapping[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float16): np.dtype(np.float32),
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


class ReductionName(NamedTuple):
    """The parts of a saved reduction's name: tensor, reduction, and whether of absolute values."""

    tensor: str
    reduction: str
    abs: bool


def compute_reduction(reduction_name: str, array: Any, abs: bool = False) -> Any:
    """Return that reduction of `array`, or of |array|, as a numpy scalar.

    float32 gives float32, float16 float16 and bfloat16 float32; integers and booleans give float64 for
    mean, std, variance, median and norms. A number that its type cannot hold, such as the sum of a
    large float16 tensor, comes in the next larger type. Std and variance are the population's.
    Raise `SMDebugValueError` for an unknown name or an empty array, `SMDebugTypeError` for strings.
    """
    _check_name(reduction_name)
    values = _numbers_in(array, (reduction_name,))
    with np.errstate(all="ignore"):
        return _reduce(values, [reduction_name], bool(abs))[reduction_name]


def compute_reductions(array: Any, wanted: Iterable[tuple[str, bool]]) -> dict[tuple[str, bool], Any]:
    """Return several reductions of an array in one pass: `{("mean", True): 0.1, ("l2", False): 3.2}`.

    Each equals `compute_reduction(name, array, abs)`.
    """
    wanted = list(dict.fromkeys((name, bool(magnitude)) for name, magnitude in wanted))
    for name, _ in wanted:
        _check_name(name)
    values = _numbers_in(array, [name for name, _ in wanted])
    results: dict[tuple[str, bool], Any] = {}
    with np.errstate(all="ignore"):
        for magnitude in (False, True):
            names = [name for name, of_magnitude in wanted if of_magnitude is magnitude]
            if names:
                reduced = _reduce(values, names, magnitude)
                results.update(((name, magnitude), reduced[name]) for name in names)
    return {key: results[key] for key in wanted}


def get_numpy_reduction(reduction_name: str, numpy_data: Any, abs: bool = False) -> Any:
    """`compute_reduction` under the name it had in smdebug."""
    return compute_reduction(reduction_name, numpy_data, abs)


def get_reduction_tensor_name(
    tensorname: str, reduction_name: str, abs: bool, remove_colon_index: bool = True
) -> str:
    """Return the name under which a reduction is saved: `smdebug/reductions/abs_mean/dense/kernel`.

    A `:0` in the tensor's name is removed by default (TensorFlow keeps it).
    """
    tensor = COLON_INDEX.sub("", tensorname) if remove_colon_index else tensorname
    return f"{REDUCTIONS_PREFIX}{_ABS if abs else ''}{reduction_name}/{tensor}"


def reverse_reduction_tensor_name(reduction_tensor_name: str) -> ReductionName:
    """Parse the name of a saved reduction; raise `SMDebugValueError` for any other name."""
    kind, slash, tensor = reduction_tensor_name.removeprefix(REDUCTIONS_PREFIX).partition("/")
    if not slash or not reduction_tensor_name.startswith(REDUCTIONS_PREFIX):
        raise SMDebugValueError(
            f"{reduction_tensor_name!r} is not the name of a saved reduction: "
            f"those read {REDUCTIONS_PREFIX}<reduction>/<tensor>"
        )
    return ReductionName(tensor, kind.removeprefix(_ABS), kind.startswith(_ABS))


def _check_name(name: str) -> None:
    if name not in REDUCTION_NAMES:
        raise SMDebugValueError(f"There is no reduction {name!r}: it is one of {', '.join(REDUCTION_NAMES)}")


def _numbers_in(array: Any, wanted: Sequence[str]) -> Array:
    """Return the array as a row of at least one number."""
    values = np.asarray(array)
    if values.dtype.kind not in "biufc" and not _is_small_float(values.dtype):
        raise SMDebugTypeError(
            f"There is no {', '.join(wanted)} of {values.dtype} values: they are not numbers"
        )
    if values.size == 0:
        raise SMDebugValueError(
            f"There is no {', '.join(wanted)} of an empty tensor (shape {values.shape}): it has no values"
        )
    return values.ravel(order="K")


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether the type is bfloat16 or an 8-bit float, which numpy has only through another package."""
    return dtype.num >= FIRST_FOREIGN_TYPE and "float" in dtype.name


def _reduce(values: Array, names: list[str], magnitude: bool) -> dict[str, Any]:
    if _is_small_float(values.dtype):
        result_type = np.dtype(np.float32)
    elif values.dtype.kind in "fc":
        result_type = values.dtype
    else:
        return _reduce_integers(values, names, magnitude)
    running = _Running(values, names, magnitude)
    results = {}
    for name in names:
        exact = running.result(name)
        is_real = magnitude or name in _ALWAYS_REAL
        rounded = _rounded(exact, _REAL.get(result_type, result_type) if is_real else result_type)
        if values.size <= _SMALL and values.dtype in _TOLERANCE and name in _OLD:
            rounded = _as_before(name, values, magnitude, exact, rounded)
        results[name] = rounded
    return results


_ALWAYS_REAL = {"std", "variance", "l1", "l2"}
_REAL: Mapping[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


def _rounded(exact: Any, dtype: np.dtype[Any]) -> Any:
    """Return `exact` in that type, or in the next larger one that holds it."""
    result = dtype.type(exact)
    while not np.isfinite(result) and np.isfinite(exact) and dtype in _NEXT_LARGER:
        dtype = _NEXT_LARGER[dtype]
        result = dtype.type(exact)
    return result


_OLD: Mapping[str, Callable[[Array], Any]] = {
    "mean": np.mean,
    "std": np.std,
    "variance": np.var,
    "sum": np.sum,
    "prod": np.prod,
    "l1": lambda x: np.abs(x).sum(),
    "l2": lambda x: np.sqrt(np.dot(x, x)),
}


# The accepted error: 1e-6 with room for the comparison, and one unit in the last place of float16.
_TOLERANCE: Mapping[np.dtype[Any], float] = {
    np.dtype(np.float32): 5e-7,
    np.dtype(np.float16): 2**-10,
}


def _as_before(name: str, values: Array, magnitude: bool, exact: Any, rounded: Any) -> Any:
    """Return the old library's result, to the last bit, if it is correct."""
    before = _OLD[name](np.abs(values) if magnitude else values)
    tolerance = _TOLERANCE[values.dtype] * abs(exact)
    return before if abs(float(before) - exact) <= tolerance else rounded


def _reduce_integers(values: Array, names: list[str], magnitude: bool) -> dict[str, Any]:
    original = values.dtype
    if magnitude and original.kind == "i":
        # int8 cannot hold |-128|, but its bits read as unsigned are 128.
        values = np.abs(values).view(f"u{original.itemsize}")
    running = _Running(values, names, False)
    results: dict[str, Any] = {}
    for name in names:
        if name in ("min", "max"):
            result = getattr(values, name)()
            fits = values.dtype == original or int(result) <= np.iinfo(original).max
            results[name] = original.type(result) if fits else result
        elif name in ("sum", "prod"):
            whole = getattr(values, name)()
            if values.dtype != original and int(whole) <= np.iinfo(np.int64).max:
                whole = np.int64(whole)
            exact = running.result(name)
            wrapped = abs(exact - float(whole)) > 1e-6 * abs(exact)
            results[name] = np.float64(exact) if wrapped else whole
        else:
            results[name] = np.float64(running.result(name))
    return results


class _Running:
    """The sums over all blocks of a tensor, in float64 (complex128 for complex numbers)."""

    def __init__(self, values: Array, names: Iterable[str], magnitude: bool):
        self._values = values
        self._magnitude = magnitude
        wanted = set(names)
        needs_mean = bool(wanted & {"mean", "sum", "std", "variance"})
        needs_spread = bool(wanted & {"std", "variance"})
        self.count = 0
        self.total: Any = 0.0
        self.spread = 0.0
        self.squares = 0.0
        self.magnitudes = 0.0
        self.product: Any = 1.0
        self.smallest: list[Any] = []
        self.largest: list[Any] = []
        if not magnitude and values.dtype in (np.float32, np.float64):  # numpy is fastest here
            for name, extremes in (("min", self.smallest), ("max", self.largest)):
                if name in wanted:
                    extremes.append(getattr(values, name)())
            wanted -= {"min", "max"}
        if not wanted - {"median"}:
            return
        for block in _blocks(values, magnitude):
            if "min" in wanted:
                self.smallest.append(block.min())
            if "max" in wanted:
                self.largest.append(block.max())
            if needs_mean:
                self._add(block, needs_spread)
            if "l2" in wanted:
                self.squares += np.vdot(block, block).real
            if "l1" in wanted:
                self.magnitudes += (block if magnitude else np.abs(block)).sum()
            if "prod" in wanted:
                self.product *= block.prod()

    def _add(self, block: Array, with_spread: bool) -> None:
        size = block.size
        total = block.sum()
        if with_spread:
            mean = total / size
            around = block - mean
            self.spread += np.vdot(around, around).real
            if self.count:
                # The distance of the block's mean from the mean so far (Chan, Golub, LeVeque 1979).
                apart = abs(mean - self.total / self.count)
                self.spread += apart * apart * (self.count * size / (self.count + size))
        self.total = self.total + total
        self.count += size

    def result(self, name: str) -> Any:
        match name:
            case "min":
                return np.min(self.smallest)
            case "max":
                return np.max(self.largest)
            case "sum":
                return self.total
            case "mean":
                return self.total / self.count
            case "variance":
                return self.spread / self.count
            case "std":
                return self._root_of_spread()
            case "prod":
                return self.product
            case "l1":
                return self.magnitudes
            case "l2":
                return self._root_of_squares()
            case _:
                return _median(self._values, self._magnitude)

    def _root_of_spread(self) -> Any:
        """Return the standard deviation, even if float64 cannot hold its square."""
        if 1e-280 < self.spread < np.inf or np.isnan(self.spread):
            return np.sqrt(self.spread / self.count)
        largest = np.max([block.max() for block in _blocks(self._values, True)])
        if largest == 0 or 1e-140 < largest < 1e140 or not np.isfinite(largest):
            return np.sqrt(self.spread / self.count)
        scaled = [block / largest for block in _blocks(self._values, self._magnitude)]
        return largest * _Running(np.concatenate(scaled), ["std"], False).result("std")

    def _root_of_squares(self) -> Any:
        """Return √Σx², even if float64 cannot hold the squares."""
        if self.squares and (1e-280 < self.squares < np.inf or np.isnan(self.squares)):
            return np.sqrt(self.squares)
        largest = np.max([block.max() for block in _blocks(self._values, True)])
        if not largest or not np.isfinite(largest):
            return largest
        return largest * np.sqrt(
            sum(np.square(block / largest).sum() for block in _blocks(self._values, True))
        )


def _blocks(values: Array, magnitude: bool) -> Iterator[Array]:
    """Yield the values as float64 or complex128 in blocks; the next block overwrites the previous one."""
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    if values.dtype == wide and not magnitude:
        for start in range(0, values.size, _BLOCK):
            yield values[start : start + _BLOCK]
        return
    scratch = np.empty(min(_BLOCK, values.size), np.float64 if magnitude else wide)
    for start in range(0, values.size, _BLOCK):
        piece = _readable(values[start : start + _BLOCK])
        block = scratch[: piece.size]
        if magnitude and piece.dtype.kind == "c":
            np.abs(piece.astype(np.complex128), out=block)
        else:
            block[...] = piece
            if magnitude:
                np.abs(block, out=block)
        yield block


def _readable(piece: Array) -> Array:
    """bfloat16 is the upper half of a float32; shifting is several times faster than converting."""
    if piece.dtype.num >= FIRST_FOREIGN_TYPE and piece.dtype.name == "bfloat16":
        upper: Array = piece.view(np.uint16).astype(np.uint32)
        upper <<= np.uint32(16)
        return upper.view(np.float32)
    return piece


def _median(values: Array, magnitude: bool) -> Any:
    values = values.astype(np.float32) if _is_small_float(values.dtype) else values
    values = np.abs(values) if magnitude else values
    if values.dtype.kind in "fc" and np.isnan(values).any():
        return np.nan
    middle = values.size // 2
    if values.size % 2:
        return np.partition(values, middle)[middle]
    parted = np.partition(values, [middle - 1, middle])
    low, high = (_wide(parted[at]) for at in (middle - 1, middle))
    both = (low + high) / 2
    return both if np.isfinite(both) else low / 2 + high / 2


def _wide(number: Any) -> Any:
    return np.complex128(number) if number.dtype.kind == "c" else np.float64(number)
