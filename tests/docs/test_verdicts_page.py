"""docs/verdicts.md shows the kept results, and the results belong to the existing programs."""

from __future__ import annotations

from collections import Counter

from corpus.measuring.publish import read, text
from corpus.measuring.reasons import REASONS
from corpus.measuring.scores import Scores
from corpus.measuring.written import written
from tests.docs.pages import ROOT, text_of

PAGE = ROOT / "docs" / "verdicts.md"
SEEDS = {"healthy": 5, "faulty": 3, "twin": 3}


def test_the_page_shows_the_kept_results():
    assert text_of(PAGE) == text(read()), "run `make verdicts-page`"


def test_the_results_are_of_the_programs_that_there_are_with_all_seeds():
    tallies = read()["default"]
    measured = {(tally.name, tally.kind) for tally in tallies}
    assert measured <= set(written())
    assert len(measured) >= 0.9 * len(written()), "measure the new programs: make verdicts"
    assert all(tally.runs == SEEDS[tally.kind] for tally in tallies)


def test_no_two_programs_have_the_same_name():
    assert set(Counter(written()).values()) == {1}


def test_the_benchmark_is_large_enough_to_mean_something():
    scores = Scores(read()["default"])
    assert scores.false_alarms.total >= 200
    assert len(scores.where(kind="faulty").tallies) >= 40
    halves = [len(scores.where(kind="healthy", half=half).tallies) for half in ("tuning", "held out")]
    assert min(halves) >= 20


def test_every_fault_that_is_never_named_right_has_its_reason():
    never = {tally.name for tally in read()["default"] if tally.kind == "faulty" and not tally.right}
    assert never <= set(REASONS)
    assert set(REASONS) <= {name for name, _ in written()}
