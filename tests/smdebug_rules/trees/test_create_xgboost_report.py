from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from smdebug_rules.trees.create_xgboost_report import REPORT, CreateXgboostReport
from smdebug_rules.trees.xgboost_page import Training, page, roc
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import fires_at, found_data_at

COLLECTIONS = {
    "metrics": ["^train-", "^validation-"],
    "feature_importance": ["^feature_importance/"],
    "hyperparameters": ["^hyperparameters/"],
    "labels": ["^labels$"],
    "predictions": ["^predictions$"],
}


def written(steps):
    run = made_run(steps, collections=COLLECTIONS)
    rule = CreateXgboostReport(run.trial())
    assert fires_at(rule) == []
    return run.storage.read(REPORT).decode()


def test_a_single_label_without_an_axis_is_a_label():
    assert "Distribution of labels" in written(
        {0: {"labels": np.float32(1), "predictions": np.float32(0.75)}}
    )


def test_a_training_of_classes_is_reported_with_all_that_was_saved():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 200).astype(np.float32)
    report = written(
        {
            step: {
                "train-logloss": np.float32(1 / (step + 1)),
                "validation-logloss": np.float32(1.1 / (step + 1)),
                "feature_importance/weight/age": np.float32(0.75),
                "feature_importance/weight/<b>": np.float32(0.25),
                "hyperparameters/eta": np.float32(0.3),
                "hyperparameters/objective": np.array(["binary:logistic"]),
                "labels": labels,
                "predictions": np.clip(labels * 0.4 + random.uniform(0, 0.6, 200), 0, 1).astype(np.float32),
            }
            for step in range(5)
        }
    )
    titles = re.findall("<h2>(.*?)</h2>", report)
    assert [title.split(",")[0] for title in titles] == [
        "logloss by step",
        "Feature importance: weight",
        "Distribution of labels",
        "Confusion matrix",
        "By class",
        "ROC",
        "Hyperparameters",
    ]
    assert "at step 4" in report
    assert "<b>" not in report
    assert "binary:logistic" in report
    assert report.count("<polyline") == 3


def test_a_training_of_numbers_is_reported_by_its_residuals():
    labels = np.linspace(0.5, 10, 100, dtype=np.float32)
    report = written({0: {"labels": labels, "predictions": labels + 1}})
    assert re.findall("<h2>(.*?)</h2>", report) == [
        "Distribution of labels",
        "Distribution of residuals",
        "Error by label",
    ]


class Watched(CreateXgboostReport):
    """Records which pages it wrote, for a training with a step every few seconds."""

    def __init__(self, trial, seconds):
        super().__init__(trial)
        type(self).clock = [0.0]
        type(self).seconds = seconds
        type(self).pages = []
        write = trial.storage.write

        def counted(key, data):
            write(key, data)
            if key == REPORT:
                self.pages.append(int(re.search(rb"at step (\d+)", data)[1]))

        trial.storage.write = counted

    @staticmethod
    def now():
        return Watched.clock[0]

    def invoke_at_step(self, step):
        self.clock[0] += self.seconds
        return super().invoke_at_step(step)


def pages_of(steps, seconds):
    metrics = {step: {"train-rmse": np.float32(1)} for step in range(steps)}
    rule = Watched(made_run(metrics, collections=COLLECTIONS).trial(), seconds)
    assert fires_at(rule) == []
    return rule.pages


def test_the_page_is_written_ever_more_seldom_and_at_the_end():
    pages = pages_of(2000, 0.01)
    assert pages[:11] == list(range(11))
    assert len(pages) < 80
    assert all(later <= 1.2 * page + 2 for page, later in pairwise(pages))
    assert pages[-1] == 1999
    assert len(set(pages)) == len(pages)


def test_the_page_of_a_slow_training_is_never_older_than_a_minute():
    pages = pages_of(400, 30.0)
    assert {later - page for page, later in pairwise(pages[-50:-1])} == {2}


def test_what_was_saved_less_often_than_the_metrics_stays_on_the_page():
    labels = np.array([0, 1, 1, 0], np.float32)
    often = {"train-rmse": np.float32(1)}
    seldom = {"feature_importance/weight/age": np.float32(1), "labels": labels}
    report = written(
        {0: {**often, **seldom, "predictions": labels}, 1: {**often, "labels": labels}, 2: often}
    )
    titles = [title.split(",")[0] for title in re.findall("<h2>(.*?)</h2>", report)]
    assert {"Feature importance: weight", "Confusion matrix", "rmse by step"} <= set(titles)
    assert "at step 2" in report


def test_steps_without_any_of_it_write_nothing():
    run = made_run({0: {"loss": np.float32(1)}}, collections=COLLECTIONS)
    assert found_data_at(CreateXgboostReport(run.trial()), 0) is False
    assert not run.storage.exists(REPORT)


def test_a_run_that_cannot_be_written_to_is_named(capsys):
    run = made_run({0: {"train-rmse": np.float32(1)}}, collections=COLLECTIONS)
    trial = run.trial()
    trial.storage = ReadOnly(trial.storage)
    rule = CreateXgboostReport(trial)
    assert fires_at(rule) == []
    assert "cannot be written: it is closed" in rule.skipped[REPORT] + capsys.readouterr().out


class ReadOnly:
    def __init__(self, storage):
        self._storage = storage

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def write(self, key, data):
        raise OSError("it is closed")


def test_the_area_under_the_curve_is_that_of_all_pairs():
    random = np.random.default_rng(1)
    positive, scores = random.integers(0, 2, 60).astype(bool), random.integers(0, 9, 60)
    pairs = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    *_, area = roc(positive, scores)
    assert area == pytest.approx(np.mean(pairs))


def test_an_empty_page_is_a_page():
    assert page(Training("run", 0)).startswith("<!doctype html>")
