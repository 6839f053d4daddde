"""Dropout that leaves too little to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from smdebug import modes
from smdebug_default_rules.loss.strong_dropout import holds_back
from tests.smdebug_default_rules.made_steps import Steps

NOTED = {"module": "2", "rate": 0.9}
TITLE = "Dropout leaves too little to learn from"


def trained(
    training: Sequence[float], validation: Sequence[float], dropped: object = NOTED, steps: int = 30
) -> Steps:
    """Train with these losses in each epoch, each followed by a validation with the next of these."""
    made = Steps()
    for ours, theirs in zip(training, validation, strict=True):
        made.facts.pop("strong_dropout", None)
        if dropped:
            made.facts["strong_dropout"] = dropped
        made.loss = ours
        made.skip(*[ours] * (steps - 1)).write()
        made.facts.pop("strong_dropout", None)
        made.loss = theirs
        made.write(modes.EVAL)
    made.loss = training[-1]
    if dropped:
        made.facts["strong_dropout"] = dropped
    return made.write()


def titles(made: Steps) -> set[str]:
    return {finding.title for _, finding in made.evaluate("Generalisation")}


HELD, FREE = [2.3, 2.2, 2.0, 1.9, 1.9, 1.88], [2.2, 2.0, 1.6, 1.45, 1.4, 1.35]


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (lambda: trained(HELD, FREE), {TITLE}),
        (lambda: trained(HELD, FREE, dropped=None), set()),
        (lambda: trained(HELD, [2.2, 2.1, 1.9, 1.8, 1.75, 1.7]), set()),  # the task itself is hard
        (lambda: trained([2.3, 1.1, 0.7, 0.4, 0.4, 0.4], [1.5, 0.5, 0.3, 0.1, 0.1, 0.1]), set()),
        (lambda: trained([2.3, 2.3, 2.2, 1.8, 1.6, 1.5], FREE), set()),  # it learns
        (lambda: trained(HELD, FREE, steps=10), set()),
        (lambda: trained(HELD[-3:], FREE[-3:], steps=100), set()),
    ],
)
def test_dropout_is_reported_if_training_stays_high_beside_validation(made, found):
    assert titles(made()) == found


def test_the_finding_names_the_module_and_the_argument():
    finding = [finding for _, finding in trained(HELD, FREE).evaluate("Generalisation")][-1]
    assert (finding.tensor, finding.value, finding.threshold) == ("2", 0.9, 0.85)
    assert (finding.cause, finding.since) == ("not learning", 29)  # the first saved step
    assert "after 181 steps and began at 2.3" in finding.message
    assert (
        "while the validation loss is 1.35: dropout in layer 2 (Linear) sets 90% of the values"
        in finding.message
    )
    assert "Lower p of layer 2" in finding.advice[0]
    assert "pass 0.1" in finding.advice[0]


def test_dropout_that_was_turned_off_is_not_reported_any_more():
    made = trained(HELD, FREE)
    reported = len(made.evaluate("Generalisation"))
    made.facts.pop("strong_dropout")
    assert len(made.write(steps=3).evaluate("Generalisation")) == reported


@pytest.mark.parametrize(
    ("losses", "validations", "now", "before", "below", "found"),
    [
        (150, 4, 0.61, 0.71, 0.48, True),
        (149, 4, 0.61, 0.71, 0.48, False),
        (150, 3, 0.61, 0.71, 0.48, False),
        (150, 4, 0.59, 0.68, 0.45, False),  # it is low
        (150, 4, 0.61, 0.73, 0.48, False),  # it falls
        (150, 4, 0.61, 0.71, 0.50, False),  # the validation is near
    ],
)
def test_limits(losses, validations, now, before, below, found):
    training = [before] * (validations - 1) + [now]
    assert holds_back(1.0, training, [1.0] * (validations - 1) + [below], losses) is found


def flat(dropped: object) -> Iterator[str]:
    """Train at chance; yield what is advised."""
    made = Steps()
    for _ in range(160):
        made.loss = 2.3
        if dropped:
            made.facts["strong_dropout"] = dropped
        made.write()
    for _, finding in made.evaluate("StuckLoss"):
        yield from (*finding.why, *finding.advice)


def test_a_loss_at_chance_has_the_module_beside_it():
    said = list(flat(NOTED))
    assert "Dropout of p=0.9 in layer 2 (Linear)" in said
    assert any(text.startswith("Lower p of layer 2") for text in said)
    others = list(flat(None))
    assert others
    assert not any("ropout" in text for text in others)
