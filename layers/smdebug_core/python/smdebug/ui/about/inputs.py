"""The inputs that findings point at: images as pictures, tokens and text as text."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugError
from smdebug.runs.overview import thinned
from smdebug.trials import Trial
from smdebug.ui.answer_types import RuleAnswer

MOST_INPUTS = 4
MOST_PICTURES = 8
MOST_TEXTS = 6
LONGEST_TEXT = 300
_SMALLEST, _LARGEST = 4, 512  # pixels of an edge; larger pictures are thinned
MOST_PIXELS = 1_000_000
"""Of all pictures, so that an answer stays small."""
_IS_INPUT = re.compile(r"_input_\d+$|(^|/)(inputs?|images?|labels)(_\d+)?$|^batch_")


@dataclass(frozen=True)
class ShownInput:
    """The content of a tensor of the batch at the step of a finding."""

    name: str
    step: int
    shape: tuple[int, ...]
    rules: tuple[str, ...]
    pictures: tuple[str, ...] = ()  # data URIs
    texts: tuple[str, ...] = ()


def inputs_shown(
    trial: Trial, verdicts: Sequence[RuleAnswer]
) -> tuple[tuple[ShownInput, ...], tuple[str, ...]]:
    """Return the inputs in findings whose values were saved, and the names of those only measured."""
    rules: dict[str, dict[str, None]] = {}
    steps: dict[str, list[int]] = {}
    for verdict in verdicts:
        for found in verdict["found"]:
            for name in found["tensors"]:
                if _is_input(trial, name):
                    rules.setdefault(name, {})[verdict["name"]] = None
                    steps.setdefault(name, []).append(found["step"])
    shown_inputs, unsaved = [], []
    for name in list(rules)[:MOST_INPUTS]:
        shown = _shown(trial, name, sorted(set(steps[name])), tuple(rules[name]))
        if shown is not None:
            shown_inputs.append(shown)
        elif not trial.has_tensor(name):
            unsaved.append(name)
    return tuple(shown_inputs), tuple(unsaved)


def _is_input(trial: Trial, name: str) -> bool:
    collections = trial.collections()
    listed = collections["inputs"].tensor_names if "inputs" in collections else ()
    return name in listed or bool(_IS_INPUT.search(name))


def _shown(trial: Trial, name: str, steps: Sequence[int], rules: tuple[str, ...]) -> ShownInput | None:
    if not trial.has_tensor(name):
        return None
    tensor = trial.tensor(name)
    saved = set(tensor.steps())
    for step in steps:
        if step not in saved:
            continue
        try:
            value = tensor.value(step)
        except SMDebugError:
            continue
        shown = ShownInput(name, step, value.shape, rules, _pictures(value), _texts(value))
        if shown.pictures or shown.texts:
            return shown
    return None


def _pictures(value: NDArray[Any]) -> tuple[str, ...]:
    """Return the first images of a batch as PNG; empty if these are not images."""
    if value.dtype.kind not in "biuf" or value.ndim not in (3, 4) or not value.size:
        return ()
    batch = value[:MOST_PICTURES]
    if batch.ndim == 4 and batch.shape[1] in (1, 3) and batch.shape[3] not in (1, 3):
        batch = np.moveaxis(batch, 1, -1)  # channels first
    elif batch.ndim == 3:
        batch = batch[..., np.newaxis]
    height, width, channels = batch.shape[1:]
    if channels not in (1, 3) or min(height, width) < _SMALLEST:
        return ()
    batch = batch.astype(np.float64)
    finite = batch[np.isfinite(batch)]
    if not finite.size:
        return ()
    low, high = float(finite.min()), float(finite.max())
    scaled = (np.nan_to_num(batch, nan=low, posinf=high, neginf=low) - low) / (high - low or 1.0)
    pixels = np.round(255 * scaled).astype(np.uint8)
    fits = math.isqrt(MOST_PIXELS // (MOST_INPUTS * len(batch) * channels))
    rows, columns = (thinned(list(range(edge)), min(_LARGEST, fits)) for edge in (height, width))
    return tuple(png_uri(image[np.ix_(rows, columns)]) for image in pixels)


def _texts(value: NDArray[Any]) -> tuple[str, ...]:
    """Return texts as they are, and rows of tokens as their numbers; empty for other values."""
    if value.dtype.kind in "US":
        plain = value.reshape(-1)[:MOST_TEXTS].astype(str).tolist()
        return tuple(text[:LONGEST_TEXT] for text in plain)
    if value.dtype.kind in "iu" and value.ndim == 2:
        rows = (" ".join(map(str, row[:LONGEST_TEXT])) for row in value[:MOST_TEXTS].tolist())
        return tuple(row[:LONGEST_TEXT] for row in rows)
    return ()


def png_uri(pixels: NDArray[np.uint8]) -> str:
    """Return an image of one or three channels as the address of a PNG with its bytes."""
    height, width, channels = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    parts = (b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
