"""Hyperparameters of any form become a flat mapping of plain values."""

import json
from argparse import Namespace
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from smdebug.config.hyperparameters import LONGEST_TEXT, MOST_VALUES, flat_config
from smdebug.exceptions import SMDebugTypeError


class Schedule(Enum):
    LINEAR = "linear"


@dataclass
class Optimizer:
    lr: float = 0.1
    betas: tuple = (0.9, 0.99)


@dataclass
class Training:
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = Schedule.LINEAR


def test_nested_values_have_dotted_names():
    assert flat_config({"lr": 0.1, "model": {"layers": 2, "act": "relu"}}) == {
        "lr": 0.1,
        "model.layers": 2,
        "model.act": "relu",
    }


def test_namespaces_and_dataclasses_are_configurations():
    assert flat_config(Namespace(lr=1, data=Namespace(folds=2))) == {"lr": 1, "data.folds": 2}
    assert flat_config(Training()) == {
        "optimizer.lr": 0.1,
        "optimizer.betas": [0.9, 0.99],
        "schedule": "linear",
    }


def test_what_json_does_not_know_becomes_text():
    flat = flat_config(
        {
            "limit": float("inf"),
            "count": np.int64(3),
            "path": Path("a"),
            "big": 10**40,
            "function": json.dumps,
            "long": "x" * 9999,
            "nothing": None,
            "empty": {},
        }
    )
    assert flat["limit"] == "inf"
    assert flat["count"] == 3
    assert flat["path"] == "a"
    assert flat["function"] == "json.dumps"
    assert len(flat["long"]) == LONGEST_TEXT
    assert flat["nothing"] is None
    json.dumps(flat, allow_nan=False)


def test_an_object_whose_text_fails_is_named():
    class Broken:
        def __str__(self):
            raise ValueError("no text")

    assert flat_config({"broken": Broken()}) == {"broken": "<Broken>"}


def test_a_configuration_without_an_end_has_a_limit():
    endless: dict = {"lr": 1}
    endless["again"] = endless
    assert len(flat_config(endless)) < 20
    assert len(flat_config({str(number): number for number in range(5000)})) == MOST_VALUES


@pytest.mark.parametrize("given", ["lr=0.1", 3, ["lr"], Training])
def test_what_has_no_names_is_refused(given):
    with pytest.raises(SMDebugTypeError, match="config must be a dictionary"):
        flat_config(given)
