"""The numbers of a run as records: each step once, training and validation apart."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.export.run_numbers import RunNumbers
from smdebug.export.selection import Selection
from smdebug.sinks.records import NumbersRecord
from smdebug.trials import create_trial
from tests.cli.conftest import failing_run as failing_run_of_two
from tests.sinks.made import failing_run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return failing_run(tmp_path_factory.mktemp("numbers") / "run")


def points(records: list[NumbersRecord], mode: str, name: str = "loss") -> dict[int, float]:
    found = [
        (record.step, record.values[name])
        for record in records
        if record.mode == mode and name in record.values
    ]
    assert len(found) == len(dict(found)), "a step came twice"
    return dict(found)


def all_of(run: Path, **options) -> list[NumbersRecord]:
    numbers = RunNumbers(create_trial(str(run)), **options)
    return [*numbers.new(), *numbers.rest()]


def test_every_step_of_training_comes_once_though_few_were_saved(run):
    training = points(all_of(run), "training")
    assert list(training) == list(range(30))
    assert training[0] == 1.0
    assert math.isnan(training[20])
    assert not math.isnan(training[19])


def test_an_evaluation_is_one_point_at_the_training_step_before_it(run):
    assert points(all_of(run), "validation") == {9: 110.0, 19: 120.0, 29: 130.0}


def test_a_run_read_bit_by_bit_gives_what_it_gives_at_once(run):
    trial = create_trial(str(run))
    numbers = RunNumbers(trial)
    records: list[NumbersRecord] = []
    for step in trial.steps():
        records += numbers.new(step)
        assert list(numbers.new(step)) == []
    records += numbers.rest()
    whole = all_of(run)
    for mode, count in (("training", 30), ("validation", 3)):
        assert points(records, mode).keys() == points(whole, mode).keys()
        assert len(points(records, mode)) == count


def test_an_evaluation_waits_until_it_is_over(run):
    trial = create_trial(str(run))
    numbers = RunNumbers(trial)
    read = list(numbers.new())
    assert list(points(read, "validation")) == [9, 19]  # no training follows the last one
    assert list(points(list(numbers.rest()), "validation")) == [29]


def test_statistics_of_tensors_are_those_that_were_asked_for(run):
    (first, *_) = [record for record in all_of(run) if record.statistics]
    assert first.statistics == {"weight": {"rms": 0.0}}
    (first, *_) = [record for record in all_of(run, statistics=("max", "std")) if record.statistics]
    assert first.statistics["weight"].keys() == {"max", "std"}


def test_values_that_are_not_finite_are_counted_whatever_was_asked_for(tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), system_metrics=False) as hook, hook.step():
        hook.record("weight", np.array([1.0, np.nan, np.inf]))
    (record,) = all_of(tmp_path / "run")
    assert record.statistics["weight"]["non_finite"] == 2


def test_saved_tensors_are_read_for_an_export_and_not_beside_a_training(tmp_path):
    save_all = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(tmp_path / "run"), save_all=True, save_config=save_all) as hook:
        for step in range(3):
            with hook.step():
                hook.record("weight", np.full(4, float(step)))
                hook.record("loss", 1.0 / (step + 1))
                hook.record("name", np.array(["text"]))
                hook.record("mask", np.array([True]))
    whole = all_of(tmp_path / "run")
    assert [record.statistics["weight"]["rms"] for record in whole] == [0.0, 1.0, 2.0]
    beside = all_of(tmp_path / "run", reads_values=False)
    assert [dict(record.values) for record in beside] == [{"loss": 1.0}, {"loss": 0.5}, {"loss": 1 / 3}]
    assert not any(record.statistics for record in beside)
    assert not any({"name", "mask"} & {*record.values, *record.statistics} for record in whole)


def test_a_selection_of_steps_and_tensors_holds(run):
    found = all_of(run, selection=Selection(regex="weight", steps=(3,)))
    assert [(record.step, dict(record.values), [*record.statistics]) for record in found] == [
        (3, {}, ["weight"])
    ]


def test_the_numbers_of_the_first_worker_have_plain_names(tmp_path):
    failing_run_of_two(str(tmp_path / "run"), workers=2)
    (first, *_) = all_of(tmp_path / "run", statistics=("max",))
    assert first.values == {"loss": 2.0, "worker_1/loss": 2.0}
    assert first.statistics["gradient/fc"]["max"] == 1.0
    assert first.statistics["worker_1/gradient/fc"]["max"] == 2.0
