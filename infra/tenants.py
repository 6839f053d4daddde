"""The setting `tenants`: who has which folders, as `name=folder/`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

_FOLDER = r"(\*|(?!\.{1,2}/)[^*?/\\]+)/"  # a whole folder may be a wildcard, a part of its name may not
_PLACE = re.compile(rf"/|(?:s3://([a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9])/)?(?:{_FOLDER})*")
_NAME = re.compile(r"[\w-]{1,64}", re.ASCII)
_MOST_BYTES = 900  # in a function's environment of 4 KB
_BUCKET = 72  # bytes that an entry grows by with the name of the bucket


def prefixes_of(entries: Iterable[str], bucket: str) -> list[tuple[str, str]]:
    """Return each tenant's name with its prefix, as `bucket/folder/`."""
    return [(name, _with_bucket(place, bucket)) for name, _, place in map(_parts, entries)]


def problem_with(entries: Sequence[str], buckets: Collection[str | None]) -> str | None:
    """Return what is wrong with the setting, or None; `buckets` are those that the rules can read."""
    for entry in entries:
        name, _, place = _parts(entry)
        match = _PLACE.fullmatch(place) if place else None
        if match is None or _NAME.fullmatch(name) is None:
            return (
                f"tenants: {entry!r} is not a tenant: write name=folder/ with a final slash, such as "
                "vision=teams/vision/, name=*/ for each folder, or name=s3://bucket/folder/."
            )
        if match[1] and match[1] not in buckets:
            return (
                f"tenants: {entry!r} is in another bucket: name {match[1]!r} in other_buckets, which "
                "lets the rules read it."
            )
    size = sum(len(entry) + _BUCKET for entry in entries)
    if size > _MOST_BYTES:
        return (
            f"tenants takes up to {size} bytes, and {_MOST_BYTES} fit into a function's environment: put the "
            "tenants below one folder and write name=folder/*/."
        )
    return None


def _parts(entry: str) -> tuple[str, str, str]:
    return entry.partition("=")


def _with_bucket(place: str, bucket: str) -> str:
    if place.startswith("s3://"):
        return place.removeprefix("s3://")
    return f"{bucket}/{place.lstrip('/')}"
