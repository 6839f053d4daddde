"""The old library's public interface as a table, and how one row of it is checked.

`signatures.csv` has one row per name, signature, attribute, result and exception:

- `name`: the subject can be imported from the module.
- `signature`: the parameters come in this order, with these names and defaults; further ones have defaults.
  The name of a parameter before a slash is not known, so it is given by place. A return type after `->` is
  compared with the annotation, without what is in its brackets.
- `attribute`: the subject's value has this type.
- `result`: the subject evaluates to this value.
- `raises`: evaluating the subject raises this exception.

A subject is evaluated in the module's namespace, with `trial`, `tensor`, `rule`, `calm_rule`, `hook`, `run`
(the path of a saved run) and `folder` (an empty one) beside it.
"""

from __future__ import annotations

import ast
import csv
import inspect
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from smdebug import exceptions
from smdebug.mode_keys import ModeKeys

TABLE = Path(__file__).with_name("signatures.csv")
_OBJECTS = {"run", "folder", "trial", "tensor", "rule", "calm_rule", "hook"}
_REQUIRED = inspect.Parameter.empty
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_ALIASES = {"Array": "NDArray"}
# The hooks of frameworks, which can be imported only where the framework is installed.
_HOOKS = {
    "smdebug.pytorch": "torch",
    "smdebug.tensorflow": "tensorflow",
    "smdebug.mxnet": "mxnet",
    "smdebug.xgboost": "xgboost",
}


class Row(NamedTuple):
    """One line of the table."""

    section: str
    module: str
    kind: str
    subject: str
    expected: str

    @property
    def framework(self) -> str | None:
        """The package that has to be installed for this row, if any."""
        package = ".".join(self.module.split(".")[:2])
        needs_it = self.section.startswith("3 ")
        return _HOOKS[package] if needs_it and package in _HOOKS else None

    @property
    def needs_a_run(self) -> bool:
        """Whether the subject uses a saved run or the objects around it."""
        return bool(_OBJECTS & set(re.findall(r"\w+", self.subject)))

    def __str__(self) -> str:
        return f"{self.module}: {self.subject} {self.expected}".rstrip()


def read_table() -> list[Row]:
    """Every row of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == Row._fields
    return [Row(*row) for row in rows]


def check(row: Row, given: dict[str, Any]) -> None:
    """Fail unless the library matches the row."""
    module = import_module(row.module)
    names = {**vars(exceptions), "ModeKeys": ModeKeys, "np": np, **vars(module), **given}
    for name in re.findall(r"\w+", row.subject):  # a package may import its names on first use
        if name not in names and hasattr(module, name):
            names[name] = getattr(module, name)
    if row.kind in ("name", "signature"):
        root, _, rest = row.subject.partition(".")
        found = given[root] if root in given else getattr(module, root)
        found = attrgetter(rest)(found) if rest else found
        if row.kind == "signature":
            check_signature(found, row.expected, names)
    elif row.kind == "attribute":
        kinds = {kind.__name__ for kind in type(eval(row.subject, names)).__mro__}
        assert row.expected in kinds
    elif row.kind == "result":
        expected = eval(row.expected, names)
        value = eval(row.subject, names)
        assert (value, type(value)) == (expected, type(expected))
    elif row.kind == "raises":
        with pytest.raises(eval(row.expected, names)):
            eval(row.subject, names)
    else:
        raise AssertionError(f"unknown kind {row.kind!r}")


class Declared(NamedTuple):
    """A parameter as the table declares it; without a name if the old name is not known."""

    name: str | None
    default: Any
    keyword_only: bool = False


def check_signature(found: Any, expected: str, names: dict[str, Any]) -> None:
    """Fail unless `found` can be called as the old signature allows, and returns what it did."""
    parameters, _, returned = expected.partition(" -> ")
    old = declared_parameters(parameters, names)
    signature = inspect.signature(found)
    new = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    positional = [p for p in new if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {p.name: p for p in new}
    matched = set()
    for place, declared in enumerate(old):
        if declared.name is None or not declared.keyword_only:
            assert place < len(positional), f"place {place} is missing"
            parameter = positional[place]
            assert declared.name in (None, parameter.name), f"{declared.name} is not at place {place}"
        else:
            parameter = by_name[declared.name]
        matched.add(parameter.name)
        if declared.default is not _REQUIRED:
            compared = (parameter.default, type(parameter.default))
            assert compared == (declared.default, type(declared.default)), declared.name
    for parameter in new:
        optional = parameter.default is not _REQUIRED or parameter.kind in _VARIABLE
        assert parameter.name in matched or optional, f"{parameter.name} is required"
    if returned:
        assert outer_types(str(signature.return_annotation)) == outer_types(returned)


def declared_parameters(text: str, names: dict[str, Any]) -> list[Declared]:
    """The parameters of "(a, /, b=1, *, c=2)". The name of one before the slash is not known."""
    function = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    by_place = [*arguments.posonlyargs, *arguments.args]
    required = len(by_place) - len(arguments.defaults)
    defaults = [_REQUIRED] * required + [_value(node, names) for node in arguments.defaults]
    found = [
        Declared(argument.arg if argument in arguments.args else None, default)
        for argument, default in zip(by_place, defaults, strict=True)
    ]
    for argument, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = _REQUIRED if node is None else _value(node, names)
        found.append(Declared(argument.arg, default, keyword_only=True))
    return found


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(ast.unparse(node), names)


def outer_types(annotation: str) -> set[str]:
    """The types in "a.B[C] | None", without brackets and modules: {"B", "None"}."""
    if annotation.startswith("<class '"):
        annotation = annotation[8:-2]
    parts = _alternatives(ast.parse(annotation, mode="eval").body)
    outer = {ast.unparse(part).split("[")[0].split(".")[-1].strip("'") for part in parts}
    return {_ALIASES.get(name, name) for name in outer}


def _alternatives(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [*_alternatives(node.left), *_alternatives(node.right)]
    return [node]
