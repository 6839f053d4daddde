"""Contrastive losses that compare each row with itself, and such whose views differ in some rows."""

from tests.smdebug_default_rules.made_steps import Steps

TITLE = "Both views of a row are the same"


def compared(*equal, looked=8):
    """A run whose loss compared so many equal pairs at each of its steps; None where that is not known."""
    run = Steps()
    for count in equal:
        loss = dict(run.facts["loss"])
        loss.pop("positives", None)
        run.facts["loss"] = (
            loss if count is None else {**loss, "positives": {"looked": looked, "equal": count}}
        )
        run.write()
    return run


def found(run):
    return [(step, at.since) for step, at in run.evaluate("RepeatedInput") if at.title == TITLE]


def test_rows_that_are_compared_with_themselves_at_three_steps_are_found():
    assert found(compared(8, 8)) == []
    assert found(compared(8, 8, 8)) == [(2, 0)]
    assert found(compared(5, 8, 8, 8)) == [(3, 1)]
    (_, finding), *_ = compared(8, 8, 8).evaluate("RepeatedInput")
    assert finding.cause == "repeated input"
    assert finding.why == ("8 of 8 pairs of codes that were compared are equal, at 3 saved steps in a row",)
    assert "call the transform twice" in finding.advice[0]


def test_views_of_which_some_differ_are_not_found():
    assert found(compared(7, 7, 7, 7, 7, 7)) == []
    assert found(compared(8, 8, 7, 8, 8)) == []


def test_steps_that_do_not_say_neither_count_nor_interrupt():
    assert found(compared(8, None, 8, None, 8)) == [(4, 0)]


def test_rows_that_are_there_twice_as_both_views_are_not_reported_as_such():
    run = compared(8, 8, 8)
    rows = run.facts["shapes"][0][0]
    run.facts["distinct_rows"] = rows // 2
    run.write(steps=4)
    assert {at.title for _, at in run.evaluate("RepeatedInput")} == {TITLE}
