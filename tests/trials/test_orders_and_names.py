"""What readers decide by a name: which comes first, which is a loss, which attempt it is."""

import pytest

from smdebug.trials.kinds import in_kind_order
from smdebug.trials.observations.loss_names import likely_losses
from smdebug.trials.stored.attempts import AttemptId


def test_kinds_come_as_a_training_goes_wrong_and_others_last_in_their_order():
    assert in_kind_order(["mine", "inputs", "weights", "another", "outputs"]) == [
        "weights",
        "outputs",
        "inputs",
        "mine",
        "another",
    ]


@pytest.mark.parametrize(
    ("names", "losses"),
    [
        (["accuracy", "gradient/loss_head.weight", "update/loss_head", "my_loss"], ["my_loss"]),
        (["gradient/loss_head.weight"], []),
        (["head_gradient_loss"], ["head_gradient_loss"]),
    ],
)
def test_a_gradient_of_a_layer_called_loss_is_no_loss(names, losses):
    assert likely_losses(names) == losses


@pytest.mark.parametrize(
    ("resumed_at", "named"),
    [(0, 0), (7, 7), (-1, None), ("7", None), (True, None), (2.0, None), (None, None)],
)
def test_an_attempt_names_the_step_at_which_it_was_resumed_only_by_a_whole_number(resumed_at, named):
    meta = {"run_id": "a", "training_run": 1, "resumed_at": resumed_at}
    assert AttemptId.named_in(meta) == AttemptId("a", 1, named)


@pytest.mark.parametrize("number", [-1, "1", True, None, 1.0])
def test_an_attempt_without_a_usable_number_is_the_first(number):
    assert AttemptId.named_in({"run_id": 3, "training_run": number}) == AttemptId(None, 0, None)
