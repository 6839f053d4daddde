"""Which ranks the others wait for, from the files that ranks write when they make no progress."""

from types import SimpleNamespace

import pytest

from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.files.notes.stalls import ENDED, MOVES, STANDS, WENT_ON, Stall
from smdebug_default_rules.ranks.missing_rank import MissingRank
from smdebug_default_rules.ranks.standing import standing

REDUCES = ("torch.distributed.distributed_c10d:all_reduce:3", "__main__:train:9")
BARRIER = ("torch.distributed.distributed_c10d:barrier:3", "__main__:train:8")
PASSES_BACK = ("torch.autograd.graph:_engine_run_backward:9", "torch._tensor:backward:1", "__main__:train:9")
LOADS = ("torch.utils.data.dataloader:_get_data:1", "__main__:train:7")
SAVES = ("__main__:write:1", "__main__:save_checkpoint:2")


def stall(stack=REDUCES, seconds=130.0, *, state=STANDS, step=5, since=0.0, processor=0.0):
    return Stall("", state, step, "data", seconds, seconds, 60.0, since, processor, stack)


def ranks(*stalls):
    return {f"worker_{rank}": each for rank, each in enumerate(stalls) if each is not None}


def named(stalls, expected=None):
    found = standing(stalls, expected or len(stalls))
    return None if found is None else ([*found.behind], [*found.lost])


def test_a_rank_in_its_own_code_is_named_among_64_whatever_their_clocks_say():
    stalls = ranks(*(stall(PASSES_BACK, since=1e9 + 600 * rank) for rank in range(64)))
    stalls["worker_17"] = stall(LOADS, since=5.0)
    assert named(stalls) == (["worker_17"], [])


def test_a_rank_without_a_file_is_lost_once_the_others_have_waited_twice_their_limit():
    stalls = ranks(*(stall(PASSES_BACK) for _ in range(64)))
    del stalls["worker_40"]
    assert named(stalls, 64) == ([], ["worker_40"])
    assert named(ranks(stall(seconds=110), None), 2) is None
    assert named(ranks(stall(seconds=121), None), 2) == ([], ["worker_1"])
    assert named(ranks(stall(), None, None, None), 4) is None  # most ranks: nothing was compared


@pytest.mark.parametrize("stack", [SAVES, ("numpy:mean:1", "__main__:evaluate:3"), LOADS])
def test_a_pause_has_ten_times_as_long(stack):
    processor = 0.9 if stack is LOADS else 0.0
    assert named(ranks(stall(seconds=590), stall(stack, 590, processor=processor))) is None
    late = ranks(stall(seconds=610), stall(stack, 610, processor=processor))
    assert named(late) == (["worker_1"], [])


def test_a_rank_that_evaluates_is_waited_for_by_design():
    assert named(ranks(stall(BARRIER, 9000), stall(LOADS, 9000, state=MOVES))) is None


def test_ranks_in_different_collectives():
    assert named(ranks(stall(), stall(BARRIER), stall())) == (["worker_1"], [])
    assert named(ranks(stall(step=5), stall(step=4), stall(step=5))) == (["worker_1"], [])
    assert named(ranks(stall(seconds=100), stall(BARRIER, 100))) is None


def test_all_ranks_in_one_collective_are_not_behind():
    assert named(ranks(stall(seconds=500), stall(seconds=500))) is None
    assert named(ranks(stall(seconds=700), stall(seconds=700))) == ([], [])


def test_nobody_is_named_where_nobody_waits():
    assert named(ranks(stall(LOADS), stall(LOADS))) is None  # both compile, or load
    assert named(ranks(stall(state=WENT_ON), stall(LOADS, state=ENDED))) is None
    assert named({}, 2) is None
    assert named({"worker_9": stall(LOADS), **ranks(stall(seconds=61), stall(seconds=61))}, 2) is None


def test_the_rule_reports_a_rank_once():
    stalls = ranks(stall(PASSES_BACK), stall(LOADS), stall(PASSES_BACK))
    trial = SimpleNamespace(stalls=lambda: stalls, observations=SimpleNamespace(expected_workers=3))
    rule = MissingRank(trial)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke_in_silence(110, 200.0)
    (finding,) = met.value.findings
    assert (finding.worker, finding.since, finding.cause) == ("worker_1", 110, "missing rank")
    assert "torch.utils.data.dataloader:_get_data:1" in finding.message
    assert "2 ranks wait in the backward pass" in finding.message
    assert any("py-spy" in advice for advice in finding.advice)
    rule.invoke_in_silence(110, 300.0)
    assert rule.findings == []
    assert rule.looked is False


@pytest.mark.parametrize(
    ("given", "title"),
    [
        (ranks(stall(), None), "Rank worker_1 has died or hangs"),
        (ranks(stall(seconds=700), stall(seconds=700)), "All ranks wait in the same collective"),
    ],
)
def test_what_the_rule_says_of_other_silences(given, title):
    trial = SimpleNamespace(stalls=lambda: given, observations=SimpleNamespace(expected_workers=2))
    with pytest.raises(RuleEvaluationConditionMet) as met:
        MissingRank(trial).invoke_in_silence(110, None)
    assert [finding.title for finding in met.value.findings] == [title]
