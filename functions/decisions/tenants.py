"""Whose a run is, and what it may name of others: only what is below a prefix of its own tenant.

A place is written without `s3://`: `bucket/folder/run`. It is compared folder by folder and character by
character, as S3 does, so a name that only looks like another one is another one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

ANY_FOLDER = "*"
SOURCES = "rule-sources/"
MOST_FOLDERS = 40  # in the address of a run: each may be another run, which is looked up
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ESCAPED = re.compile(r"%(2e|2f|5c|00)", re.IGNORECASE)  # . / \ NUL, as some tools read them
_NO_FOLDERS = frozenset({"", ".", ".."})


@dataclass(frozen=True)
class Tenants:
    """The tenants of a deployment, as `infra` writes them.

    `prefixes` are pairs of a tenant's name and `bucket/folder/…/`. A folder `*` is any one folder, and each
    that it may be is a tenant of its own. Without any, the tenant of a run is the folder that the run is in.
    """

    prefixes: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()  # `bucket/` that every run may compare with

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the variable of a function."""
        content: Mapping[str, Any] = json.loads(text)
        prefixes = tuple((str(name), str(prefix)) for name, prefix in content["prefixes"])
        return cls(prefixes, tuple(map(str, content["shared"])))

    def prefixes_of(self, run: str) -> tuple[str, ...]:
        """Return the prefixes of the run's tenant; the run itself is strictly below one of them."""
        if not self.prefixes:
            folder = run.rpartition("/")[0]
            return (f"{folder}/",) if "/" in folder else ()  # never the whole bucket
        own = [(name, _folders_matched(prefix, run)) for name, prefix in self.prefixes]
        return tuple(
            dict.fromkeys(
                _filled_in(prefix, folders)
                for name, folders in own
                if folders is not None
                for other, prefix in self.prefixes
                if other == name and prefix.split("/").count(ANY_FOLDER) == len(folders)
            )
        )

    def source_prefixes_of(self, run: str) -> tuple[str, ...]:
        """Return where the run's tenant keeps rules of its own, as `s3://…/`; empty without tenants."""
        return tuple(f"s3://{prefix}{SOURCES}" for prefix in self.prefixes_of(run) if self.prefixes)

    def refusal_of_run(self, run: str) -> str:
        """Return why this place cannot be a run, or an empty text."""
        if "/" not in run:
            return (
                f"s3://{run} is a whole bucket, and a run at its root would contain all others: "
                "save the run to a folder, such as "
                f"s3://{run}/my-project/my-run."
            )
        if run.count("/") > MOST_FOLDERS:
            return f"s3://{run} is more than {MOST_FOLDERS} folders deep: save the run to a shorter path."
        for name, prefix in self.prefixes:
            if _contains_prefix(run, prefix):
                return (
                    f"s3://{run} contains the runs of a tenant ({name}), so it is not a run itself: "
                    f"save the run to a folder below s3://{run}/."
                )
        return ""

    def refusal_of_other(self, run: str, other: str) -> str:
        """Return why the run may not name the other one, or an empty text."""
        place = other.removeprefix("s3://")
        if not _is_plain(place):
            return f"{other!r} is not the address of a run: write s3://bucket/folder/run."
        allowed = (*self.prefixes_of(run), *self.shared)
        if any(place.startswith(prefix) for prefix in allowed):
            return ""
        if not allowed:
            return (
                f"s3://{run} may not read s3://{place}: {self._why_none(run)} (setting `tenants`; see "
                "docs/tenants.md)."
            )
        shown = ", ".join(f"s3://{prefix}" for prefix in allowed[:5])
        return (
            f"s3://{run} may not read s3://{place}: its tenant has {shown}, and nothing else. Compare with a "
            "run below that, or have the deployer name another prefix in the setting `tenants`."
        )

    def _why_none(self, run: str) -> str:
        if self.prefixes:
            return "it is below no prefix of a tenant"
        return "it is in no folder with other runs, and the root of a bucket belongs to nobody"


def _is_plain(place: str) -> bool:
    bucket, _, key = place.partition("/")
    return (
        _BUCKET.fullmatch(bucket) is not None
        and _NO_FOLDERS.isdisjoint(key.split("/"))
        and key.isprintable()
        and "\\" not in key
        and _ESCAPED.search(key) is None
    )


def _folders_matched(prefix: str, run: str) -> tuple[str, ...] | None:
    """Return the folders that stand for each `*` of the prefix; None if the run is not strictly below it."""
    wanted, found = prefix.rstrip("/").split("/"), run.split("/")
    if len(found) <= len(wanted) or not all(_pairs(wanted, found)):
        return None
    return tuple(folder for pattern, folder in zip(wanted, found, strict=False) if pattern == ANY_FOLDER)


def _contains_prefix(run: str, prefix: str) -> bool:
    wanted, found = prefix.rstrip("/").split("/"), run.split("/")
    return len(found) <= len(wanted) and all(_pairs(wanted, found))


def _pairs(wanted: list[str], found: list[str]) -> Iterator[bool]:
    return (pattern in (ANY_FOLDER, folder) for pattern, folder in zip(wanted, found, strict=False))


def _filled_in(prefix: str, folders: tuple[str, ...]) -> str:
    given = iter(folders)
    return "/".join(next(given) if part == ANY_FOLDER else part for part in prefix.split("/"))
