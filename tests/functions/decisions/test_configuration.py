"""Which rules watch a run, and whether they can."""

import pytest

from functions.decisions.configuration import check, default_rules, group_of, what_changed
from smdebug.service.records import RuleConfiguration
from smdebug_rules.catalog import CATALOG


def rule(name="VanishingGradient", *, source=None, other_trials=(), **parameters):
    return RuleConfiguration(name, name, parameters, source=source, other_trials=tuple(other_trials))


def test_the_default_rules_are_evaluated_once_each_at_their_defaults():
    rules = default_rules(["AllZero", " ExplodingTensor", "AllZero", ""])
    assert [(configured.name, configured.rule) for configured in rules] == [
        ("AllZero", "AllZero"),
        ("ExplodingTensor", "ExplodingTensor"),
    ]


@pytest.mark.parametrize("name", CATALOG)
def test_every_built_in_rule_can_be_configured_from_its_catalog_entry(name):
    entry = CATALOG[name]
    given = {
        parameter.name: str(parameter.default)
        for parameter in entry.parameters
        if parameter.default is not None
    }
    required = {parameter.name: "s3://bucket/before" for parameter in entry.parameters if parameter.required}
    assert check(rule(name, **given, **required), CATALOG) is None


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        (rule("VanishngGradient"), "There is no rule VanishngGradient. Did you mean Vanishing"),
        (rule("Frobnicate"), "A rule of your own needs its source"),
        (rule(treshold="1"), "takes no parameter 'treshold'. Did you mean 'threshold'?"),
        (rule(start_step="1"), "The configuration itself has start_step"),
        (rule(threshold="small"), "VanishingGradient: threshold must be a number, not 'small'"),
        (rule("ExplodingTensor", only_nan="maybe"), "only_nan must be True or False"),
        (rule("ExplodingTensor", tensor_regex="("), "ExplodingTensor: tensor_regex: "),
        (rule("UnchangedTensor", num_steps="None"), "num_steps must be a whole number"),
        (rule("UnchangedTensor", num_steps="2.5"), "num_steps must be a whole number"),
        (rule("LossNotDecreasing", mode="TEST"), "mode must be one of TRAIN, EVAL"),
        (rule("SimilarAcrossRuns"), "needs another run to compare with"),
    ],
)
def test_an_invalid_rule_is_described_in_a_sentence(configuration, problem):
    assert problem in check(configuration, CATALOG)


@pytest.mark.parametrize(
    "configuration",
    [
        rule("vanishinggradient", threshold="1e-3"),
        rule("LossNotDecreasing", diff_percent="5", mode="modes.TRAIN"),
        rule("LossNotDecreasing", increase_threshold_percent="None", mode=""),
        rule("WeightUpdateRatio", num_steps="None"),
        rule("SimilarAcrossRuns", other_trials=["s3://bucket/before"]),
        rule("Mine", source="s3://bucket/mine.py", anything="goes"),
    ],
)
def test_nothing_is_wrong_with_a_rule_that_can_be_evaluated(configuration):
    assert check(configuration, CATALOG) is None


def test_custom_rules_are_evaluated_alone_and_built_in_ones_together():
    assert group_of(rule("AllZero")) == group_of(rule("ExplodingTensor")) == "builtin"
    mine = rule("Mine", source="s3://bucket/mine.py")
    assert group_of(mine) == f"custom-{mine.id}"
    assert group_of(rule("Deployed"), {"Deployed"}) == f"custom-{rule('Deployed').id}"
    assert check(rule("Deployed"), CATALOG, {"Deployed"}) is None


def test_an_unknown_rule_is_evaluated_where_its_error_is_reported():
    assert group_of(rule("Frobnicate"), {"Deployed"}) == "builtin"


def test_a_changed_rule_ends_and_begins_again():
    before = [rule("AllZero"), rule("ExplodingTensor"), rule(threshold="1")]
    after = [rule("ExplodingTensor"), rule(threshold="2")]
    changes = what_changed(before, after)
    assert [changed.rule for changed in changes.stopped] == ["AllZero", "VanishingGradient"]
    assert changes.attached == (after[1],)
    assert what_changed(after, after) == ((), ())
