"""The programming model for analysis: the trial's and the tensor's methods, a rule, the exceptions."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import MissingCollectionFiles, NoMoreData
from smdebug.mode_keys import ModeKeys
from smdebug.trials.progress import StepState
from tests.seeds.blocks import Story, runs
from tests.seeds.conftest import write_resnet
from tests.smdebug_rules.support import fires_at


@pytest.fixture
def story(run_path):
    story = Story(run_path=run_path, modes=smdebug.modes, ModeKeys=ModeKeys)
    story.run("003-02")
    return story


@runs("003-01", "003-02", "003-03")
def test_trials_are_opened_in_a_folder_and_in_a_bucket(run_path, s3):
    story = Story(run_path=run_path)
    story.run("003-02")
    assert len(story["trial"].steps()) == 110
    write_resnet("s3://smdebug-testing-bucket/outputs/resnet", steps=103)
    story.run("003-01", "003-03")
    assert len(story["trial"].steps()) == 103
    assert story["tr"].steps() == [100, 101, 102]


@runs("003-04", "003-05", "003-06", "003-07", "003-08", "003-09")
def test_tensor_names_are_listed_in_every_documented_way(story):
    everything = story.run("003-05")
    assert len(everything) == 9
    assert story.run("003-04") == everything
    assert "gradient/conv_weight" in story.run("003-06")
    assert story.run("003-07") == ["relu:0", "relu_activation:0"]
    assert story.run("003-08") == ["gradient/conv_weight"]
    assert story.run("003-09") == ["softmax_output"]


@runs("003-10", "003-11", "003-12", "003-13", "003-14", "003-15", "003-16", "003-17")
def test_the_trial_lists_tensors_steps_modes_and_workers(story):
    story.names["tname"] = "relu:0"
    assert story.run("003-10").name == "relu:0"
    assert story.run("003-11") is True
    assert story.run("003-12") == list(range(110))
    assert set(story.run("003-13")) == {ModeKeys.TRAIN, ModeKeys.EVAL}
    assert story.run("003-14") is ModeKeys.TRAIN
    assert story.run("003-15") == 80
    assert story.run("003-16") == 100
    assert story.run("003-17") == ["worker_0"]


@runs("003-18", "003-19", "003-20", "003-21")
def test_the_trial_lists_collections_and_available_data(story):
    story.names.update(coll_name="gradients", required_steps=[0, 5], step=7)
    assert "losses" in story.run("003-18")
    assert story.run("003-19").name == "gradients"
    assert story.run("003-20") is None
    assert story.run("003-21") is StepState.AVAILABLE


@runs("003-22", "003-23", "003-24", "003-25", "003-26", "003-27", "003-28", "003-35")
def test_the_tensor_has_steps_values_reductions_and_workers(story):
    story.names.update(name="relu:0", step_num=3, reduction_name="mean", step=50, n=3)
    assert story.run("003-22") == list(range(110))
    value = story.run("003-23")
    assert value.shape == (4, 3)
    assert story.run("003-24") == pytest.approx(value.mean())
    assert story.run("003-25") == {}
    assert np.array_equal(story.run("003-26")[3], value)
    assert story.run("003-27") == ["worker_0"]
    assert story.run("003-28") == [48, 49, 50]
    assert len(story.run("003-35")) == 110


@runs("003-29", "003-30", "003-33")
def test_a_rule_is_written_and_invoked_until_the_end(story, s3):
    story.run_as_class("003-29", "003-30")
    rule = story["VanishingGradientRule"](story["trial"], threshold="100")
    assert fires_at(rule, 0, 6) == [0, 1, 2, 3, 5]  # step 4 evaluates: it has no gradients
    write_resnet("s3://smdebug-dev-test/mnist-job", steps=4)
    with pytest.raises(NoMoreData):
        story.run("003-33")


@runs("003-32")
def test_a_rule_configuration_holds_the_arguments_of_the_rule(story):
    (configuration,) = story.run("003-32")["DebugRuleConfigurations"]
    parameters = configuration["RuleParameters"]
    from smdebug.rules.generic import find_rule

    rule = find_rule(parameters["rule_to_invoke"]).load()
    assert rule(story["trial"], threshold=parameters["threshold"]).threshold == 20.0


@runs("003-34", "003-36", "003-37")
def test_a_star_imports_the_exceptions_and_refreshing_can_be_switched(story):
    story.names["trials"] = [story["trial"]]
    story.run("003-34", "003-36", "003-37")
    assert story["MissingCollectionFiles"] is MissingCollectionFiles
