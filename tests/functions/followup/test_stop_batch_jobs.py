"""The AWS Batch job of a run is terminated if it, and no other, says that it trains the run."""

import pytest

from functions.decisions.job_ownership import JobClaims
from functions.followup.actions import CLAIMED_FOR, carry_out
from functions.ports import TooMuch
from tests.functions.test_act import STOP, Memory, event

OWN_BATCH_JOB = JobClaims("8", True, ("runs/mnist-1",))


def test_the_batch_job_of_the_run_is_terminated_with_the_reason():
    memory = Memory()
    memory.batch_jobs = {"night": [JobClaims("7", True, ("runs/mnist-2",))], "day": [OWN_BATCH_JOB]}
    carry_out(memory.ports(batch_queues=("night", "day")), event(STOP)["detail"])
    assert memory.done[:2] == [
        ("write", "runs/mnist-1"),
        ("terminate", "8", "smdebug: a rule has asked to stop s3://runs/mnist-1"),
    ]
    outcome = list(memory.kept.values())[1]
    assert (outcome["done"], outcome["effect"]) == (True, "Batch job")
    assert outcome["message"] == "Asked AWS Batch to terminate the job 8."


def test_no_batch_job_is_terminated_unless_exactly_one_names_the_run():
    for jobs, why_not in (
        ([JobClaims("7", True, ("runs/mnist-2",))], "No running Batch job says"),
        ([JobClaims("8", False, ("runs/mnist-1",))], "No running Batch job says"),
        ([OWN_BATCH_JOB, JobClaims("9", True, ("runs/mnist-1",))], "Several Batch jobs say"),
    ):
        memory = Memory()
        memory.batch_jobs = {"day": jobs}
        carry_out(memory.ports(batch_queues=("day",)), event(STOP)["detail"])
        outcome = list(memory.kept.values())[1]
        assert not outcome["done"]
        assert why_not in outcome["message"]
        assert "terminate" not in [what for what, *_ in memory.done]


def test_batch_that_throttles_is_asked_again_and_the_hook_only_once():
    memory = Memory()
    memory.batch_jobs = {"day": [OWN_BATCH_JOB]}
    memory.trouble = {"terminate": TooMuch("slow down")}
    detail = event(STOP)["detail"]
    with pytest.raises(TooMuch):
        carry_out(memory.ports(batch_queues=("day",)), detail)
    memory.trouble, memory.time = {}, memory.time + CLAIMED_FOR + 1
    carry_out(memory.ports(batch_queues=("day",)), detail, "again")
    assert [what for what, *_ in memory.done if what != "check"] == ["write", "terminate"]
