"""rules.json in its three forms, valid."""

import pytest

from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import (
    in_our_form,
    read_rules,
)
from tests.service.rules_files import FILE, only, ours, parse, sagemaker, tornasole


def test_our_form_holds_every_setting_of_a_rule():
    rule = only(
        ours(
            parameters={"threshold": 1e-6, "flag": True, "names": ["a", "b"], "nothing": None},
            source="s3://bucket/rules/mine.py",
            other_trials=["s3://bucket/before/"],
            start_step=10,
            end_step=20,
            actions=[{"name": "StopTraining"}, {"name": "email", "endpoint": "A@b.org"}],
            repeat="every_step",
            logging_level="debug",
        )
    )
    assert rule == RuleConfiguration(
        name="mine",
        rule="VanishingGradient",
        parameters={"threshold": "1e-06", "flag": "True", "names": '["a", "b"]'},
        source="s3://bucket/rules/mine.py",
        other_trials=("s3://bucket/before",),
        start_step=10,
        end_step=20,
        actions=({"name": "stoptraining"}, {"name": "email", "endpoint": "A@b.org"}),
        repeat="every_step",
        logging_level="DEBUG",
    )


def test_rules_survive_a_round_trip_through_our_form():
    rules = (
        RuleConfiguration("a", "AllZero", {"threshold": "50"}, other_trials=("s3://bucket/run",)),
        RuleConfiguration("b", "Mine", source="s3://bucket/x.py", end_step=7, repeat="every_step"),
    )
    assert parse(in_our_form(rules)) == rules


def test_the_name_of_a_rule_suffices():
    assert parse(["VanishingGradient"]) == (RuleConfiguration("VanishingGradient", "VanishingGradient"),)
    assert only({"rules": [{"rule": "AllZero"}]}).name == "AllZero"


def test_a_built_in_rule_as_the_sdk_writes_it_is_read():
    # Rule.sagemaker(rule_configs.similar_across_runs(), other_trials_s3_input_paths=[…], rule_parameters={…})
    rule = only(
        sagemaker(
            other_trial_0="s3://bucket/first",
            other_trial_1="s3://bucket/second/",
            collection_names="gradients",
        )
    )
    assert rule.rule == "VanishingGradient"
    assert rule.other_trials == ("s3://bucket/first", "s3://bucket/second")
    assert rule.parameters == {"collection_names": "gradients"}
    assert rule.source is None


def test_a_custom_rule_as_the_sdk_writes_it_is_read_and_unused_settings_are_noted():
    read = read_rules(
        {
            "DebugRuleConfigurations": [
                {
                    "RuleConfigurationName": "VGRule",
                    "InstanceType": "ml.t3.medium",
                    "VolumeSizeInGB": 30,
                    "S3OutputPath": "s3://bucket/out",
                    "LocalPath": "/opt/ml/processing/output",
                    "RuleEvaluatorImage": "864354269164.dkr.ecr.us-east-1.amazonaws.com/x:latest",
                    "RuleParameters": {
                        "source_s3_uri": "s3://path/to/vanishing_gradient_rule.py",
                        "rule_to_invoke": "VanishingGradient",
                        "threshold": "20.0",
                    },
                }
            ],
            "TrainingJobName": "the rest of the request is no matter",
        },
        file=FILE,
    )
    assert read.rules == (
        RuleConfiguration(
            "VGRule",
            "VanishingGradient",
            {"threshold": "20.0"},
            source="s3://path/to/vanishing_gradient_rule.py",
        ),
    )
    assert [note.split(": ")[1] for note in read.notes] == [
        "InstanceType is ignored",
        "VolumeSizeInGB is ignored",
        "S3OutputPath is ignored",
        "LocalPath is ignored",
    ]
    assert read.notes[0].startswith("DebugRuleConfigurations[0] (VGRule): ")


def test_tornasoles_runtime_configurations_hold_parameters_and_evaluation_options():
    rule = only(
        {
            "rules_specification": [
                {
                    "RuleName": "CustomGradientRule",
                    "SourceS3Uri": "s3://tornasole-external-preview-use1/rules/my_custom_rule.py",
                    "InstanceType": "ml.c5.4xlarge",
                    "VolumeSizeInGB": 10,
                    "RuntimeConfigurations": {
                        "threshold": "20.0",
                        "start-step": "5",
                        "end-step": "100",
                        "other-trials-paths": "s3://bucket/a;s3://bucket/b",
                        "logging-level": "WARN",
                    },
                }
            ]
        }
    )
    assert rule == RuleConfiguration(
        "CustomGradientRule",
        "CustomGradientRule",
        {"threshold": "20.0"},
        source="s3://tornasole-external-preview-use1/rules/my_custom_rule.py",
        other_trials=("s3://bucket/a", "s3://bucket/b"),
        start_step=5,
        end_step=100,
        logging_level="WARN",
    )


def test_a_parameter_called_start_step_stays_the_rules_own():
    rule = only(sagemaker(start_step="7"))
    assert rule.parameters == {"start_step": "7"}
    assert rule.start_step == 0


@pytest.mark.parametrize("form", [sagemaker, tornasole])
@pytest.mark.parametrize(
    "written",
    [
        '[{"name": "stoptraining", "training_job_prefix": "Mnist-1"}]',
        '{"name": "stoptraining", "training_job_prefix": "Mnist-1"}',
        '[{\\"name\\": \\"stoptraining\\", \\"training_job_prefix\\": \\"Mnist-1\\"}]',
        '"[{\\"name\\": \\"stoptraining\\", \\"training_job_prefix\\": \\"Mnist-1\\"}]"',
    ],
)
def test_actions_are_read_as_the_sdk_writes_them(form, written):
    rule = only(form(action_json=written))
    assert rule.actions == ({"name": "stoptraining", "training_job_prefix": "Mnist-1"},)
    assert rule.parameters == {}


STOPS = {"stop_training_on_fire": "True", "training_job_name_prefix": "Mnist"}


@pytest.mark.parametrize("rule", ["StalledTrainingRule", "stalledtraining"])
def test_stop_training_on_fire_becomes_an_action(rule):
    email = {"name": "email", "endpoint": "a@b.org"}
    content = {"rule": rule, "parameters": {**STOPS, "threshold": 60}, "actions": [email]}
    read = read_rules([content], file=FILE)
    (stalled,) = read.rules
    assert stalled.parameters == {"threshold": "60"}
    stop = {"name": "stoptraining", "training_job_prefix": "Mnist"}
    assert stalled.actions == (email, stop)
    assert "the action stoptraining" in read.notes[0]


@pytest.mark.parametrize(
    "parameters",
    [
        {"stop_training_on_fire": "False", "training_job_name_prefix": "Mnist"},
        {"stop_training_on_fire": "True"},  # the rule itself reports that the prefix is missing
        {"stop_training_on_fire": "perhaps", "training_job_name_prefix": "Mnist"},
    ],
)
def test_incomplete_stop_parameters_become_no_action(parameters):
    rule = only([{"rule": "StalledTrainingRule", "parameters": parameters}])
    assert (rule.parameters, rule.actions) == (parameters, ())


def test_a_custom_rule_may_have_a_parameter_named_stop_training_on_fire():
    source = {"source": "s3://bucket/rules/mine.py"}
    rule = only([{"rule": "StalledTrainingRule", "parameters": STOPS, **source}])
    assert (rule.parameters, rule.actions) == (STOPS, ())


def test_tornasole_rules_of_the_same_class_get_names_by_their_settings():
    loose, strict = parse(
        {
            "rules_specification": [
                {"RuleName": "AllZero", "RuntimeConfigurations": {"threshold": "50"}},
                {"RuleName": "AllZero", "RuntimeConfigurations": {"threshold": "90"}},
            ]
        }
    )
    assert loose.name != strict.name
    assert {loose.rule, strict.rule} == {"AllZero"}
    # The name does not depend on the other rules or their order.
    again, _ = parse(
        {
            "rules_specification": [
                {"RuleName": "AllZero", "RuntimeConfigurations": {"threshold": "90"}},
                {"RuleName": "AllZero", "RuntimeConfigurations": {"threshold": "10"}},
            ]
        }
    )
    assert again == strict


def test_a_rule_listed_twice_is_read_once():
    read = read_rules(["AllZero", "AllZero"], file=FILE)
    assert len(read.rules) == 1
    assert not read.problems
    assert "AllZero is listed twice" in read.notes[0]
