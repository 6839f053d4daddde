from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from smdebug_rules.inputs.check_input_images import CheckInputImages
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

INPUT = "hybridsequential0_input_0"


def images(means, count=300, std=1.0, dtype=np.float32):
    random = np.random.default_rng(0)
    made = random.normal(0, std, (count, len(means), 6, 6)) + np.reshape(means, (1, -1, 1, 1))
    return made.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_a_channel_that_is_not_centred_is_found_once_enough_images_were_seen(dtype):
    run = made_run({step: {INPUT: images([0, 0.5, -1], dtype=dtype)} for step in range(3)}).trial()
    found = findings_by_step(CheckInputImages(run))
    assert list(found) == [1, 2]
    assert [finding.details for finding in found[1]] == [
        {"channel": 2, "images": 600},
        {"channel": 1, "images": 600},
    ]
    assert found[1][1].value == pytest.approx(0.5, abs=0.02)


def test_the_last_step_at_which_the_means_were_all_right_is_reported():
    values = {0: images([0], 600), 1: images([0], 9), 2: images([9], 600), 3: images([9], 9)}
    run = made_run({step: {INPUT: value} for step, value in values.items()}).trial()
    found = findings_by_step(CheckInputImages(run))
    assert {step: item.details["last_good_step"] for step, (item,) in found.items()} == {2: 1, 3: 1}


def test_images_that_are_normalised_are_all_right():
    run = made_run({0: {INPUT: images([0, 0, 0], 600)}}).trial()
    assert fires_at(CheckInputImages(run)) == []


def test_the_variance_is_checked_on_request():
    run = made_run({0: {INPUT: images([0, 0], 600, std=3)}}).trial()
    assert fires_at(CheckInputImages(run)) == []
    found = findings_by_step(CheckInputImages(run, threshold_variance="0.5"))
    assert found[0][0].statistic.startswith("variance of channel")


def test_the_axis_of_the_channels_can_be_another_one():
    values = np.moveaxis(images([0, 1], 600), 1, -1)
    run = made_run({0: {"x": values}}).trial()
    assert fires_at(CheckInputImages(run, regex="x", channel=-1)) == [0]
    assert fires_at(CheckInputImages(run, regex="x", channel=1, threshold_mean=0.6)) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.zeros(5, np.float32), "no axis 1 for channels"),
        (np.zeros((0, 3, 2, 2), np.float32), "no images"),
        (np.full((1, 2, 2, 2), np.nan, np.float32), "not finite"),
        (np.full((1, 2, 2, 2), 1j, np.complex64), "is not real numbers"),
    ],
)
def test_what_are_not_images_is_skipped(value, reason):
    rule = CheckInputImages(made_run({0: {INPUT: value}}).trial())
    assert found_data_at(rule, 0) is False
    assert reason in rule.skipped[INPUT]


def test_another_number_of_channels_is_skipped():
    run = made_run({0: {INPUT: images([0, 0, 0], 5)}, 1: {INPUT: images([9], 600)}}).trial()
    rule = CheckInputImages(run)
    assert fires_at(rule) == []
    assert rule.skipped[INPUT] == "it has 1 channels, but had 3 before"
