"""Synthetic digits to train on: ten 5-by-7 shapes at random places of a noisy 16-by-16 image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_SHAPES = """
.###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. ####. ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# #...# ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ....#
.###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .###.
"""
SIZE = 16
_MEAN, _STD = np.float32(0.077), np.float32(0.19)  # of all images


def shapes() -> np.ndarray:
    """Return the ten digits as an array of zeros and ones, 10 by 7 by 5."""
    rows = [line.split() for line in _SHAPES.split("\n") if line]
    return np.array([[[p == "#" for p in row[n]] for row in rows] for n in range(10)], np.float32)


def batches(count: int, size: int = 64, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield `count` batches: normalized images, `size` by 1 by 16 by 16, and their labels."""
    rng = np.random.default_rng(seed)
    drawn = shapes()
    for _ in range(count):
        labels = rng.integers(0, 10, size)
        images = np.zeros((size, 1, SIZE, SIZE), np.float32)
        tops, lefts = rng.integers(3, 7, size), rng.integers(3, 9, size)
        for image, label, top, left in zip(images, labels, tops, lefts, strict=True):
            image[0, top : top + 7, left : left + 5] = drawn[label] * rng.uniform(0.6, 1.0)
        images += rng.normal(0, 0.08, images.shape).astype(np.float32)
        yield (np.clip(images, 0, 1) - _MEAN) / _STD, labels
