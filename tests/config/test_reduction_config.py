"""What to save of a tensor."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config.reduction_config import (
    ALLOWED_NORMS,
    ALLOWED_REDUCTIONS,
    Reduction,
    ReductionConfig,
)
from smdebug.exceptions import SMDebugValueError


def test_reductions_stand_in_the_order_in_which_they_are_saved():
    config = ReductionConfig(["min"], ["max"], ["l1"], ["l2"])
    assert [reduction.label for reduction in config] == ["min", "l1", "abs_max", "abs_l2"]
    assert json.dumps(config.to_json_dict()) == (
        '{"save_raw_tensor": false, "reductions": "min,l1_norm,abs_max,abs_l2_norm", "save_shape": false}'
    )


@pytest.mark.parametrize("spelled", ["l1", "L1", "l1_norm", "abs_l1", "abs_l1_norm", " Abs_L1_Norm"])
@pytest.mark.parametrize("argument", ["reductions", "norms", "abs_reductions", "abs_norms"])
def test_a_norm_may_be_spelled_as_people_spell_it(spelled, argument):
    of_abs = "abs" in spelled.lower() or "abs" in argument
    config = ReductionConfig(**{argument: [spelled]})
    assert list(config) == [Reduction("l1", of_abs)]
    assert config.abs_norms == (["l1"] if of_abs else [])


@pytest.mark.parametrize("reductions", ["min,median, abs_mean", '["min", "median", "abs_mean"]'])
def test_reductions_may_be_one_string(reductions):
    config = ReductionConfig.from_dict({"reductions": reductions})
    assert config == ReductionConfig(["min", "median"], ["mean"])


def test_the_same_reduction_twice_is_saved_once():
    assert list(ReductionConfig(["min", "MIN", "l1"], norms=["l1"])) == [
        Reduction("min"),
        Reduction("l1"),
    ]


@pytest.mark.parametrize("word", ["True", "true", True, "TRUE"])
def test_flags_may_be_strings(word):
    config = ReductionConfig.from_dict({"save_raw_tensor": word, "save_shape": word})
    assert config.save_raw_tensor is True
    assert config.save_shape is True
    assert ReductionConfig(save_raw_tensor="False").save_raw_tensor is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"reductions": ["middle"]},
        {"reductions": "min,middle"},
        {"norms": ["l3"]},
        {"abs_reductions": [3]},
        {"reductions": {"min": 1}},
        {"save_raw_tensor": "perhaps"},
        {"save_shape": 2},
        {"save_shape": None},
    ],
)
def test_what_is_not_a_reduction_or_flag_is_refused(wrong):
    with pytest.raises(SMDebugValueError):
        ReductionConfig(**wrong)


def test_median_is_named_where_the_old_reader_does_not_look():
    config = ReductionConfig(["min", "median"], ["median"])
    assert config.to_json_dict()["reductions"] == "min"
    assert config.to_json_dict()["more_reductions"] == "median,abs_median"
    assert "more_reductions" not in ReductionConfig(["min"]).to_json_dict()


@given(
    st.lists(st.sampled_from(ALLOWED_REDUCTIONS)),
    st.lists(st.sampled_from(ALLOWED_REDUCTIONS)),
    st.lists(st.sampled_from(ALLOWED_NORMS)),
    st.lists(st.sampled_from(ALLOWED_NORMS)),
    st.booleans(),
    st.booleans(),
)
def test_a_reduction_config_comes_back_from_its_json(
    reductions, abs_reductions, norms, abs_norms, raw, shape
):
    config = ReductionConfig(reductions, abs_reductions, norms, abs_norms, raw, shape)
    assert ReductionConfig.from_json(config.to_json()) == config


def test_two_wishes_together_are_their_union():
    config = ReductionConfig(["min"], save_shape=True)
    other = ReductionConfig(["min", "max"], norms=["l2"], save_raw_tensor=True)
    together = config.with_(other)
    assert together == ReductionConfig(["min", "max"], norms=["l2"], save_raw_tensor=True, save_shape=True)
    assert config == ReductionConfig(["min"], save_shape=True)


def test_none_stays_none():
    assert ReductionConfig.from_dict(None) is None
    with pytest.raises(SMDebugValueError):
        ReductionConfig.from_dict("min")
    with pytest.raises(SMDebugValueError):
        ReductionConfig.from_json("[]")
