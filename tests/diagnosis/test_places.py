"""The layer of a tensor, and the order of two layers."""

from __future__ import annotations

import pytest

from smdebug.diagnosis.places import comes_first, is_same, layer_of


@pytest.mark.parametrize(
    ("tensor", "layer"),
    [
        ("gradient/fc1.weight", "fc1"),
        ("encoder.0.attention.bias", "encoder.0.attention"),
        ("fc1_output_0", "fc1"),
        ("conv1.input.0", "conv1"),
        ("dense/kernel:0", "dense"),
        ("loss", "loss"),
        ("gradient/weight", "weight"),
        ("Gradients/FC1.Weight", "FC1"),
        ("CrossEntropyLoss_output_0", "CrossEntropyLoss"),
        ("gradient/", "gradient/"),
        ("_output_0", "_output_0"),
    ],
)
def test_the_layer_of_a_tensor(tensor, layer):
    assert layer_of(tensor) == layer


@pytest.mark.parametrize(
    ("layer", "other", "same"),
    [
        ("fc1", "fc1", True),
        ("fc1", "fc10", False),
        ("encoder", "encoder.0", True),
        ("encoder.0", "encoder", True),
        ("encoder", "encoder/0", True),
        ("encoder/0", "encoder", True),
        ("encoder.0", "encoder.1", False),
        ("encoder.0", "decoder.encoder", False),
        ("0.encoder", "encoder", False),
        ("encoder", "0.encoder", False),
    ],
)
def test_a_layer_is_the_same_as_one_that_contains_it(layer, other, same):
    assert is_same(layer, other) is same


@pytest.mark.parametrize(
    ("layer", "other", "first"),
    [
        ("fc1", "head", True),
        ("head", "fc1", False),
        ("fc1", "unknown", None),
        ("unknown", "fc1", None),
        ("encoder.0", "head", True),
        ("encoder.0", "encoder.1", None),
    ],
)
def test_the_order_tells_which_layer_comes_first(layer, other, first):
    assert comes_first(layer, other, ["fc1", "encoder", "head"]) is first
