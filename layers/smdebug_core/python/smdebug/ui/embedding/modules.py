"""ES modules joined into one script, for a page that has no server to import them from.

Each module becomes a function that returns what it exports, in the order of their imports. Only the forms of
`import` and `export` that the page uses are understood; any other is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import join, normpath

_IMPORT = re.compile(r'^import\s+(?P<what>[^;"]*?)\s*from\s+"(?P<where>\./[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export (?P<default>default )?(?P<kind>(?:async )?function\*?|class|const|let) (?P<name>\w+)",
    re.MULTILINE,
)
_LIST = re.compile(r"^export \{(?P<names>[^}]*)\};?$", re.MULTILINE)
_LEFT_OVER = re.compile(r"^\s*(?:import|export)\b.*$|\bimport\(.*$|\bimport\.meta\b", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*/\*[\s\S]*?\*/[ \t]*\n?", re.MULTILINE)
_AS, _RENAMED = re.compile(r"(\w+)\s+as\s+(\w+)"), r"\1: \2"


def joined(entry: str, read: Callable[[str], str]) -> str:
    """Return the module and all that it imports as one script; `read` returns the source at a path."""
    parts: dict[str, str] = {}
    _add(entry, read, parts, ())
    return '"use strict";\n' + "\n".join(parts.values())


def _add(path: str, read: Callable[[str], str], parts: dict[str, str], importing: tuple[str, ...]) -> None:
    if path in parts:
        return
    if path in importing:
        raise ValueError(f"{' → '.join((*importing, path))} import each other")
    source = _COMMENT.sub("", read(path))
    folder = path.rpartition("/")[0]

    def imported(found: re.Match[str]) -> str:
        target = normpath(join(folder, found["where"]))
        _add(target, read, parts, (*importing, path))
        what = found["what"].strip()
        names = what if what.startswith("{") else f"{{ default: {what} }}"
        return f"const {_AS.sub(_RENAMED, names)} = {_name_of(target)};"

    exports: dict[str, str] = {}

    def exported(found: re.Match[str]) -> str:
        exports["default" if found["default"] else found["name"]] = found["name"]
        return f"{found['kind']} {found['name']}"

    def listed(found: re.Match[str]) -> str:
        for each in filter(None, map(str.strip, found["names"].split(","))):
            name, _, shown = each.partition(" as ")
            exports[(shown or name).strip()] = name.strip()
        return ""

    body = _LIST.sub(listed, _EXPORT.sub(exported, _IMPORT.sub(imported, source)))
    if left := _LEFT_OVER.search(body):
        raise ValueError(f"{path}: {left[0].strip()!r} cannot be joined into one script")
    returned = ", ".join(f"{shown}: {name}" for shown, name in exports.items())
    parts[path] = (
        f"// {path}\nconst {_name_of(path)} = (() => {{\n{body.strip()}\nreturn {{ {returned} }};\n}})();"
    )


def _name_of(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path)
