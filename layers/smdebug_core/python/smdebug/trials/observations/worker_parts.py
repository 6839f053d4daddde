"""The parts of sharded parameters that workers hold: which of them are copies, and which are not."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Digest = tuple[int, int]
Place = tuple[tuple[str, int], ...]
"""Where a part lies: by the name of each dimension of the mesh that splits the tensor, the place on it."""


class Part(NamedTuple):
    """The part of one tensor that a worker holds."""

    mesh: int
    """The first rank of the mesh over which the tensor is sharded."""
    place: Place
    digest: Digest


@dataclass(frozen=True)
class WorkerParts:
    """What one worker holds of sharded parameters."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    rows: Place | None = None
    """Which rows it trains on: workers with the same get the same; None if the mesh does not say."""

    @classmethod
    def of_layout(cls, facts: Mapping[str, Any], digests: Mapping[str, Digest]) -> WorkerParts:
        """Return what the facts of a layout say of those tensors; what has another form is left out."""
        parts: dict[str, Part] = {}
        rows: dict[str, int] = {}
        is_known = True
        groups = facts.get("parts")
        for group in groups if isinstance(groups, list) else ():
            match group:
                case {"mesh": [*mesh], "first_rank": int(first), "at": [*at], "tensors": [*tensors], **more}:
                    dimensions = _dimensions(mesh, at, more.get("splits"), more.get("own_rows"))
                case _:
                    dimensions = []
            if not dimensions:
                is_known = False
                continue
            place = tuple((each.name, each.at) for each in dimensions if each.splits)
            for name in tensors:
                digest = digests.get(name) if isinstance(name, str) else None
                if digest is not None and any(digest):
                    parts[name] = Part(first, place, digest)
            is_known = is_known and all(each.own_rows is not None for each in dimensions)
            rows.update((each.name, each.at) for each in dimensions if each.own_rows)
        return cls(parts, tuple(sorted(rows.items())) if is_known else None)


def part_in_words(facts: Mapping[str, Any], name: str) -> str | None:
    """Say which part of a tensor a worker has measured, by the facts of its step; None if it is whole.

    The gradient of a parameter and its update are split as the parameter is.
    """
    groups = facts.get("parts")
    parameter = name.removeprefix("gradient/").removeprefix("update/")
    for group in groups if isinstance(groups, list) else ():
        match group:
            case {"mesh": [*mesh], "sizes": [*sizes], "at": [*at], "tensors": [*tensors], **more}:
                if parameter in tensors and len(sizes) == len(mesh):
                    dimensions = _dimensions(mesh, at, more.get("splits"), more.get("own_rows"))
                    known = zip(dimensions, sizes, strict=False)
                    places = [
                        f"{each.at + 1} of {size} along {each.name}" for each, size in known if each.splits
                    ]
                    return " and ".join(places) or None
    return None


class Share(NamedTuple):
    """Which part of a sharded tensor a worker holds."""

    mesh: int
    """The first rank of the mesh over which the tensor is sharded."""
    place: Place
    of: int
    """How many parts the mesh has."""
    words: str
    """The same to a reader: "1 of 2 along dp"."""
    shape: tuple[int, ...]
    """The shape of the whole tensor."""


def shares_of(facts: Mapping[str, Any]) -> dict[str, Share]:
    """Return which parts a worker holds by the facts of its layout; older ones name no shapes of wholes.

    A tensor that its mesh copies, and does not split, is no part.
    """
    found: dict[str, Share] = {}
    groups = facts.get("parts")
    for group in groups if isinstance(groups, list) else ():
        match group:
            case {"mesh": [*mesh], "sizes": [*sizes], "first_rank": int(first), "at": [*at], **more}:
                dimensions = _dimensions(mesh, at, more.get("splits"), more.get("own_rows"))
                names, shapes = more.get("tensors"), more.get("shapes")
            case _:
                continue
        if not (isinstance(names, list) and isinstance(shapes, list)) or len(sizes) != len(dimensions):
            continue
        split = [pair for pair in zip(dimensions, sizes, strict=True) if pair[0].splits]
        if not split or not all(type(size) is int for size in sizes):
            continue
        place = tuple((each.name, each.at) for each, _ in split)
        words = " and ".join(f"{each.at + 1} of {size} along {each.name}" for each, size in split)
        parts = math.prod(size for _, size in split)
        for name, shape in zip(names, shapes, strict=False):
            if isinstance(name, str) and isinstance(shape, list) and all(type(n) is int for n in shape):
                found[name] = Share(first, place, parts, words, tuple(shape))
    return found


class _Dimension(NamedTuple):
    """A dimension of a mesh, as one worker sees it."""

    name: str
    at: int
    splits: bool
    """Whether it splits the tensor."""
    own_rows: bool | None
    """Whether ranks along it train on rows of their own."""


def _dimensions(names: Sequence[Any], at: Sequence[Any], splits: Any, own_rows: Any) -> list[_Dimension]:
    """The dimensions of a mesh; empty if they were not noted in this form."""
    if not (isinstance(splits, list) and isinstance(own_rows, list)):
        return []
    if not len(names) == len(at) == len(splits) == len(own_rows) or not all(type(i) is int for i in at):
        return []
    return [
        _Dimension(
            str(name) or f"dimension {number}",
            at[number],
            splits[number] is not None,
            own_rows[number] if isinstance(own_rows[number], bool) else None,
        )
        for number, name in enumerate(names)
    ]


class PartsOfTensor(NamedTuple):
    """The parts of one tensor: which worker holds which."""

    name: str
    held: Mapping[str, Part]

    @property
    def differing(self) -> dict[Place, list[list[str]]]:
        """The places of which workers of one mesh hold different contents: the workers by content.

        The mesh says that they are copies.
        """
        return _several(self.held, lambda part: (part.mesh, part.place))

    @property
    def differing_between_meshes(self) -> dict[Place, list[list[str]]]:
        """The same of workers of any mesh, as in copies of a model: they are copies if they once were."""
        return _several(self.held, lambda part: (0, part.place))

    def alike_along(self) -> str | None:
        """The dimension of the mesh along which all parts have one content; None if there is none."""
        first = next(iter(self.held.values()))
        for number, (dimension, _) in enumerate(first.place):
            rows: defaultdict[Place, dict[int, set[Digest]]] = defaultdict(lambda: defaultdict(set))
            for part in self.held.values():
                if len(part.place) > number:
                    others = (*part.place[:number], *part.place[number + 1 :])
                    rows[others][part.place[number][1]].add(part.digest)
            several = [contents for contents in rows.values() if len(contents) > 1]
            if several and all(len(set().union(*contents.values())) == 1 for contents in several):
                return dimension
        return None


def by_tensor(workers: Mapping[str, WorkerParts]) -> list[PartsOfTensor]:
    """The parts of each tensor, in the order of the first worker that has it."""
    found: defaultdict[str, dict[str, Part]] = defaultdict(dict)
    for worker, of_worker in workers.items():
        for name, part in of_worker.parts.items():
            found[name][worker] = part
    return [PartsOfTensor(name, held) for name, held in found.items()]


def _several(
    held: Mapping[str, Part], key: Callable[[Part], tuple[int, Place]]
) -> dict[Place, list[list[str]]]:
    """The places with several contents: the workers of each, the most frequent content first."""
    contents: defaultdict[tuple[int, Place], defaultdict[Digest, list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for worker, part in held.items():
        contents[key(part)][part.digest].append(worker)
    return {
        place: sorted(found.values(), key=len, reverse=True)
        for (_, place), found in contents.items()
        if len(found) > 1
    }
