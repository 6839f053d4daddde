"""A short part of `make fuzz`: what was kept, and some thousands of small changes of it."""

from __future__ import annotations

import json
import random
import tracemalloc
from typing import Any

import pytest

from smdebug.exceptions import DamagedFile
from tests.fuzz.targets import TARGETS, Target

INPUTS = 8000
BYTES_FOR_EACH = 200  # of memory, for each byte of input: a JSON document takes that much in Python
BYTES_FOR_ALL = 1 << 20
ODD = [None, True, -1, 0, 1.5, 1e308, float("nan"), 10**400, "", "a\0b", "\ud800", "../x", [], {}]
ODD_BYTES = [b"\xff" * 8, b"\0" * 4, b"\x80" * 10, (1 << 62).to_bytes(8, "little")]

each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


def changed(data: bytes, others: list[bytes], chance: random.Random, *, is_text: bool) -> bytes:
    """The bytes with a few changes."""
    if is_text and chance.random() < 0.5:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            pass
        else:
            return json.dumps(odd_somewhere(content, chance)).encode()
    some = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(some))
        upto = min(len(some), at + chance.randint(0, 16))
        kind = chance.randrange(4)
        if kind == 0 and at < len(some):
            some[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del some[at:upto]
        elif kind == 2:
            some[at:upto] = chance.choice(ODD_BYTES)
        else:
            other = chance.choice(others)
            begin = chance.randint(0, len(other))
            some[at:upto] = other[begin : begin + chance.randint(0, 64)]
    return bytes(some)


def odd_somewhere(content: Any, chance: random.Random) -> Any:
    """The document with one value that is odd, missing or there twice."""
    if not isinstance(content, dict | list) or not content or chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(content, list):
        at = chance.randrange(len(content))
        if chance.random() < 0.1:
            return [*content, *content]
        return [*content[:at], odd_somewhere(content[at], chance), *content[at + 1 :]]
    key = chance.choice([*content])
    if chance.random() < 0.1:
        return {other: value for other, value in content.items() if other != key}
    return {**content, key: odd_somewhere(content[key], chance)}


@each_target
def test_what_once_broke_a_reader_or_reached_new_code_is_read_or_refused(target):
    assert len(target.kept) > 20
    for data in target.kept:
        target.takes(data)


@each_target
def test_some_of_what_it_is_fed_is_read_and_some_refused(target):
    assert {target.takes(data) for data in [*target.seeds(), *target.kept]} == {True, False}


@each_target
def test_small_changes_are_read_or_refused(target):
    chance = random.Random(11)
    known = sorted({*target.seeds(), *target.kept})
    for _ in range(INPUTS):
        target.takes(changed(chance.choice(known), known, chance, is_text=target.is_text))


@each_target
def test_no_input_takes_more_memory_than_its_size_allows(target):
    chance = random.Random(12)
    known = sorted({*target.seeds(), *target.kept})
    inputs = [changed(data, known, chance, is_text=target.is_text) for data in known[:150]]
    for data in inputs:  # what is remembered from one to the next is not counted
        target.takes(data)
    tracemalloc.start()
    try:
        for data in [*known[:150], *inputs]:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            target.takes(data)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < BYTES_FOR_ALL + BYTES_FOR_EACH * len(data), data
    finally:
        tracemalloc.stop()


def test_an_error_of_another_kind_is_not_taken_for_a_refusal():
    def read(data: bytes) -> None:
        raise IndexError("out of range")

    with pytest.raises(IndexError):
        Target("broken", read, (DamagedFile,), lambda: iter(())).takes(b"")
