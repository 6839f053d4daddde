"""Whether the lowest or the highest value of a scalar is its best one."""

from __future__ import annotations

import pytest

from smdebug.runs.curves.best import is_highest_best


@pytest.mark.parametrize(
    ("name", "is_highest"),
    [
        ("loss", False),
        ("val/CrossEntropyLoss_output_0", False),
        ("eval_perplexity", False),
        ("accuracy", True),
        ("val/f1", True),
        ("ValAccuracy", True),
        ("accuracy_loss", False),
        ("learning_rate/0/0", None),
        ("temperature", None),
    ],
)
def test_the_name_of_a_scalar_tells_which_value_is_best(name, is_highest):
    assert is_highest_best(name) is is_highest
