"""What a training calls the number that it divides its loss by, where that is a number of accumulated losses.

An author who divides by `accumulation_steps` says how many backward passes one update is to have. The names
are read in the functions that have called `backward()`, and nothing in them is changed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import torch

from smdebug.pytorch.graphs.saved_values import constant_factor

_ACCUMULATES = re.compile("accum", re.IGNORECASE)
_PASSED_OVER = ("torch", "smdebug")
_MOST_CALLERS, _MOST_FACTORS = 6, 4
_LEAST = 2
_EXACT = 1e-6


class NamedDivisor(NamedTuple):
    """A number of losses that one update is to have."""

    name: str
    number: int


def named_divisor(loss: torch.Tensor) -> NamedDivisor | None:
    """Return the number of accumulated losses that a loss was divided by; None if none has such a name."""
    divisors = set(_divisors(loss.grad_fn))
    if not divisors:
        return None
    for frame in _callers():
        words = _words(frame.f_code)
        for name in filter(_ACCUMULATES.search, words):
            for value in _values(name, words, frame):
                if type(value) is int and value in divisors:
                    return NamedDivisor(name, value)
    return None


def _divisors(node: Any) -> Iterator[int]:
    """The whole numbers that the last operations divide by."""
    for _ in range(_MOST_FACTORS):
        if node is None or node.name() not in ("DivBackward0", "MulBackward0"):
            return
        others = [following for following, _ in node.next_functions if following is not None]
        constant = constant_factor(node)
        if constant is None or len(others) != 1:
            return
        divisor = constant if node.name() == "DivBackward0" else 1 / constant
        if divisor >= _LEAST and abs(divisor / round(divisor) - 1) < _EXACT:
            yield round(divisor)
        node = others[0]


def _callers() -> Iterator[FrameType]:
    """The functions of the training that are running, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    found = 0
    while frame is not None and found < _MOST_CALLERS:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _PASSED_OVER:
            found += 1
            yield frame
        frame = frame.f_back


def _words(code: CodeType) -> list[str]:
    """The names and the texts that are written in a function."""
    texts = [constant for constant in code.co_consts if isinstance(constant, str) and constant.isidentifier()]
    return [*code.co_varnames, *code.co_names, *code.co_freevars, *code.co_cellvars, *texts]


def _values(name: str, words: list[str], frame: FrameType) -> Iterator[Any]:
    """What has the name: a variable, a field of one, or a field of such a field."""
    local, shared = frame.f_locals, frame.f_globals
    known = [scope[word] for word in words for scope in (local, shared) if word in scope]
    for scope in (local, shared):
        yield scope.get(name)
    for holder in known:
        yield _field(holder, name)
    for holder in known:
        for word in words:
            yield _field(_field(holder, word), name)


def _field(holder: Any, name: str) -> Any:
    """Return a field, without asking objects that answer with code of their own but for properties."""
    if holder is None or isinstance(holder, (torch.Tensor, ModuleType, type, str, int, float)):
        return None
    if isinstance(holder, Mapping):
        return holder.get(name)
    fields = getattr(holder, "__dict__", None)
    if isinstance(fields, dict) and name in fields:
        return fields[name]
    of_class = next((vars(kind)[name] for kind in type(holder).__mro__ if name in vars(kind)), None)
    return of_class.__get__(holder) if isinstance(of_class, property) and _ACCUMULATES.search(name) else None
