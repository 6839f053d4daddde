"""A 128-bit digest of a tensor's bytes, which distinguishes copies of a tensor from tensors that differ.

The bytes are taken as 64-bit little-endian words. Words at even places make one half of the digest, words
at odd places the other: each half is the sum of its words times fixed odd weights, modulo 2**64. It needs
nothing but multiplications and additions, so that a GPU computes the same digest as numpy does, and a
single word that differs always shows. It does not defend against collisions made on purpose.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS_IN_A_BLOCK = 1 << 16
"""Weights repeat from block to block; in addition, each block is weighted as a whole."""

Words = NDArray[np.uint64]
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def content_digest(array: NDArray[Any]) -> tuple[int, int]:
    """The digest of the array's bytes in C order, as two signed 64-bit integers.

    Shape and type are not part of it; the number of bytes is.
    """
    words = words_of(array)
    length = array.nbytes
    return _half(words[0::2], length), _half(words[1::2], length + 1)


def words_of(array: NDArray[Any]) -> Words:
    """The array's bytes as 64-bit words, the last one padded with zeros."""
    flat: NDArray[np.uint8] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if flat.size % 8:
        filled = np.zeros(-(-flat.size // 8) * 8, np.uint8)
        filled[: flat.size] = flat
        flat = filled
    return flat.view("<u8").astype(np.uint64, copy=False)


def weights(count: int) -> Words:
    """The first `count` weights: odd, and without a pattern (SplitMix64)."""
    return _all_weights()[:count]


def block_weight(block: int) -> int:
    """The weight of a whole block: odd, and different for each."""
    return _mixed((block + 1) * _GOLDEN ^ 0xD1B54A32D192ED03) | 1


def finished(total: int, length: int) -> int:
    """The sum of weighted words with the number of bytes mixed in, as a signed integer."""
    total = (total + _mixed(length)) & _MASK
    return total - (1 << 64) if total >> 63 else total


def _half(words: Words, length: int) -> int:
    total = 0
    for block, start in enumerate(range(0, words.size, WORDS_IN_A_BLOCK)):
        piece = words[start : start + WORDS_IN_A_BLOCK]
        total += block_weight(block) * int(np.dot(piece, weights(piece.size)))
    return finished(total & _MASK, length)


@cache
def _all_weights() -> Words:
    with np.errstate(over="ignore"):
        state = np.arange(1, WORDS_IN_A_BLOCK + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))) | np.uint64(1)


@lru_cache(maxsize=4096)
def _mixed(number: int) -> int:
    number &= _MASK
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return number ^ number >> 31
