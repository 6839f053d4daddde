"""Write the types of the server's answers for the scripts of the page: `python -m tools.answer_typedefs`.

They are JSDoc, made of `answer_types.py`: the page needs no build, and `make lint-page` checks its scripts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from smdebug.ui import answer_types

PLACE = Path(answer_types.__file__).parent / "page" / "types" / "answers.js"
_HEAD = """// The forms of the server's answers. Made of answer_types.py: `make answer-types`.

/**
 * A statistic of every tensor of a kind, row by row; each column is a stretch of steps with its extremes.
 * @typedef {object} Matrix
 * @property {number} rows
 * @property {number} columns
 * @property {boolean} exact
 * @property {number[]} first
 * @property {number[]} last
 * @property {Float32Array} low
 * @property {Float32Array} high
 */
"""
_NAMES = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null"}


def typedefs() -> str:
    """Return the script: a typedef for each `TypedDict`, in their order."""
    forms = [
        form
        for form in vars(answer_types).values()
        if is_typeddict(form) and form.__module__ == answer_types.__name__
    ]
    return "\n".join([_HEAD, *map(_typedef, forms), "export {};\n"])


def _typedef(form: Any) -> str:
    lines = [(form.__doc__ or "").strip().splitlines()[0], f"@typedef {{object}} {form.__name__}"]
    for name, hint in get_type_hints(form, include_extras=True).items():
        is_optional = get_origin(hint) is NotRequired
        shown = f"[{name}]" if is_optional else name
        lines.append(f"@property {{{_type_of(hint)}}} {shown}")
    return "/**\n" + "".join(f" * {line}\n" for line in lines) + " */\n"


def _type_of(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        return str(hint.__name__)
    if origin is NotRequired:
        return _type_of(arguments[0])
    if origin is UnionType:
        return " | ".join(map(_type_of, arguments))
    if origin is list:
        inside = _type_of(arguments[0])
        return f"({inside})[]" if "|" in inside else f"{inside}[]"
    if origin is dict:
        return f"Record<string, {_type_of(arguments[1])}>"
    return _NAMES.get(hint, "any")


def main() -> int:
    """Write the file."""
    PLACE.write_text(typedefs(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
