"""What is answered about one tensor, of runs whose values are given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smdebug.exceptions import SMDebugError
from smdebug.numbers.rows import COLUMNS, matrix_of
from smdebug.ui.about.last_numbers import MOST_ROWS, last_numbers
from smdebug.ui.about.worker_spread import MOST_COMPARED, MOST_STEPS, Disagreement, worker_spread
from smdebug.ui.answering.tensors import BINS, MEMBER_STEPS, SLICE, at_step, history_of, history_of_member
from smdebug.ui.drawing.matrices import Statistics

NAMES = ["a", "b\n"]


class Saved:
    """A run that saved tensors: values by worker, the same at every step."""

    def __init__(self, **workers):
        self._workers = workers
        self.observations = SimpleNamespace(
            at=lambda step, worker=None: SimpleNamespace(
                statistics=lambda kind: None, samples=lambda kind: {}
            ),
            exist=False,
            has_facts=False,
        )
        self.index = SimpleNamespace(workers_at=lambda step, mode: dict.fromkeys(workers))

    def steps(self):
        return list(range(100))

    def workers(self):
        return list(self._workers)

    def tensor_names(self):
        return ["smdebug/facts", *next(iter(self._workers.values()))]

    def has_tensor(self, name):
        return any(name in of for of in self._workers.values())

    def tensor(self, name):
        return SavedTensor({worker: of[name] for worker, of in self._workers.items() if name in of})


class SavedTensor:
    def __init__(self, values):
        self._values = values

    def workers(self, step):
        if not self._values:
            raise SMDebugError("none")
        return list(self._values)

    def value(self, step, mode=None, worker=None):
        worker = worker or next(iter(self._values), "none")
        if worker not in self._values:
            raise SMDebugError("it has none")
        return np.asarray(self._values[worker])

    def reduction_values(self, step, worker=None):
        raise SMDebugError("it has none")

    reduction_value = statistics = reduction_values


def statistics_of(*values):
    made = Statistics()
    for step, of_step in enumerate(values):
        rows = np.full((2, len(COLUMNS)), np.nan, np.float32)
        for place, value in enumerate(of_step):
            if value is not None:
                rows[place] = value
        made.append(10 * step, NAMES, rows)
    return made


def reading(statistics, **more):
    return SimpleNamespace(kinds={"k": statistics}, order=lambda kind: [1, 0], trial=None, **more)


def test_the_last_numbers_of_each_tensor_are_those_of_its_last_step():
    found = last_numbers(reading(statistics_of([1.0, 2.0], [3.0, None], [4.0, None])), "k")
    assert found["names"] == ["b\\n", "a"]
    assert (found["first"], found["last"]) == ([0, 20], [0, 20])
    assert found["low"]["rms"] == found["high"]["rms"] == [2.0, 4.0]
    assert found["shapes"] == ["", ""]
    nothing = last_numbers(reading(statistics_of([None, 1.0])), "k")
    assert (nothing["first"], nothing["low"]["rms"]) == ([0, None], [1.0, None])
    assert MOST_ROWS == 1000


def test_shapes_are_those_of_the_layout_in_words():
    tensors = [SimpleNamespace(name="a", shape=(2, 3)), SimpleNamespace(name="b\n", shape=())]
    asked = []

    def layout(step):
        asked.append(step)
        return SimpleNamespace(tensors={"k": tensors})

    run = reading(statistics_of([1.0, 2.0], [3.0, 4.0]))
    run.trial = SimpleNamespace(observations=SimpleNamespace(has_facts=True, layout=layout))
    assert last_numbers(run, "k")["shapes"] == ["scalar", "2 × 3"]
    assert asked == [10]
    tensors[0].shape = None
    assert last_numbers(run, "k")["shapes"] == ["scalar", ""]


@pytest.mark.parametrize(
    ("values", "is_exact"), [([[1.0, 2.0], [3.0, None]], True), ([[1.0, 2.0]] * 40, False)]
)
def test_a_history_is_exact_where_each_part_is_one_step(values, is_exact):
    statistics = Statistics(most=8)
    source = statistics_of(*values)
    statistics.extend(source)
    found = history_of(reading(statistics), "k", "b\n")
    assert (found["name"], found["kind"], found["exact"]) == ("b\\n", "k", is_exact)
    assert len(found["first"]) == len(found["low"]["rms"]) == len(statistics)


def test_a_tensor_that_shares_its_row_is_read_at_some_of_the_steps():
    class Rows:
        names = ("x", "y")
        values = np.arange(2 * len(COLUMNS), dtype=np.float32).reshape(2, -1)

        def __contains__(self, name):
            return name in self.names

    def at(step):
        return SimpleNamespace(statistics=lambda kind: Rows() if step % 2 == 0 else None)

    run = SimpleNamespace(
        steps=list(range(200)), steps_read=100, trial=SimpleNamespace(observations=SimpleNamespace(at=at))
    )
    found = history_of_member(run, "k", "y")
    assert len(found["first"]) <= MEMBER_STEPS == 48
    assert (found["first"][0], max(found["first"]) < 100, found["exact"]) == (0, True, True)
    assert set(found["low"]["count"]) == {float(len(COLUMNS))}
    assert history_of_member(run, "k", "z")["first"] == []


def test_a_step_has_the_statistics_of_each_worker_a_sample_and_a_part_of_the_values():
    value = np.arange(100.0 * 70).reshape(100, 70)
    found = at_step(Saved(worker_0={"w": value}, worker_1={"w": value + 1, "v": 1.0}), "k", "w", 3)
    row, _ = matrix_of([value], 128)
    assert list(found["workers"]) == ["worker_0", "worker_1"]
    assert found["workers"]["worker_0"]["mean"] == pytest.approx(float(row[0, COLUMNS.index("mean")]))
    assert (found["step"], found["name"]) == (3, "w")
    assert (found["sample"]["count"], len(found["sample"]["counts"]), BINS) == (7000, 40, 40)
    assert sum(found["sample"]["counts"]) == 7000
    assert (found["sample"]["edges"][0], found["sample"]["edges"][-1]) == (0.0, 6999.0)
    assert (found["values"]["shape"], found["values"]["dtype"]) == ([100, 70], "float64")
    assert (len(found["values"]["rows"]), len(found["values"]["rows"][0]), SLICE) == (64, 64, 64)
    assert found["values"]["rows"][1][:2] == [70.0, 71.0]


@pytest.mark.parametrize(
    ("value", "rows", "counted"),
    [
        (np.array(3.0), [[3.0]], 1),
        (np.arange(3), [[0.0, 1.0, 2.0]], 3),
        (np.arange(8.0).reshape(2, 2, 2), [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]], 8),
        (np.array([1.0, np.nan, np.inf]), [[1.0, None, None]], 1),
        (np.full(2, np.nan), [[None, None]], None),
        (np.array(["a"]), None, None),
        (np.array([1j]), None, None),
    ],
)
def test_values_are_shown_in_rows_if_they_are_numbers(value, rows, counted):
    found = at_step(Saved(worker_0={"w": value}), "k", "w", 0)
    assert (found["values"] and found["values"]["rows"]) == rows
    assert (found["sample"] and found["sample"]["count"]) == counted


def test_a_tensor_that_a_step_lacks_has_nothing():
    assert at_step(Saved(worker_0={"w": 1.0}), "k", "none", 0) == {
        "step": 0,
        "name": "none",
        "workers": {},
        "sample": None,
        "values": None,
    }


@pytest.mark.parametrize(
    ("values", "spread"),
    [([1.0, 1.0], 0.0), ([1.0, 3.0], 1.0), ([-1.0, 3.0], 1.0), ([1.0, 2.0, 3.0], 1.0), ([0.0, 0.0], 0.0)],
)
def test_workers_differ_by_the_range_of_their_magnitudes(values, spread):
    (found,) = worker_spread(Saved(**{f"worker_{at}": {"w": [value]} for at, value in enumerate(values)}))
    assert found.name == "w"
    assert len(found.steps) == len(found.spread) == MOST_STEPS == 24
    assert found.largest == spread


def test_the_tensor_that_differs_most_comes_first_and_forty_are_compared():
    given = {f"w{number}": [float(number)] for number in range(50)}
    other = {name: [2 * value[0] if name == "w7" else value[0]] for name, value in given.items()}
    done = []
    found = worker_spread(Saved(worker_0=given, worker_1=other), done.append)
    assert (found[0].name, len(found), len(done), MOST_COMPARED) == ("w7", 40, 40, 40)
    assert worker_spread(Saved(worker_0=given)) == ()
    assert worker_spread(Saved(worker_0={"w": [1.0]}, worker_1={})) == ()
    assert Disagreement("w", (0, 1), (float("nan"), 0.5)).largest == 0.5
    assert Disagreement("w", (0,), (float("inf"),)).largest == 0.0
