"""How much of what is logged is kept: as much as a limit says, and no more."""

import json

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugTypeError
from smdebug.files.logged.catalog import MOST_BYTES_OF_TEXT
from smdebug.saving.logged import keeping, values
from smdebug.saving.logged.keeping import RunLogged
from smdebug.saving.logged.values import MOST_CLASSES, MOST_ROWS, LeftOut, Text, value_in
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.storage.memory import MemoryStorage
from smdebug.trials.logged_reading import read_logged


def pixels(height, width):
    return smdebug.Image(np.zeros((height, width), np.uint8))


def matrix(size):
    return smdebug.ConfusionMatrix(np.zeros((size, size), int))


@pytest.mark.parametrize(
    ("kept", "left_out", "why"),
    [
        (lambda: pixels(50, 40), lambda: pixels(51, 40), "too large"),
        (lambda: pixels(1, 1), lambda: pixels(0, 5), "an image without pixels"),
        (lambda: Text("x" * MOST_BYTES_OF_TEXT), lambda: Text("x" * (MOST_BYTES_OF_TEXT + 1)), "too large"),
        (
            lambda: smdebug.Table([[1] * 262] * MOST_ROWS, ["a"] * 262),
            lambda: smdebug.Table([[1] * 263] * MOST_ROWS, ["a"] * 263),
            "too large",
        ),
        (
            lambda: smdebug.Table([], ["a"]),
            lambda: smdebug.Table([[], []], []),
            "a table without columns",
        ),
        (lambda: matrix(MOST_CLASSES), lambda: matrix(MOST_CLASSES + 1), "too large"),
        (lambda: matrix(1), lambda: matrix(0), "a matrix without classes"),
        (
            lambda: smdebug.ConfusionMatrix([[0, 1], [0, 0]]),
            lambda: smdebug.ConfusionMatrix([[0, -1], [0, 3]]),
            "a matrix with counts below 0",
        ),
        (lambda: smdebug.Audio([0.5], 1), lambda: smdebug.Audio([], 1), "sound without samples"),
        (
            lambda: smdebug.Histogram([np.nan, 1.0]),
            lambda: smdebug.Histogram([np.nan]),
            "a histogram without finite values",
        ),
    ],
)
def test_a_value_at_the_limit_is_kept_and_one_above_it_is_left_out(kept, left_out, why, monkeypatch):
    monkeypatch.setattr(values, "MOST_PIXELS", 2000)
    assert kept().keep()
    with pytest.raises(LeftOut, match=why):
        left_out().keep()


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        (lambda: smdebug.Histogram([1.0], bins=512), lambda: smdebug.Histogram([1.0], bins=513)),
        (lambda: smdebug.Histogram([1.0], bins=1), lambda: smdebug.Histogram([1.0], bins=1.5)),
        (lambda: smdebug.Audio([0.0], 768_000), lambda: smdebug.Audio([0.0], 768_001)),
        (lambda: smdebug.Audio([0.0], 1), lambda: smdebug.Audio([0.0], 0)),
        (lambda: smdebug.Audio([0.0], np.int64(1)), lambda: smdebug.Audio([0.0], True)),
        (lambda: smdebug.Audio(np.zeros((5, 2)), 1), lambda: smdebug.Audio(np.zeros((5, 3)), 1)),
        (lambda: smdebug.Audio(np.zeros(5, np.int16), 1), lambda: smdebug.Audio(np.zeros(5, np.int32), 1)),
        (lambda: smdebug.Image(np.zeros((3, 3, 4))), lambda: smdebug.Image(np.zeros((5, 5, 2)))),
        (lambda: smdebug.Image(np.zeros((2, 3))), lambda: smdebug.Image(np.zeros((2, 3, 3, 3)))),
        (lambda: matrix(2), lambda: smdebug.ConfusionMatrix(np.zeros(4, int))),
    ],
)
def test_the_last_argument_that_is_taken_and_the_first_that_is_refused(taken, refused):
    taken()
    with pytest.raises(SMDebugTypeError):
        refused()


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("a text", smdebug.Text),
        ("3.5", None),
        ("nan", None),
        (3.5, None),
        (np.zeros((2, 2)), smdebug.Image),
        (np.zeros(4), None),
        (np.zeros((1, 1)), None),
        ([{"a": 1}], smdebug.Table),
        ([{"a": 1}, 3], None),
        ([], None),
    ],
)
def test_what_is_given_is_a_value_to_be_looked_at_or_meant_as_a_number(given, kind):
    assert type(value_in(given)) is (kind or type(None))


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (None, None),
        (True, True),
        (2**53, 2**53),
        (2**53 + 1, str(2**53 + 1)),
        (-(2**60), str(-(2**60))),
        (np.int64(3), 3),
        (np.array(2.5), 2.5),
        (float("inf"), "inf"),
        (b"bytes", "b'bytes'"),
        ((1, 2), "(1, 2)"),
        ("x" * 3000, "x" * 2000),
    ],
)
def test_a_cell_is_shown_as_what_json_can_hold(cell, shown):
    table = json.loads(smdebug.Table([{"a": cell}]).keep().content)
    assert table["rows"] == [[shown]]
    assert type(table["rows"][0][0]) is type(shown)


def test_rows_beyond_the_limit_are_counted():
    kept = smdebug.Table([{"a": 1}] * (MOST_ROWS + 2)).keep()
    assert (kept.note, kept.shape) == ("2 more rows left out", (MOST_ROWS + 2, 1))
    assert smdebug.Table([{"a": 1}] * MOST_ROWS).keep().note == ""


def test_counts_are_in_bins_of_equal_width_unless_there_is_no_room_for_them():
    assert json.loads(smdebug.Histogram([0, 1, 2, 3], bins=2).keep().content) == {
        "counts": [2, 2],
        "edges": [0.0, 1.5, 3.0],
        "not_finite": 0,
    }
    narrow = json.loads(smdebug.Histogram([1.0, np.nextafter(1.0, 2)], bins=2).keep().content)
    assert narrow["counts"] == [2]
    zeros = json.loads(smdebug.Histogram(np.zeros(3)).keep().content)
    assert zeros["edges"] == pytest.approx([-1e-6, 1e-6])


class Worker:
    """What one worker logs, into a storage in memory."""

    def __init__(self, storage=None, attempt=None):
        self.storage = storage or MemoryStorage("run")
        self.attempt = attempt or StartedAttempt("run")
        self.said = []
        self.logged = RunLogged(lambda message, kind: self.said.append(kind))

    def add(self, *values, step=0):
        for value in values:
            self.logged.add("x", value, step, "TRAIN")
        return self

    def write(self):
        self.logged.begin(self.storage, self.attempt, "worker_0")
        self.logged.finish(60)
        return [each.read() for each in read_logged(self.storage)]


def test_values_wait_in_so_much_memory_until_they_are_written(monkeypatch):
    size = smdebug.Text("abc").keep().waiting_bytes
    monkeypatch.setattr(keeping, "MOST_WAITING_BYTES", 2 * size)
    worker = Worker().add(Text("abc"), Text("def"), Text("ghi"))
    assert worker.said == ["logged too slow"]
    assert worker.write() == ["abc", "def"]
    worker.add(Text("jkl"))
    worker.logged.finish(60)
    assert len(read_logged(worker.storage)) == 3, "there is room again"


def test_a_worker_keeps_so_many_bytes_in_all(monkeypatch):
    size = len(smdebug.Text("abc").keep().encode())
    monkeypatch.setattr(keeping, "MOST_BYTES", 2 * size)
    worker = Worker().add(Text("abc"), Text("def"), Text("ghi"))
    assert worker.write() == ["abc", "def"]
    assert worker.said == ["logged too many"]
    catalog = json.loads(worker.storage.read("logged/catalogs/worker_0.value"))
    assert catalog["left_out"] == {"too many": 1}


def test_values_of_earlier_attempts_count_as_far_as_their_steps_do(monkeypatch):
    monkeypatch.setattr(keeping, "MOST_VALUES", 3)
    first = Worker()
    for step in range(3):
        first.add(Text(f"first {step}"), step=step)
    assert len(first.write()) == 3
    again = Worker(first.storage, StartedAttempt("run", 1, resumed_at=2)).add(Text("a"), Text("b"), step=2)
    assert again.write() == ["first 0", "first 1", "a"], "the fourth is one too many"
    assert [each.number for each in read_logged(first.storage)] == [0, 1, 3]
    assert again.said == ["logged too many"]
    whole = Worker(first.storage, StartedAttempt("run", 2, resumed_at=None))
    assert whole.add(Text("c"), step=9).write() == ["first 0", "first 1", "a"]
    first_of_all = Worker(first.storage, StartedAttempt("run", 0))
    assert first_of_all.add(Text("new")).write() == ["new"]


def test_a_catalog_that_cannot_be_read_is_written_anew():
    storage = MemoryStorage("run")
    storage.write("logged/catalogs/worker_0.value", b"{")
    worker = Worker(storage, StartedAttempt("run", 1, resumed_at=5)).add(Text("a"))
    assert worker.write() == ["a"]
    assert [each.number for each in read_logged(storage)] == [0]
