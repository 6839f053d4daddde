from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.layers.dead_relu import DeadRelu
from tests.rules.made_runs import MadeRun, made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at


def layer(dead, units=10):
    value = np.ones((8, units), np.float32)
    value[:, :dead] = 0
    return value


def test_a_net_that_begins_with_zeros_is_dead_at_its_first_step():
    run = made_run({0: {"dense_relu_output": np.zeros((4, 3), np.float32)}}).trial()
    found = findings_by_step(DeadRelu(run))
    assert str(found[0][0]) == "dense_relu_output: 100 % of the units are dead (limit 50 %)"


def test_more_than_the_percentage_of_the_layer_has_to_be_dead():
    run = made_run({0: {"a_relu_output": layer(5)}, 1: {"a_relu_output": layer(6)}}).trial()
    found = findings_by_step(DeadRelu(run))
    assert list(found) == [1]
    assert found[1][0].details == {"found_since": 1, "last_good_step": 0}
    assert fires_at(DeadRelu(run, threshold_layer="40")) == [0, 1]


def test_layers_are_named_by_the_pattern_and_the_worst_comes_first():
    tensors = {"a_ReLU_output": layer(6), "b_relu_output": layer(9), "c_output": layer(10)}
    run = made_run({0: tensors}).trial()
    found = findings_by_step(DeadRelu(run, tensor_regex=".*relu_output|.*ReLU_output"))
    assert [finding.tensor for finding in found[0]] == ["b_relu_output", "a_ReLU_output"]


def test_a_channel_can_be_what_is_counted():
    image = np.zeros((2, 4, 8, 8), np.float32)
    image[:, :, 0, 0] = 1
    run = made_run({0: {"conv_relu_output": image}}).trial()
    assert fires_at(DeadRelu(run)) == [0]
    assert fires_at(DeadRelu(run, granularity="channel")) == []


def test_a_layer_without_such_an_axis_for_its_channels_is_skipped():
    tensors = {"conv_relu_output": np.zeros((8, 4, 5, 5), np.float32), "relu_output": layer(9)}
    rule = DeadRelu(made_run({0: tensors}).trial(), granularity="channel", channel=4)
    assert [item.tensor for item in findings_by_step(rule)[0]] == ["relu_output"]
    assert list(rule.skipped) == ["conv_relu_output"]


def test_each_workers_part_is_judged():
    run = MadeRun(workers=2)
    run.save(0, {"a_relu_output": layer(0)}, rank=0).save(0, {"a_relu_output": layer(9)}, rank=1)
    found = findings_by_step(DeadRelu(run.end().trial()))
    assert [finding.worker for finding in found[0]] == ["worker_1"]


def test_saved_extremes_suffice_where_they_are_conclusive():
    def saved(low, high):
        names = ("smdebug/reductions/min/a_relu_output", "smdebug/reductions/max/a_relu_output")
        return dict(zip(names, (np.float32(low), np.float32(high)), strict=True))

    run = made_run({0: saved(0, 1), 1: saved(0, 0), 2: {"a_relu_output": np.zeros((0, 3))}}).trial()
    assert fires_at(DeadRelu(run)) == [1]
    assert [found_data_at(DeadRelu(run), step) for step in (0, 1, 2)] == [False, True, False]


@pytest.mark.parametrize(
    "parameters",
    [
        {"threshold_layer": 101},
        {"threshold_inactivity": -1},
        {"granularity": "row"},
        {"channel": "second"},
        {"tensor_regex": "(a+)+$"},
    ],
)
def test_an_invalid_value_is_refused(parameters):
    with pytest.raises(SMDebugValueError):
        DeadRelu(made_run({}).trial(), **parameters)
