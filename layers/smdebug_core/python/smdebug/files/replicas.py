"""Workers whose copies of a model are compared by digests.

    collections file   "_meta": {"replicas": {"chief": "worker_0", "workers": 8, "beside": true}}
    index file         "meta": {"root_digests": {"parameters": "5d41402abc4b2a76b9719d911017c592"}}

A root digest covers the digests of all tensors of a kind, so that equal roots mean equal copies. The chief's
files make a step complete, and the other workers save digests alone, at some of its steps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ROOTS = "root_digests"
"""The key of the root digests in the `meta` of an index file."""
REPLICAS = "replicas"
"""The key of `Replicas` in the `_meta` of a collections file."""


class Replicas(NamedTuple):
    """The workers of a run that save digests alone, beside the chief, which saves everything."""

    chief: str
    workers: int
    """How many workers there are, the chief included."""
    beside: bool = False
    """Whether tensors were chosen: then the others save no tensor, and are no workers to who reads these."""

    def to_meta(self) -> dict[str, Any]:
        """The replicas as the `_meta` of a collections file announces them."""
        named = {"chief": self.chief, "workers": self.workers}
        return {REPLICAS: {**named, "beside": True} if self.beside else named}

    @classmethod
    def of_run(cls, meta: Mapping[str, Any]) -> Replicas | None:
        """The replicas that the `_meta` of a collections file announces; None if it announces none."""
        match meta.get(REPLICAS):
            case {"chief": str(chief), "workers": int(workers), **more} if chief and workers > 1:
                return cls(chief, workers, more.get("beside") is True)
        return None


def root_digest(names: Sequence[str], digests: Iterable[Sequence[int]]) -> str:
    """One digest for the digests of many tensors, whatever their order. Rows of zeros are left out."""
    rows = sorted(
        (name, first, second) for name, (first, second) in zip(names, digests, strict=True) if first or second
    )
    text = json.dumps(rows, separators=(",", ":")).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def root_digests(meta: Mapping[str, Any]) -> Mapping[str, str]:
    """The root digests in the `meta` of an index file, by kind; none if it has none in this form."""
    roots = meta.get(ROOTS)
    if not isinstance(roots, dict):
        return {}
    return {kind: root for kind, root in roots.items() if isinstance(root, str)}
