"""Which tensor names a pattern or a collection selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from smdebug.config.collection import Collection
from smdebug.config.patterns import searcher
from smdebug.exceptions import SMDebugTypeError
from smdebug.files.names import OBSERVATIONS

NameTest = Callable[[str], bool]
_MOST_PATTERNS = 256


def extend_collection(collection: Collection, newer: Collection) -> None:
    """Add the names and patterns of a collection that was read again."""
    collection.tensor_names |= newer.tensor_names
    collection.include([p for p in newer.include_regex if p not in collection.include_regex])


def asks_for_observations(regex: str | Iterable[str] | None, collection: Collection | None) -> bool:
    """Return whether a pattern, or one of the collection, names the tensors that hold observations."""
    if collection is not None:
        regex = [*collection.include_regex, *collection.tensor_names]
    patterns = [regex] if isinstance(regex, str) else regex or ()
    return any(OBSERVATIONS in pattern for pattern in patterns)


class NameMatcher:
    """Tests names, and remembers the results: each name is tried once against the same patterns."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, ...], dict[str, bool]] = {}

    def chosen_by(self, regex: str | Iterable[str] | None, collection: Collection | None) -> NameTest | None:
        """Return the test for a regex or a collection; None without either."""
        if regex is not None:
            return self.by_regex(regex)
        return None if collection is None else self.by_collection(collection)

    def by_regex(self, regex: str | Iterable[str]) -> NameTest:
        """Return a test for names that one of the patterns matches."""
        if not isinstance(regex, str | list | tuple | set | frozenset):
            raise SMDebugTypeError(f"regex is a pattern or a list of them, not {regex!r}")
        return self._matching((regex,) if isinstance(regex, str) else tuple(regex))

    def by_collection(self, collection: Collection) -> NameTest:
        """Return a test for names that the collection lists or one of its patterns matches."""
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"Invalid argument type for collection {type(collection)}")
        matching = self._matching(tuple(collection.include_regex))
        listed = collection.tensor_names
        return lambda name: name in listed or matching(name)

    def _matching(self, patterns: tuple[str, ...]) -> NameTest:
        searches = [searcher(pattern) for pattern in patterns]
        if len(self._results) > _MOST_PATTERNS:
            self._results.clear()
        known = self._results.setdefault(patterns, {})

        def matches(name: str) -> bool:
            result = known.get(name)
            if result is None:
                result = known[name] = any(search(name) for search in searches)
            return result

        return matches
