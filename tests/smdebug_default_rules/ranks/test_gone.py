"""Which rank was killed, by the closing notes of the others."""

import time
from types import SimpleNamespace

import pytest

from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.files.collections_file import ClosingNote
from smdebug_default_rules.ranks.gone import PATIENCE, ranks_gone
from smdebug_default_rules.ranks.missing_rank import MissingRank


def note(ago=PATIENCE + 1, last_step=35):
    return ClosingNote(last_step, 14, None, None if ago is None else time.time() - ago)


def notes(*of_ranks):
    known = {f"worker_{rank}": each for rank, each in enumerate(of_ranks) if each is not None}
    return lambda workers: {worker: known[worker] for worker in workers if worker in known}


ENDED = note(None)


@pytest.mark.parametrize(
    ("of_ranks", "killed"),
    [
        ((note(), None, note()), ["worker_1"]),
        ((None, note()), ["worker_0"]),
        ((note(), None, None, note()), ["worker_1", "worker_2"]),
        ((note(), note(), note()), None),  # all raised
        ((note(), None, note(1)), None),  # it may still be closing
        ((ENDED, None, ENDED), None),  # it may go on: an end that is not even
        ((None, None, None), None),  # all were killed, or all go on
        ((note(), None, None), None),  # most: nothing was compared
        ((note(), ENDED), None),
    ],
)
def test_a_rank_that_has_not_closed_its_run_after_others_failed(of_ranks, killed):
    gone = ranks_gone(notes(*of_ranks), len(of_ranks))
    assert (gone and gone.workers) == killed


def test_of_many_ranks_only_two_are_asked_while_none_has_failed():
    asked = []

    def notes_of(workers):
        asked.extend(workers)
        return {}

    assert ranks_gone(notes_of, 1024) is None
    assert sorted(asked) == ["worker_0", "worker_1023"]


def test_the_rule_reports_it_once():
    trial = SimpleNamespace(
        stalls=dict,
        closing_notes=notes(note(), None, note(last_step=30)),
        observations=SimpleNamespace(expected_workers=3),
    )
    rule = MissingRank(trial)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke_in_silence(35, 200.0)
    (finding,) = met.value.findings
    assert (finding.worker, finding.since, finding.cause) == ("worker_1", 35, "missing rank")
    assert finding.message == "worker_1 has ended without a word, and 2 other ranks failed after step 35"
    assert any("dmesg" in advice for advice in finding.advice)
    rule.invoke_in_silence(35, 300.0)
    assert rule.findings == []
