"""Which rank was killed, by the closing notes of the others."""

import time
from types import SimpleNamespace

import pytest

from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.files.collections_file import ClosingNote
from smdebug_default_rules.ranks.gone import PATIENCE, ranks_gone
from smdebug_default_rules.ranks.missing_rank import MissingRank

LONG_AGO = 2 * PATIENCE
NOW = -1000.0  # by a clock that is ahead: this test may be paused for long
ENDED = "it ended well"


def notes(*failed, last_step=35):
    """The closing notes of ranks that failed so many seconds ago; None for one that wrote none."""
    known = {
        f"worker_{rank}": ClosingNote(last_step, 14, None, None if ago == ENDED else time.time() - ago)
        for rank, ago in enumerate(failed)
        if ago is not None
    }
    return lambda workers: {worker: known[worker] for worker in workers if worker in known}


@pytest.mark.parametrize(
    ("of_ranks", "killed"),
    [
        ((LONG_AGO, None, LONG_AGO), ["worker_1"]),
        ((None, LONG_AGO), ["worker_0"]),
        ((LONG_AGO, None, None, LONG_AGO), ["worker_1", "worker_2"]),
        ((LONG_AGO, LONG_AGO, LONG_AGO), None),  # all raised
        ((LONG_AGO, None, NOW), None),  # it may still be closing
        ((ENDED, None, ENDED), None),  # it may go on: an end that is not even
        ((None, None, None), None),  # all were killed, or all go on
        ((LONG_AGO, None, None), None),  # most: nothing was compared
        ((LONG_AGO, ENDED), None),
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
        closing_notes=notes(LONG_AGO, None, LONG_AGO),
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
