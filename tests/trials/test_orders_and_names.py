"""What readers decide by a name: which comes first, which is a loss, which attempt it is."""

import pytest

from smdebug.config.collection import Collection
from smdebug.exceptions import SMDebugTypeError
from smdebug.trials.kinds import in_kind_order
from smdebug.trials.name_matching import NameMatcher, asks_for_observations, extend_collection
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


@pytest.mark.parametrize(
    ("regex", "asks"),
    [
        (None, False),
        ("loss", False),
        ("smdebug/facts", True),
        ("^smdebug/", True),
        (["loss", "smdebug/.*"], True),
        (("loss",), False),
        ([], False),
    ],
)
def test_observations_are_asked_for_by_their_name(regex, asks):
    assert asks_for_observations(regex, None) is asks
    collection = Collection("c")
    collection.include(list(regex) if isinstance(regex, list | tuple) else regex or [])
    assert asks_for_observations(None, collection) is asks
    named = Collection("n")
    named.add_tensor_name("smdebug/facts")
    assert asks_for_observations(None, named)


def test_a_collection_that_was_read_again_has_each_pattern_once():
    known, newer = Collection("c"), Collection("c")
    known.include(["a", "b"])
    newer.include(["b", "c"])
    newer.add_tensor_name("w")
    extend_collection(known, newer)
    assert known.include_regex == ["a", "b", "c"]
    assert known.tensor_names == {"w"}


@pytest.mark.parametrize("wrong", [3, {"a": 1}, (name for name in "ab")])
def test_patterns_are_a_text_or_a_list_of_texts(wrong):
    with pytest.raises(SMDebugTypeError, match="regex is a pattern or a list of them"):
        NameMatcher().by_regex(wrong)
    with pytest.raises(SMDebugTypeError, match="Invalid argument type for collection"):
        NameMatcher().by_collection(wrong)


@pytest.mark.parametrize("patterns", ["a|b", ["a", "b"], ("a", "b"), {"a", "b"}, frozenset("ab")])
def test_one_of_the_patterns_suffices(patterns):
    matches = NameMatcher().chosen_by(patterns, None)
    assert [matches(name) for name in ("xa", "bx", "c", "xa")] == [True, True, False, True]


def test_patterns_are_remembered_each_for_itself():
    names = NameMatcher()
    assert names.chosen_by(None, None) is None
    for number in range(600):
        assert names.by_regex(f"^w{number}$")(f"w{number}")
        assert not names.by_regex(f"^v{number}$")(f"w{number}")
    assert len(names._results) <= 258


def test_usual_names_of_losses_come_first_and_those_of_evaluations_last():
    given = ["val_loss", "my_loss", "train/total_loss", "training_loss", "a_loss", "Loss", "loss/test_set"]
    assert likely_losses(given) == [
        "Loss",
        "training_loss",
        "train/total_loss",
        "a_loss",
        "my_loss",
        "loss/test_set",
        "val_loss",
    ]
    assert likely_losses(["rmse", "accuracy"]) == ["rmse"]
    assert likely_losses(["rmse", "accuracy"], certain=["accuracy"]) == ["accuracy"]
