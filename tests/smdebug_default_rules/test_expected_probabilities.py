"""Keras says what a loss expects: its cross entropy takes probabilities unless `from_logits` is set."""

import pytest

from smdebug_default_rules.loss.loss_input import _Output, _problems


def problems(**term):
    return dict(_problems({"terms": [{"criterion": "cross entropy", "classes": 10, **term}]}, _Output(), 0))


@pytest.mark.parametrize("given", ["softmax", "sigmoid", ""])
def test_probabilities_are_right_where_they_are_expected(given):
    assert problems(expects="probabilities", given=given) == {}


def test_raw_outputs_are_wrong_where_probabilities_are_expected():
    (problem,) = problems(expects="probabilities", given="logits").values()
    assert "takes probabilities" in problem.message
    assert problem.title == "The loss needs probabilities"


@pytest.mark.parametrize("expects", ["logits", None])
def test_probabilities_are_wrong_where_logits_are_expected(expects):
    assert list(problems(expects=expects, given="softmax")) == ["softmax before cross entropy"]
