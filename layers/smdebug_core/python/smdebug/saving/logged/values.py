"""The values that `smdebug.log` takes beside numbers, each as what is kept of it.

A value of a wrong type is refused at once, as a number is. What depends on the data of the training (values
that are not finite, nothing to show) is noted beside the value, or the value is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import counted
from smdebug.exceptions import SMDebugTypeError
from smdebug.files.logged.catalog import (
    AUDIO,
    CONFUSION,
    HISTOGRAM,
    IMAGE,
    LONGEST_CAPTION,
    MOST_BYTES_OF_TEXT,
    TABLE,
    TEXT,
)
from smdebug.files.logged.contents import LONGEST_CELL, encode_value
from smdebug.files.logged.png import MOST_PIXELS, encode_png
from smdebug.files.logged.sound import encode_wav
from smdebug.saving.logged.arrays import array_of, image_of, is_image_array, is_picture
from smdebug.secrets.data import without_secret
from smdebug.secrets.texts import redacted

MOST_ROWS = 1000
MOST_CLASSES = 200
MOST_BINS = 512


class LeftOut(Exception):
    """A value is not kept, for a reason that the data of the training has."""


class Kept(NamedTuple):
    """What is kept of a value: an array that is encoded later, or the bytes of its file."""

    kind: str
    content: NDArray[Any] | bytes
    caption: str = ""
    note: str = ""
    shape: tuple[int, ...] = ()
    rate: int = 0
    """Of sound."""

    @property
    def waiting_bytes(self) -> int:
        """How much memory it takes until it is written."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.nbytes

    def encode(self) -> bytes:
        """Return the file."""
        if isinstance(self.content, bytes):
            return self.content
        return encode_wav(self.content, self.rate) if self.kind == AUDIO else encode_png(self.content)


class Value:
    """A value to be looked at: `smdebug.log(sample=smdebug.Image(pixels, caption="after epoch 3"))`."""

    caption = ""

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return what is kept; raise `LeftOut` if there is nothing to show."""
        raise NotImplementedError


class Image(Value):
    """An image: an array or tensor of height, width and 1, 3 or 4 channels, or an image of PIL.

    Its numbers are uint8, or floats from 0 to 1. `channels` is "first" or "last", where both are possible.
    """

    def __init__(self, image: Any, *, caption: str = "", channels: str | None = None):
        self.caption = caption_of(caption)
        self._pixels, self._note = image_of(image, channels)

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return the pixels."""
        if not self._pixels.size:
            raise LeftOut("an image without pixels")
        if self._pixels.shape[0] * self._pixels.shape[1] > MOST_PIXELS:
            raise LeftOut("too large")
        return Kept(IMAGE, self._pixels, self.caption, self._note, self._pixels.shape)


class Text(Value):
    """A text, such as what a model has generated. Its lines are kept."""

    def __init__(self, text: str, *, caption: str = ""):
        if not isinstance(text, str):
            raise SMDebugTypeError(f"Text takes a text, not {type(text).__name__}")
        self._text, self.caption = text, caption_of(caption)

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return the text without secrets."""
        if len(self._text) > MOST_BYTES_OF_TEXT:
            raise LeftOut("too large")
        content = encode_value({"text": redacted(self._text, not_secret)})
        return Kept(TEXT, content, self.caption, shape=(len(self._text),))


class Table(Value):
    """A table: a list of dictionaries, or a list of rows and the names of their `columns`."""

    def __init__(self, rows: Iterable[Any], columns: Sequence[Any] | None = None, *, caption: str = ""):
        self.caption = caption_of(caption)
        listed = list(rows)
        if columns is None:
            if not all(isinstance(row, Mapping) for row in listed):
                raise SMDebugTypeError("Table takes a list of dictionaries, or rows and the names of columns")
            columns = list(dict.fromkeys(name for row in listed for name in row))
            self._rows = [[row.get(name) for name in columns] for row in listed]
        else:
            self._rows = [list(row) for row in listed]
            if not all(len(row) == len(columns) for row in self._rows):
                raise SMDebugTypeError(f"Each row of the table must have {counted(len(columns), 'value')}")
        self._columns = [str(name)[:LONGEST_CELL] for name in columns]

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return the table without secrets."""
        rows, columns = self._rows[:MOST_ROWS], self._columns
        cells = len(rows) * max(1, len(columns))
        if not columns:
            raise LeftOut("a table without columns")
        if cells > MOST_BYTES_OF_TEXT:
            raise LeftOut("too large")
        shown = [
            [cell_of(name, cell, not_secret) for name, cell in zip(columns, row, strict=True)] for row in rows
        ]
        content = {"columns": [redacted(name, not_secret) for name in columns], "rows": shown}
        more = len(self._rows) - len(rows)
        note = f"{counted(more, 'more row')} left out" if more else ""
        return Kept(TABLE, encode_value(content), self.caption, note, (len(self._rows), len(columns)))


class ConfusionMatrix(Value):
    """How often each class was predicted: a row of whole numbers for each true class."""

    def __init__(self, counts: Any, classes: Sequence[Any] | None = None, *, caption: str = ""):
        self.caption = caption_of(caption)
        matrix = array_of(counts)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype.kind not in "biu":
            raise SMDebugTypeError(
                "ConfusionMatrix takes a square matrix of whole numbers, "
                f"not {matrix.dtype} of shape {matrix.shape}"
            )
        names = range(len(matrix)) if classes is None else classes
        if len(names) != len(matrix):
            raise SMDebugTypeError(f"The matrix has {len(matrix)} classes, but {len(names)} are named")
        self._matrix, self._classes = np.array(matrix), [str(name)[:LONGEST_CELL] for name in names]

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return the matrix."""
        size = len(self._matrix)
        if not size:
            raise LeftOut("a matrix without classes")
        if size > MOST_CLASSES:
            raise LeftOut("too large")
        if (self._matrix < 0).any():
            raise LeftOut("a matrix with counts below 0")
        classes = [redacted(name, not_secret) for name in self._classes]
        content = {"classes": classes, "counts": self._matrix.astype(int).tolist()}
        return Kept(CONFUSION, encode_value(content), self.caption, shape=(size, size))


class Histogram(Value):
    """How values are distributed: any array or tensor, counted in `bins` of equal width."""

    def __init__(self, values: Any, *, bins: int = 64, caption: str = ""):
        self.caption = caption_of(caption)
        array = array_of(values)
        if array.dtype.kind not in "biuf":
            raise SMDebugTypeError(f"Histogram takes real numbers, not {array.dtype}")
        if not isinstance(bins, int) or not 0 < bins <= MOST_BINS:
            raise SMDebugTypeError(f"bins must be a whole number from 1 to {MOST_BINS}, not {bins!r}")
        numbers = array.reshape(-1).astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        self._not_finite = len(numbers) - len(finite)
        self._counted = _counted(finite, bins) if len(finite) else None

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return the counts."""
        if self._counted is None:
            raise LeftOut("a histogram without finite values")
        counts, edges = self._counted
        content = {"counts": counts.tolist(), "edges": edges.tolist(), "not_finite": self._not_finite}
        note = f"{counted(self._not_finite, 'value')} not finite" if self._not_finite else ""
        return Kept(HISTOGRAM, encode_value(content), self.caption, note, (int(counts.sum()),))


class Audio(Value):
    """Sound: samples at a `rate` per second, of one channel or of shape (samples, channels).

    They are floats from -1 to 1, or int16.
    """

    def __init__(self, samples: Any, rate: int, *, caption: str = ""):
        self.caption = caption_of(caption)
        array = array_of(samples)
        is_sound = array.ndim in (1, 2) and (array.dtype == np.int16 or array.dtype.kind == "f")
        if not is_sound or (array.ndim == 2 and array.shape[1] not in (1, 2)):
            raise SMDebugTypeError(
                "Audio takes floats from -1 to 1 or int16, of shape (samples,) or (samples, channels), "
                f"not {array.dtype} of shape {array.shape}"
            )
        if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or not 1 <= rate <= 768_000:
            raise SMDebugTypeError(f"rate is the number of samples per second, not {rate!r}")
        self._rate, self._note = int(rate), ""
        array = array if array.ndim == 2 else array[:, None]
        if array.dtype.kind == "f":
            is_odd = ~(np.abs(array) <= 1)
            odd = int(is_odd.sum())
            self._note = f"{counted(odd, 'sample')} outside of -1 to 1, clipped" if odd else ""
            array = np.clip(np.nan_to_num(array, nan=0.0), -1, 1) * 32767
        self._samples = array.astype(np.int16)

    def keep(self, not_secret: tuple[str, ...] = ()) -> Kept:
        """Return the samples."""
        if not self._samples.size:
            raise LeftOut("sound without samples")
        return Kept(AUDIO, self._samples, self.caption, self._note, self._samples.shape, self._rate)


def value_in(given: Any) -> Value | None:
    """Return what was given as a value to be looked at; None if it is to be a number."""
    if isinstance(given, Value):
        return given
    if isinstance(given, str):
        return None if _is_number(given) else Text(given)
    if is_picture(given) or is_image_array(given):
        return Image(given)
    if isinstance(given, list | tuple) and given and all(isinstance(row, Mapping) for row in given):
        return Table(given)
    return None


def _is_number(text: str) -> bool:
    """Return whether a text is probably meant as a number, which is refused."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def caption_of(caption: Any) -> str:
    """Return the caption; raise if it is no text."""
    if not isinstance(caption, str):
        raise SMDebugTypeError(f"caption must be a text, not {type(caption).__name__}")
    return caption[:LONGEST_CAPTION]


def cell_of(column: str, value: Any, not_secret: tuple[str, ...] = ()) -> Any:
    """Return the value as a cell of a table has it."""
    if isinstance(value, np.generic) or (hasattr(value, "item") and getattr(value, "ndim", None) == 0):
        value = value.item()
    if isinstance(value, bytes) or not (value is None or isinstance(value, str | bool | int | float)):
        value = str(value)
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    if isinstance(value, str):
        value = value[:LONGEST_CELL]
    return without_secret(column, value, not_secret)


def _counted(numbers: NDArray[np.float64], bins: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    low, high = float(numbers.min()), float(numbers.max())
    if not np.isfinite(high - low) or high - low < bins * np.spacing(max(abs(low), abs(high))):
        bins = 1  # too wide or too narrow to be divided
        width = max(abs(low), abs(high), 1.0) * 1e-6 if low == high else 0.0
        edges = np.array([low - width, high + width])
        return np.array([len(numbers)]), np.nan_to_num(edges)
    return np.histogram(numbers, bins, (low, high))
