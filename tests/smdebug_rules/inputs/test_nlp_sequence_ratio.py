from __future__ import annotations

import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug_rules.inputs.nlp_sequence_ratio import NLPSequenceRatio
from tests.rules.made_runs import made_run
from tests.smdebug_rules.support import findings_by_step, fires_at, found_data_at

TOKENS = {
    0: {"embedding0_input_0": np.array([[0, 0, 1, 2], [0, 0, 0, 3]])},
    1: {"embedding0_input_0": np.array([[0, 0, 1, 2], [0, 3, 0, 3]])},
}


def test_more_than_half_of_padding_is_found_and_half_is_not():
    found = findings_by_step(NLPSequenceRatio(made_run(TOKENS).trial()))
    assert {step: str(item[0]) for step, item in found.items()} == {
        0: "embedding0_input_0: 62.5 % of the tokens are 0 (limit 50 %)"
    }


def test_each_token_has_its_own_limit_or_all_share_one():
    run = made_run(TOKENS).trial()
    found = findings_by_step(NLPSequenceRatio(run, token_values="0, 3", token_thresholds_percent="90, 20"))
    assert [finding.details["token"] for finding in found[1]] == [3.0]
    assert fires_at(NLPSequenceRatio(run, token_values=[3, 2], token_thresholds_percent=20)) == [1]


def test_saved_extremes_exclude_absent_values():
    def saved(low, high):
        prefix = "smdebug/reductions"
        return {f"{prefix}/{n}/embedding0_input_0": np.float32(v) for n, v in (("min", low), ("max", high))}

    run = made_run({0: saved(0, 0), 1: saved(1, 9), 2: saved(0, 9)}).trial()
    assert fires_at(NLPSequenceRatio(run)) == [0]
    assert [found_data_at(NLPSequenceRatio(run), step) for step in (1, 2)] == [True, False]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"token_values": "0,1,2", "token_thresholds_percent": "1,2"}, "3 numbers and .* 2"),
        ({"token_values": ""}, "must not be empty"),
        ({"token_values": "pad"}, "must be a number"),
        ({"token_thresholds_percent": "150"}, "between 0 and 100"),
    ],
)
def test_an_invalid_value_is_refused(parameters, problem):
    with pytest.raises(SMDebugValueError, match=problem):
        NLPSequenceRatio(made_run({}).trial(), **parameters)
