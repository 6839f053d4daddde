"""Facts of another form are left out and named; the others go on."""

import pytest

from smdebug.trials.observations import fact_forms
from smdebug.trials.observations.fact_forms import (
    BALANCE,
    LARGEST,
    OUT,
    every,
    of_their_forms,
    record,
    row,
    table,
    whole,
)

NAN = float("nan")
OF_ONE_VALUE = {
    "number": ([0, -3, 2.5, 9e149, -9e149], [LARGEST, -LARGEST, True, "3", None, [1]], "a finite number"),
    "amount": ([0, 0.0, 7], [-1, -1e-9, True, "0"], "a number from 0 on"),
    "positive": ([1, 1e-9], [0, -1, "1"], "a positive number"),
    "share": ([0, 1, 0.5], [-0.1, 1.1, "0.5", True], "a number from 0 to 1"),
    "count": ([0, 1, (1 << 62) - 1], [-1, 1 << 62, 1.0, True, "1"], "a count"),
    "some": ([1, (1 << 62) - 1], [0, 1 << 62, 1.0, True], "a count from 1 on"),
    "flag": ([True, False], [1, 0, "true", None], "true or false"),
    "text": (["", "a"], [1, None, ["a"]], "a text"),
    "column": (["", "a", 0, 3], [-1, 1.0, True, None], "a column or a text"),
}


def fit(form, value):
    wrong = []
    return form(value, "it", wrong), wrong


@pytest.mark.parametrize("name", OF_ONE_VALUE)
def test_a_value_has_its_form_or_is_named(name):
    form = getattr(fact_forms, name)
    good, bad, what = OF_ONE_VALUE[name]
    assert [fit(form, value) for value in good] == [(value, []) for value in good]
    assert [fit(form, value) for value in bad] == [(OUT, [f"it is not {what}"])] * len(bad)
    assert LARGEST == 1e150


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_not_finite_is_left_out_without_a_word(value):
    assert fit(fact_forms.number, value) == (OUT, [])
    assert fit(fact_forms.count, value) == (OUT, [])
    assert fit(every(fact_forms.number), [1, value]) == (OUT, [])


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_a_number_of_json_that_is_not_finite_is_named(value):
    assert fit(fact_forms.number, value) == (OUT, ["it is not a finite number"])


@pytest.mark.parametrize(
    ("form", "value", "wrong"),
    [
        (every(fact_forms.count), [], None),
        (every(fact_forms.count), [1, 2], None),
        (every(fact_forms.count), [1, "2", -1], ["it[1] is not a count", "it[2] is not a count"]),
        (every(fact_forms.count), (1, 2), ["it is not a list"]),
        (every(fact_forms.count), None, ["it is not a list"]),
        (every(fact_forms.text), ["a", "b"], None),
        (every(fact_forms.text), ["a", 2], ["it[1] is not a text"]),
        (every(fact_forms.text), [2], ["it[0] is not a text"]),
        (every(fact_forms.text, least=2), ["a"], ["it is not a list of 2 and more"]),
        (every(fact_forms.text, least=2), ["a", "b"], None),
        (row(fact_forms.text, fact_forms.count), ["a", 1], None),
        (row(fact_forms.text, fact_forms.count), ["a", 1, None], None),
        (row(fact_forms.text, fact_forms.count), ["a"], ["it is not a list of 2"]),
        (row(fact_forms.text, fact_forms.count), "ab", ["it is not a list of 2"]),
        (row(fact_forms.text, fact_forms.count), [1, "a"], ["it[0] is not a text", "it[1] is not a count"]),
        (table(fact_forms.text), [], ["it is not an object"]),
        (record(), [], ["it is not an object"]),
    ],
)
def test_a_list_has_its_form_as_a_whole_or_not_at_all(form, value, wrong):
    assert fit(form, value) == ((value, []) if wrong is None else (OUT, wrong))


def test_what_is_left_of_an_item_takes_its_place():
    form = every(table(fact_forms.count))
    assert fit(form, [{"a": 1}, {"b": "2", "c": 3}]) == ([{"a": 1}, {"c": 3}], ["it[1].b is not a count"])
    of_row = row(table(fact_forms.count))
    assert fit(of_row, [{"b": "2"}, "more"]) == ([{}, "more"], ["it[0].b is not a count"])


def test_a_table_loses_the_items_of_another_form_alone():
    form = table(fact_forms.text)
    assert fit(form, {"a": "x", "b": 2}) == ({"a": "x"}, ["it.b is not a text"])
    assert fit(form, {}) == ({}, [])


RECORD = record(
    "name", pairs={"size": ["unit"]}, name=fact_forms.text, size=fact_forms.count, unit=fact_forms.text
)


@pytest.mark.parametrize(
    ("value", "found", "wrong"),
    [
        ({"name": "a"}, {"name": "a"}, []),
        ({"name": "a", "other": [1]}, {"name": "a", "other": [1]}, []),
        ({"name": "a", "unit": "m"}, {"name": "a", "unit": "m"}, []),
        ({"name": "a", "size": 1, "unit": "m"}, {"name": "a", "size": 1, "unit": "m"}, []),
        ({"name": "a", "size": -1, "unit": "m"}, {"name": "a", "unit": "m"}, ["it.size is not a count"]),
        ({"name": "a", "size": None, "unit": "m"}, {"name": "a", "unit": "m"}, []),
        ({"name": "a", "size": 1}, {"name": "a"}, ["it has size without unit"]),
        ({"name": "a", "size": 1, "unit": 2}, {"name": "a"}, ["it.unit is not a text"]),
        ({"name": 1}, OUT, ["it.name is not a text"]),
        ({"name": None}, OUT, []),
        ({"size": 1}, OUT, ["it has no name"]),
    ],
)
def test_a_record_keeps_what_has_its_form(value, found, wrong):
    assert fit(RECORD, value) == (found, wrong)


def test_a_whole_needs_all_of_its_fields():
    form = whole(low=fact_forms.number, high=fact_forms.number)
    assert fit(form, {"low": 1, "high": 2}) == ({"low": 1, "high": 2}, [])
    assert fit(form, {"low": 1}) == (OUT, ["it has no high"])


def test_what_has_its_form_is_passed_on_as_it_is():
    for form, value in ((RECORD, {"name": "a"}), (every(fact_forms.count), [1])):
        assert fit(form, value)[0] is value


def test_the_first_thing_that_is_wrong_with_a_fact_is_said():
    facts = {"training": 1, "frozen": ["a", 1, 2], "attempt": 3, "new": object, "loss_scale": None}
    found, wrong = of_their_forms(facts)
    assert found == {"attempt": 3, "new": object, "loss_scale": None}
    assert wrong == {
        "fact training": "training is not true or false, and was left out",
        "fact frozen": "frozen[1] is not a text, and was left out",
    }
    _, wrong = of_their_forms({"activations": {"x" * 300: 1}})
    assert len(wrong["fact activations"]) == 200 + len(", and was left out")


BALANCED = {"targets": 4, "classes_seen": 2, "largest_class": 0, "largest_share": 0.5}


@pytest.mark.parametrize("name", BALANCE)
def test_labels_have_a_balance_with_all_of_its_numbers_or_none(name):
    data = {"shapes": [[4, 2]], "labels": BALANCED}
    assert of_their_forms({"data": data}) == ({"data": data}, {})
    partly = {known: value for known, value in BALANCED.items() if known != name}
    found, wrong = of_their_forms({"data": {**data, "labels": partly}})
    assert "classes_seen" not in found["data"]["labels"]
    assert bool(wrong) == (name != "classes_seen")


def test_a_batch_has_a_shape_of_two_numbers():
    assert of_their_forms({"data": {"shapes": []}})[1]
    assert of_their_forms({"data": {"shapes": [[4]]}})[1]
    assert not of_their_forms({"data": {"shapes": [[4, 0]]}})[1]
