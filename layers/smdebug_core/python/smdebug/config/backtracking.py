"""Whether a pattern can make Python's matcher run forever, decided from the pattern alone.

The matcher tries one way after the other, so its time explodes exactly when a repetition can match the same
text in two ways: each round then doubles the ways. The pattern becomes a graph (Glushkov's): one node for
each character it consumes, one edge for each way from one to the next. Two different walks from a node back
to itself over the same text are that repetition.

Consecutive repetitions can divide a text between them wherever it can be cut, in a number of ways that is a
power of its length: `.*a.*a.*a` takes long on long names only. `Growth` says how long they may be.
"""

from __future__ import annotations

import math
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# Bounded repetitions are expanded up to this count; longer ones are treated as endless.
_WRITTEN_OUT = 8
_MOST_NODES = 1500
# `.*.*.*` on a name of n letters costs n³ steps, which is acceptable. Each further one multiplies by n.
_MOST_LOOPS_IN_A_ROW = 3
_SAMPLES = "aZ5_ \n-/:.é"


def explosive(pattern: str, flags: int = 0) -> str:
    """Describe what makes the pattern run forever on some text; "" if nothing does."""
    tree = parser.parse(pattern, flags)
    graph = _Graph(set(_letters_in(tree)) | set(_SAMPLES), bool(tree.state.flags & re.IGNORECASE))
    pending = [tree]
    while pending:  # lookarounds are matched separately
        graph.clear()
        graph.add_sequence(pending.pop())
        pending += graph.lookarounds
        if graph.too_many_nodes:
            return "more alternatives and bounded repetitions than can be followed"
        if graph.most_loops_in_a_row > _MOST_LOOPS_IN_A_ROW:
            return f"more than {_MOST_LOOPS_IN_A_ROW} endless repetitions in a row over the same text"
        if graph.has_two_ways_round():
            return "a repetition of something that can match the same text in several ways"
    return ""


class Growth(NamedTuple):
    """The largest number of steps of a search in n letters: about `factor` times n choose `power`."""

    power: int
    factor: float

    def longest_within(self, steps: float) -> int:
        """Return how long a text may be for a search to take at most so many steps."""
        return int((steps / self.factor * math.factorial(self.power)) ** (1 / self.power))


def growth(pattern: str, flags: int = 0) -> Growth:
    """Return how a search slows down as the text grows, for a pattern that cannot run forever."""
    tree = parser.parse(pattern, flags)
    graph = _Graph(set(_letters_in(tree)) | set(_SAMPLES), bool(tree.state.flags & re.IGNORECASE))
    pending = [tree]
    power, factor = 1, 1.0  # the search begins at each letter
    while pending:
        graph.clear()
        graph.add_sequence(pending.pop())
        pending += graph.lookarounds
        chain = graph.longest_chain()
        power += chain.power
        factor *= chain.factor * graph.optional
    return Growth(power, factor)


class _Part(NamedTuple):
    """A part of the pattern: where it can begin and end, and in how many ways it can be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    empty: int
    loops: int = 0  # > 0: it consists of so many endless repetitions


_NOTHING = _Part((), (), 1)


class _Graph:
    def __init__(self, letters: set[str], ignore_case: bool):
        if ignore_case:
            letters = {form for letter in letters for form in (letter.lower(), letter.upper())}
        self.letters = frozenset(letters)
        self.ignore_case = ignore_case
        self.clear()

    def clear(self) -> None:
        self.accepts: list[frozenset[str]] = []
        self.edges: Counter[tuple[int, int]] = Counter()
        self.lookarounds: list[Any] = []
        self.optional = 1  # ways to have bounded repetitions
        self.most_loops_in_a_row = 0
        self.depth = 0
        self.repeated_nodes = 0
        self.too_many_nodes = False

    def add_sequence(self, items: Any) -> _Part:
        whole = _NOTHING
        for item in items:
            whole = self._then(whole, self._add(*item))
        return whole

    def _add(self, code: Any, argument: Any) -> _Part:
        match code:
            case op.LITERAL | op.NOT_LITERAL | op.IN | op.ANY | op.RANGE | op.CATEGORY:
                return self._node(self._letters_of(code, argument))
            case op.GROUPREF:
                return self._node(self.letters)
            case op.BRANCH:
                return self._either([self.add_sequence(branch) for branch in argument[1]])
            case op.SUBPATTERN:
                return self.add_sequence(argument[-1])
            case op.ATOMIC_GROUP:
                return self.add_sequence(argument)
            case op.GROUPREF_EXISTS:
                _, yes, no = argument
                return self._either([self.add_sequence(yes), self.add_sequence(no or [])])
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                return self._repeat(*argument)
            case op.ASSERT | op.ASSERT_NOT:
                self.lookarounds.append(argument[1])
                return _NOTHING
            case _:  # anchors consume nothing
                return _NOTHING

    def _node(self, letters: frozenset[str]) -> _Part:
        self.accepts.append(letters)
        self.repeated_nodes += self.depth > 0
        self.too_many_nodes |= self.repeated_nodes > _MOST_NODES
        node = (len(self.accepts) - 1,)
        return _Part(node, node, 0)

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        loops = 0
        if right.loops and (left.loops or left is _NOTHING) and self._overlap(left, right):
            loops = left.loops + right.loops
            self.most_loops_in_a_row = max(self.most_loops_in_a_row, loops)
        return _Part(
            left.first + right.first * left.empty,
            right.last + left.last * right.empty,
            min(left.empty * right.empty, 2),
            loops or (right.loops if not left.loops else 0),
        )

    def _overlap(self, left: _Part, right: _Part) -> bool:
        return not left.last or any(self.accepts[a] & self.accepts[b] for a in left.last for b in right.first)

    def _either(self, parts: list[_Part]) -> _Part:
        return _Part(
            sum((part.first for part in parts), ()),
            sum((part.last for part in parts), ()),
            min(sum(part.empty for part in parts), 2),
        )

    def _repeat(self, low: int, high: int, body: Any) -> _Part:
        self.depth += high > 1
        try:
            if high <= _WRITTEN_OUT and not self.too_many_nodes:
                self.optional *= high - low + 1
                return self._written_out(low, high, body)
            return self._endless(low, body)
        finally:
            self.depth -= high > 1

    def _endless(self, low: int, body: Any) -> _Part:
        part = self.add_sequence(body)
        self._connect(part.last, part.first)
        return _Part(part.first, part.last, part.empty or int(low == 0), loops=1)

    def _written_out(self, low: int, high: int, body: Any) -> _Part:
        """Expand `a{1,3}` to `a(a(a)?)?`: each repetition only follows the previous one."""
        whole = previous = _NOTHING
        for turn in range(high):
            part = self.add_sequence(body)
            if turn < low:
                whole = self._then(whole, part)
            else:
                self._connect(previous.last, part.first)
                first = whole.first if turn else part.first
                whole = _Part(first, part.last + whole.last, max(whole.empty, part.empty))
            previous = part
        return whole

    def _connect(self, ends: tuple[int, ...], beginnings: tuple[int, ...]) -> None:
        if len(ends) * len(beginnings) > _MOST_NODES * 10:
            self.too_many_nodes = True
            return
        for end in ends:
            for beginning in beginnings:
                self.edges[end, beginning] += 1

    def _letters_of(self, code: Any, argument: Any) -> frozenset[str]:
        if code is op.LITERAL and not self.ignore_case:
            return frozenset((chr(argument),))
        accepted = frozenset(filter(lambda letter: self._accepts(code, argument, letter), self.letters))
        if self.ignore_case:
            either = {form for a in accepted for form in (a.lower(), a.upper())}
            return frozenset(either & self.letters)
        return accepted

    def _accepts(self, code: Any, argument: Any, letter: str) -> bool:
        match code:
            case op.ANY:
                return True  # `.` also takes newlines under DOTALL; a name has none
            case op.LITERAL:
                return ord(letter) == int(argument)
            case op.NOT_LITERAL:
                return ord(letter) != int(argument)
            case op.RANGE:
                return bool(argument[0] <= ord(letter) <= argument[1])
            case op.CATEGORY:
                return bool(_CATEGORIES[argument](letter))
            case op.IN:
                negated = argument[0][0] is op.NEGATE
                items = argument[1:] if negated else argument
                return negated != any(self._accepts(kind, what, letter) for kind, what in items)
        return True

    def has_two_ways_round(self) -> bool:
        onward: dict[int, list[int]] = {}
        for source, target in self.edges:
            onward.setdefault(source, []).append(target)
        for circle in _circles(range(len(self.accepts)), onward):
            inside = {node: [other for other in onward.get(node, ()) if other in circle] for node in circle}
            if any(self.edges[a, b] > 1 for a, others in inside.items() for b in others):
                return True
            if self._diverges(inside):
                return True
        return False

    def longest_chain(self) -> Growth:
        """Return the repetitions that can share a text, in a row."""
        onward: dict[int, list[int]] = {}
        for source, target in self.edges:
            onward.setdefault(source, []).append(target)
        best: list[tuple[set[int], frozenset[str], Growth]] = []
        # Those that can be reached come first, so whatever follows a repetition is known already.
        for circle in _circles(range(len(self.accepts)), onward):
            letters = frozenset().union(*(self.accepts[node] for node in circle))
            mine = Growth(1, 1.0)
            between = self._letters_between(circle, letters, onward)
            for others, their_letters, theirs in best:
                ways = [between[node] for node in others if node in between]
                if ways and letters & their_letters:
                    chain = Growth(theirs.power + 1, theirs.factor / max(1, min(ways)))
                    mine = max(mine, chain)
            best.append((circle, letters, mine))
        return max((mine for _, _, mine in best), default=Growth(0, 1.0))

    def _letters_between(
        self, circle: set[int], letters: frozenset[str], onward: dict[int, list[int]]
    ) -> dict[int, int]:
        """Return the nodes that a repetition reaches over text that it matches itself, each with a number.

        That is the least number of different letters on the way: two places at which the repetition can end
        are at least that far apart.
        """
        reached: dict[int, frozenset[str]] = dict.fromkeys(circle, frozenset())
        pending = list(circle)
        while pending:
            node = pending.pop(0)
            for other in onward.get(node, ()):
                if other in reached or not self.accepts[other] & letters:
                    continue
                only = self.accepts[other] if len(self.accepts[other]) == 1 else frozenset()
                reached[other] = reached[node] | only
                pending.append(other)
        # The last one is of the repetition that was reached, and not before it.
        return {
            node: min(
                (
                    len(reached[source])
                    for source, target in self.edges
                    if target == node and source in reached
                ),
                default=0,
            )
            for node in reached
            if node not in circle
        }

    def _diverges(self, inside: dict[int, list[int]]) -> bool:
        """Whether two walks can leave a node differently, read the same letters, and meet there again."""
        onward: dict[tuple[int, int], list[tuple[int, int]]] = {}
        pending = [(node, node) for node in inside]
        while pending:
            pair = pending.pop()
            if pair in onward:
                continue
            source, target = pair
            onward[pair] = [
                (a, b) for a in inside[source] for b in inside[target] if self.accepts[a] & self.accepts[b]
            ]
            pending += onward[pair]
            if len(onward) > _MOST_NODES * 40:
                return True
        return any(
            any(a == b for a, b in circle) and any(a != b for a, b in circle)
            for circle in _circles(onward, onward)
        )


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdecimal(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    op.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    op.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}


def _letters_in(tree: Any) -> Iterator[str]:
    """Return one letter of each kind that the pattern distinguishes."""
    if isinstance(tree, parser.SubPattern | list | tuple):
        if len(tree) == 2 and tree[0] in (op.LITERAL, op.NOT_LITERAL):
            yield from _around(tree[1])
        elif len(tree) == 2 and tree[0] is op.RANGE:
            yield from _around(tree[1][0])
            yield from _around(tree[1][1])
        else:
            for item in tree:
                yield from _letters_in(item)


def _around(code: int) -> Iterator[str]:
    for near in (code - 1, code, code + 1):
        if 0 <= near < 0x110000:
            yield chr(near)


def _circles(nodes: Any, onward: Any) -> Iterator[set[Any]]:
    """Return the strongly connected components (Tarjan), without recursion."""
    order: dict[Any, int] = {}
    lowest: dict[Any, int] = {}
    open_nodes: list[Any] = []
    is_open: set[Any] = set()
    for root in nodes:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        open_nodes.append(root)
        is_open.add(root)
        walk = [(root, iter(onward.get(root, ())))]
        while walk:
            node, others = walk[-1]
            for other in others:
                if other not in order:
                    order[other] = lowest[other] = len(order)
                    open_nodes.append(other)
                    is_open.add(other)
                    walk.append((other, iter(onward.get(other, ()))))
                    break
                if other in is_open:
                    lowest[node] = min(lowest[node], order[other])
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == order[node]:
                    group = set()
                    while True:
                        member = open_nodes.pop()
                        is_open.discard(member)
                        group.add(member)
                        if member == node:
                            break
                    if len(group) > 1 or node in onward.get(node, ()):
                        yield group
