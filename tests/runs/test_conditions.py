"""Conditions on configurations: parsed, never executed."""

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.runs.conditions import parse_condition, refuse_unknown_names

FACTS = {
    "lr": 1e-4,
    "optimizer.name": "Adam",
    "amp": True,
    "tags": ["baseline", "long"],
    "warmup": None,
    "batch": "64",
    "a.size": 1,
    "b.size": 2,
}


@pytest.mark.parametrize(
    "text",
    [
        "lr<1e-3",
        "lr <= 1e-4",
        " lr>0 ",
        "lr=0.0001",
        "lr==1e-4",
        "LR!=1",
        "optimizer.name=adam",
        "name=Adam",
        "name~da",
        "name!='sgd'",
        'name="adam"',
        "amp=true",
        "amp!=false",
        "tags=baseline",
        "tags~ong",
        "tags!=short",
        "warmup=null",
        "batch>=64",
        "missing!=1",
        "b.size>1",
    ],
)
def test_a_condition_that_holds(text):
    assert parse_condition(text).matches(FACTS)


@pytest.mark.parametrize(
    "text",
    [
        "lr>1e-3",
        "lr!=1e-4",
        "optimizer.name=sgd",
        "name<3",
        "amp=1",
        "amp=false",
        "tags=short",
        "tags!=baseline",
        "warmup<1",
        "missing=1",
        "size=1",
    ],
)
def test_a_condition_that_does_not_hold(text):
    assert not parse_condition(text).matches(FACTS)


@pytest.mark.parametrize("text", ["", "lr", "<3", "lr 3", "__import__('os')", "lr<" + "9" * 2000])
def test_text_of_another_form_is_refused_with_the_form(text):
    with pytest.raises(SMDebugValueError, match=r"is not a condition\. Write a name"):
        parse_condition(text)


def test_an_order_of_texts_is_refused():
    with pytest.raises(SMDebugValueError, match="'adam', which is not a number"):
        parse_condition("optimizer<adam")


def test_a_name_that_no_run_has_is_refused_with_the_nearest():
    with pytest.raises(SMDebugValueError, match=r"named optimiser.name. Did you mean optimizer.name\?"):
        refuse_unknown_names([parse_condition("optimiser.name=adam")], [FACTS])
    with pytest.raises(SMDebugValueError, match=r"one of a\.size, b\.size: give"):
        refuse_unknown_names([parse_condition("size=1")], [FACTS])
    refuse_unknown_names([parse_condition("lr=1")], [FACTS, {}])
    refuse_unknown_names([parse_condition("lr=1")], [])
