"""Noise that a model has to predict, as in a diffusion: drawn anew for each batch, or always the same."""

from __future__ import annotations

import pytest

from tests.smdebug_default_rules.made_steps import Steps

NOISE = {
    "criterion": "mean squared error",
    "rows": 32,
    "target_rows": 32,
    "columns": 8,
    "lowest": -3.2,
    "highest": 3.4,
    "means": [0.1, -0.1] * 4,
    "variances": [0.9, 1.1] * 4,
}


def denoised(steps=8, every=3, noise=NOISE, shapes=((32, 8), (32,)), terms=()):
    """A run that predicts this noise, or that which is made of the number of the step, from other inputs."""
    run = Steps()
    run.facts["shapes"] = [list(shape) for shape in shapes]
    for step in range(steps):
        run.facts["loss"] = {"terms": [*terms, noise(step) if callable(noise) else noise]}
        run.write().skip(*[1.0] * (every - 1))
    return run


def found(run):
    return [
        (step, finding.since)
        for step, finding in run.evaluate("RepeatedInput")
        if finding.title == "The noise is the same at every step"
    ]


def test_noise_that_is_the_same_at_each_step_is_found():
    assert found(denoised()) == [(12, 0), (15, 0), (18, 0), (21, 0)]
    (_, finding), *_ = denoised().evaluate("RepeatedInput")
    assert (finding.tensor, finding.cause) == ("loss", "repeated input")


@pytest.mark.parametrize(
    "noise",
    [
        {**NOISE, "means": [], "variances": []},  # of too many columns
        {**NOISE, "lowest": -2.0},  # of few values
        {**NOISE, "criterion": "mean absolute error"},
        lambda step: {**NOISE, "lowest": -3.2 + step * 1e-6},  # it is read off differences
    ],
)
def test_other_forms_of_that_noise_are_found(noise):
    assert found(denoised(noise=noise))


@pytest.mark.parametrize(
    "noise",
    [
        lambda step: {**NOISE, "highest": 3.4 + step / 10},  # drawn anew
        lambda step: {**NOISE, "means": [0.1 + step / 100] * 8},
        {**NOISE, "lowest": -1.0, "highest": 1.0},  # images, which often reach both ends
        {**NOISE, "lowest": -9.0},
        {**NOISE, "lowest": -1.7},
        {**NOISE, "lowest": -2.0, "means": [], "variances": []},
        {**NOISE, "means": [0.5] * 8},
        {**NOISE, "variances": [0.3] * 8},
        {**NOISE, "columns": 1, "means": [0.1], "variances": [1.0]},  # a standardised number
        {**NOISE, "columns": 16},  # more than the input has
        {**NOISE, "rows": 33, "target_rows": 33},
        {**NOISE, "criterion": "binary cross entropy"},
    ],
)
def test_other_targets_pass(noise):
    assert found(denoised(noise=noise)) == []


def test_a_data_set_that_is_given_as_a_whole_passes():
    whole = {**NOISE, "rows": 500, "target_rows": 500}
    assert found(denoised(noise=whole, shapes=[(500, 8), (500,)])) == []


@pytest.mark.parametrize(
    ("shapes", "is_found"),
    [
        ([(32, 8), (32,)], True),
        ([(32, 2, 4), (32, 1)], True),
        ([(32, 9)], True),  # the time is the last column
        ([(32, 8)], False),  # a denoising autoencoder
        ([(32, 30)], False),  # standardised targets of inputs that are augmented
        ([(32, 8), (8,)], False),
        ([(32, 7), (32,)], False),
    ],
)
def test_noise_is_predicted_from_noisy_values_and_their_time(shapes, is_found):
    assert bool(found(denoised(shapes=shapes))) is is_found


def test_noise_of_one_batch_that_is_learnt_by_heart_passes():
    run, batch = Steps(), Steps().normal(32, 8)
    for _ in range(20):
        run.facts |= {"shapes": [[32, 8]], "loss": {"terms": [NOISE]}}
        run.kinds["inputs"]["Net_input_0"] = batch
        run.write()
    assert found(run) == []


def test_a_few_steps_are_too_few():
    assert found(denoised(steps=4, every=20)) == []
    assert found(denoised(steps=9, every=1)) == []


def test_noise_is_found_beside_another_loss_and_since_it_repeats():
    other = {"criterion": "cross entropy", "rows": 32}
    assert found(denoised(terms=[other]))
    run = denoised(noise=lambda step: {**NOISE, "lowest": -3.2 if step > 2 else -3.0 - step / 10})
    assert found(run) == [(18, 6), (21, 6)]
