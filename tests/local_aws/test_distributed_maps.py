"""Distributed maps: which failures end them, and what Step Functions refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_aws.distributed_maps import Tolerance, as_moto_reads, refuse_wrong_maps
from local_aws.errors import LocalStackError


def machine(**processor: Any) -> dict[str, Any]:
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS", **processor}
    state = {"Type": "Map", "ToleratedFailurePercentage": 5, "ItemProcessor": {"ProcessorConfig": config}}
    return {"StartAt": "M", "States": {"M": state}}


@pytest.mark.parametrize(
    ("count", "percentage", "failed", "exceeded"),
    [
        (0, 0.0, 1, True),
        (0, 5.0, 5, False),
        (0, 5.0, 6, True),
        (3, 0.0, 3, False),
        (3, 0.0, 4, True),
        (3, 50.0, 4, True),
        (80, 5.0, 6, True),
    ],
)
def test_failed_children_end_a_map_beyond_either_limit(count, percentage, failed, exceeded):
    tolerance = Tolerance(100, count, percentage)
    for _ in range(40):
        assert not tolerance.add({"Status": "SUCCEEDED"})
    ends = [tolerance.add({"Status": "FAILED"}) for _ in range(failed)]
    assert ends[-1] is exceeded


def test_an_express_workflow_has_no_distributed_map():
    with pytest.raises(LocalStackError, match="standard workflows only"):
        refuse_wrong_maps(machine(), "EXPRESS")
    refuse_wrong_maps(machine(), "STANDARD")


def test_children_have_a_type():
    with pytest.raises(LocalStackError, match="without an ExecutionType"):
        refuse_wrong_maps(machine(ExecutionType=None), "STANDARD")


def test_moto_gets_what_its_grammar_has_and_other_machines_are_as_they_were():
    read = json.loads(as_moto_reads(json.dumps(machine())))["States"]["M"]
    assert read["ItemProcessor"]["ProcessorConfig"]["ExecutionType"] == "STANDARD"
    assert isinstance(read["ToleratedFailurePercentage"], float)
    inline = json.dumps(machine(Mode="INLINE"), indent=1)
    assert as_moto_reads(inline) == inline
