"""The arguments of a training that are kept as a fact of its run."""

from smdebug.saving.process.training_arguments import MAX_ARGUMENTS, MAX_LETTERS, plain_arguments


def test_numbers_texts_and_none_are_kept_and_objects_are_not():
    given = {"rate": 0.1, "steps": 3, "fast": True, "name": "a", "seed": None, "list": [1], "model": object()}
    plain = {"rate": 0.1, "steps": 3, "fast": True, "name": "a", "seed": None}
    assert plain_arguments(given) == plain


def test_long_texts_are_cut_and_secrets_are_left_out_wherever_they_stand():
    token = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    given = {"a": "x" * MAX_LETTERS, "b": "y" * (MAX_LETTERS + 1), "hub_token": "hunter2x9", 5: f"is {token}"}
    kept = plain_arguments({**given, "late": "x" * (MAX_LETTERS - 20) + f" token={token}"})
    assert kept["a"] == given["a"]
    assert kept["b"] == "y" * MAX_LETTERS
    assert token not in str(kept)
    assert token[:12] not in str(kept)
    assert "hunter2x9" not in str(kept)
    assert "5" in kept


def test_of_very_many_arguments_the_first_are_kept():
    kept = plain_arguments({f"a{number}": number for number in range(MAX_ARGUMENTS + 5)})
    assert list(kept) == [f"a{number}" for number in range(MAX_ARGUMENTS)]
