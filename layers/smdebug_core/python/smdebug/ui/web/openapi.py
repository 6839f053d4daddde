"""The description of the server's API, in the form of OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from starlette.requests import Request
from starlette.responses import Response

import smdebug

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_WHOLE_NUMBERS = frozenset({"first", "last", "points", "step", "number"})


@dataclass(frozen=True)
class Endpoint:
    """One address: its handler, and the names in its query; `?` ends those that may be missing."""

    path: str
    handler: Callable[[Request], Awaitable[Response]]
    query: tuple[str, ...] = ()
    method: str = "GET"
    answer: str = ""
    """The name of a `TypedDict` in `answer_types`."""
    media: str = "application/json"
    body: str = ""
    """The name of the `TypedDict` of what the request sends."""


def described(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of these addresses."""
    from smdebug.ui import answer_types

    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for endpoint in endpoints:
        schema: dict[str, Any] = {"type": "string" if endpoint.media.startswith("text") else "object"}
        if endpoint.media.startswith(("application/octet-stream", "image/", "audio/")):
            schema = {"type": "string", "format": "binary"}
        if endpoint.answer:
            schema = schema_of(getattr(answer_types, endpoint.answer), schemas)
        operation: dict[str, Any] = {
            "summary": (endpoint.handler.__doc__ or "").strip().splitlines()[0],
            "parameters": [
                *map(_in_path, re.findall(r"{(\w+)}", endpoint.path)),
                *map(_in_query, endpoint.query),
            ],
            "responses": {
                "200": {
                    "description": "The answer.",
                    "content": {endpoint.media: {"schema": schema}},
                },
                "default": {
                    "description": "What was wrong, in words.",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                },
            },
        }
        if endpoint.method == "POST":
            sent = schema_of(getattr(answer_types, endpoint.body), schemas)
            content = {"application/json": {"schema": sent}}
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    schemas["Problem"] = {"type": "object", "properties": {"error": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "smdebug ui", "version": smdebug.__version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_of(hint: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a type; those of its `TypedDict`s are added to `schemas`."""
    if is_typeddict(hint):
        if hint.__name__ not in schemas:
            schemas[hint.__name__] = {}  # named already, in case it refers to itself
            hints = get_type_hints(hint, include_extras=True)
            schemas[hint.__name__] = {
                "type": "object",
                "description": (hint.__doc__ or "").strip(),
                "properties": {name: schema_of(hint, schemas) for name, hint in hints.items()},
                "required": [name for name, hint in hints.items() if get_origin(hint) is not NotRequired],
                "additionalProperties": False,
            }
        return {"$ref": f"#/components/schemas/{hint.__name__}"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return schema_of(arguments[0], schemas)
    if origin is UnionType:
        return {"anyOf": [schema_of(argument, schemas) for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0], schemas)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], schemas)}
    return {"type": _TYPES[hint]} if hint in _TYPES else {}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(name: str) -> dict[str, Any]:
    plain = name.rstrip("?")
    kind = "integer" if plain in _WHOLE_NUMBERS else "string"
    required = not name.endswith("?")
    return {"name": plain, "in": "query", "required": required, "schema": {"type": kind}}
