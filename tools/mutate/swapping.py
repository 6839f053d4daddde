"""Gives the functions of a loaded module the code of its edited source, wherever they are referred to."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import CodeType, FunctionType


def swap(path: Path, line: int) -> bool:
    """Swap the functions that contain the line of the edited file; return False if that is not enough.

    A module that is not loaded yet is imported as it is now, edited.
    """
    if not any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values())):
        return True
    edited = _functions(compile(path.read_bytes(), str(path), "exec", dont_inherit=True))
    swapped = False
    gc.unfreeze()  # what the tests have frozen is not listed
    for function in [found for found in gc.get_objects() if type(found) is FunctionType]:
        code = function.__code__
        if code.co_filename != str(path) or not code.co_firstlineno <= line <= _last_line(code):
            continue
        new = edited.get((code.co_qualname, code.co_firstlineno))
        if new is None:
            return False
        try:
            function.__code__ = new
        except ValueError:  # it uses other variables of the functions around it
            return False
        swapped = True
    return swapped


def _functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the code of each function by its name and its first line."""
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[constant.co_qualname, constant.co_firstlineno] = constant
            found |= _functions(constant)
    return found


def _last_line(code: CodeType) -> int:
    inner = [_last_line(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return max([code.co_firstlineno, *inner, *(line for *_, line in code.co_lines() if line)])
