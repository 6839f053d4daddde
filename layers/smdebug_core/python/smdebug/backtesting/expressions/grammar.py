"""The grammar of expressions such as `loss > 3 * rolling_median(loss, 50)`. They are parsed, never executed.

A condition compares numbers, and conditions are joined by `and`, `or` and `not`. A name is a series of the
run; one that is not a plain word is in quotes: `"train/loss"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from smdebug.exceptions import SMDebugValueError
from smdebug.plain_text import did_you_mean
from smdebug.runs.statistics import STATISTICS

_LONGEST = 2000
_DEEPEST = 40
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][\w.]*)"""
    r"""|"(?P<quoted>[^"]+)"|(?P<sign><=|>=|==|!=|[-+*/()<>,]))"""
)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
WINDOWED = ("rolling_mean", "rolling_median", "rolling_min", "rolling_max", "rolling_std", "lag")
"""Functions of a number and a count of steps."""
PLAIN = ("abs", "log", "diff", "best")
"""Functions of a number."""
IS_NAN = "is_nan"
STEP = "step"
_STATISTIC = "stat"
_MOST_STEPS = 100_000


@dataclass(frozen=True)
class Number:
    """A number as it is written."""

    value: float
    text: str


@dataclass(frozen=True)
class Column:
    """What each run has at each step: a series, or a statistic of a tensor."""

    key: str
    text: str


@dataclass(frozen=True)
class Call:
    """A function or an operator applied to numbers or conditions: `rolling_mean`, `+`, `<`, `and`."""

    name: str
    parts: tuple[Node, ...]
    text: str

    @property
    def is_truth(self) -> bool:
        return self.name in (*COMPARISONS, "and", "or", "not", IS_NAN)


Node = Number | Column | Call


def parse(text: str) -> Call:
    """Return the condition that the text describes; `SMDebugValueError` says where it is none."""
    if len(text) > _LONGEST:
        raise SMDebugValueError(f"The expression has {len(text):,} characters; {_LONGEST:,} are allowed")
    found = _Parser(text).whole()
    if not isinstance(found, Call) or not found.is_truth:
        raise SMDebugValueError(f"{text!r} is a number, not a condition: compare it, as in {text} > 1")
    return found


def columns_of(node: Node) -> tuple[str, ...]:
    """Return the keys of the columns that the expression reads, each once."""
    if isinstance(node, Column):
        return (node.key,)
    parts = node.parts if isinstance(node, Call) else ()
    return tuple(dict.fromkeys(key for part in parts for key in columns_of(part)))


class _Parser:
    def __init__(self, text: str):
        self._text = text
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0

    def whole(self) -> Node:
        found = self._either()
        if self._kind:
            raise self._error(f"{self._word!r} is not expected")
        return found

    @property
    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    @property
    def _word(self) -> str:
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    def _take(self, *words: str) -> str:
        """Return the next word if it is one of these, and go on; "" otherwise."""
        if self._kind in ("sign", "name") and self._word in words:
            self._place += 1
            return self._tokens[self._place - 1][1]
        return ""

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._error(f"{word!r} is missing")

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("it is nested too deeply")
        found = self._both()
        while self._take("or"):
            found = self._call("or", self._truth(found), self._truth(self._both()))
        self._depth -= 1
        return found

    def _both(self) -> Node:
        found = self._negation()
        while self._take("and"):
            found = self._call("and", self._truth(found), self._truth(self._negation()))
        return found

    def _negation(self) -> Node:
        negations = 0
        while self._take("not"):
            negations += 1
        found = self._comparison()
        if negations:
            found = self._truth(found)
        return self._call("not", found) if negations % 2 else found

    def _comparison(self) -> Node:
        found = self._sum()
        if sign := self._take(*COMPARISONS):
            found = self._call(sign, self._number(found), self._number(self._sum()))
            if self._kind == "sign" and self._word in COMPARISONS:
                raise self._error("write a < b and b < c for two comparisons")
        return found

    def _sum(self) -> Node:
        found = self._product()
        while sign := self._take("+", "-"):
            found = self._call(sign, self._number(found), self._number(self._product()))
        return found

    def _product(self) -> Node:
        found = self._signed()
        while sign := self._take("*", "/"):
            found = self._call(sign, self._number(found), self._number(self._signed()))
        return found

    def _signed(self) -> Node:
        is_negative = False
        while sign := self._take("-", "+"):
            is_negative ^= sign == "-"
        found = self._atom()
        if not is_negative:
            return found
        if isinstance(found, Number):
            return Number(-found.value, f"-{found.text}")
        return self._call("-", Number(0.0, "0"), self._number(found))

    def _atom(self) -> Node:
        if self._take("("):
            found = self._either()
            self._need(")")
            return found
        kind, word = self._kind, self._word
        self._place += 1
        if kind == "number":
            return Number(float(word), word)
        if kind == "quoted":
            return Column(f"series:{word}", f'"{word}"')
        if kind != "name" or word in ("and", "or", "not"):
            self._place -= 1
            raise self._error(f"{word!r} is not expected" if word else "it ends too early")
        return self._function(word) if self._take("(") else Column(f"series:{word}", word)

    def _function(self, name: str) -> Node:
        if name == _STATISTIC:
            return self._statistic()
        if name not in (*PLAIN, *WINDOWED, IS_NAN):
            known = (*PLAIN, *WINDOWED, IS_NAN, _STATISTIC)
            raise self._error(f"there is no function {name}; there are {', '.join(known)}")
        parts = [self._number(self._either())]
        if name in WINDOWED:
            self._need(",")
            steps = self._atom()
            if not isinstance(steps, Number) or not steps.value.is_integer() or not _is_count(steps.value):
                raise self._error(f"{name} takes a number of steps, from 1 to {_MOST_STEPS:,}")
            parts.append(steps)
        self._need(")")
        return self._call(name, *parts)

    def _statistic(self) -> Node:
        words = []
        for end in (",", ")"):
            if self._kind not in ("name", "quoted"):
                raise self._error('write stat("gradient/fc", abs_mean)')
            words.append(self._word)
            self._place += 1
            self._need(end)
        tensor, statistic = words
        if statistic not in STATISTICS:
            hint = did_you_mean(statistic, STATISTICS) or f" There are {', '.join(STATISTICS)}."
            raise self._error(f"there is no statistic {statistic}.{hint}")
        return Column(f"stat:{statistic}:{tensor}", f'stat("{tensor}", {statistic})')

    def _truth(self, node: Node) -> Node:
        if not isinstance(node, Call) or not node.is_truth:
            raise self._error(f"{node.text} is a number, not a condition")
        return node

    def _number(self, node: Node) -> Node:
        if isinstance(node, Call) and node.is_truth:
            raise self._error(f"{node.text} is a condition, not a number")
        return node

    def _call(self, name: str, *parts: Node) -> Call:
        return Call(name, parts, _text_of(name, parts))

    def _error(self, problem: str) -> SMDebugValueError:
        at = self._tokens[self._place][2] if self._place < len(self._tokens) else len(self._text)
        return SMDebugValueError(f"{self._text!r}, at character {at + 1}: {problem}")


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            start = len(text) - len(text[at:].lstrip())
            raise SMDebugValueError(f"{text!r}, at character {start + 1}: {text[start]!r} is not expected")
        kind = found.lastgroup or ""
        yield kind, found[kind], found.start(kind)
        at = found.end()


def _is_count(steps: float) -> bool:
    return 1 <= steps <= _MOST_STEPS


def _text_of(name: str, parts: tuple[Node, ...]) -> str:
    texts = [part.text for part in parts]
    if name == "not":
        return f"not ({texts[0]})"
    if name in (*PLAIN, *WINDOWED, IS_NAN):
        return f"{name}({', '.join(texts)})"
    wrapped = [
        f"({part.text})"
        if isinstance(part, Call) and not part.name[-1].isalpha() and name in "*/"
        else part.text
        for part in parts
    ]
    return f" {name} ".join(wrapped)
