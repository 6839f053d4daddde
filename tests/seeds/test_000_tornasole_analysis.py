"""Tornasole Analysis: trials, tensors, rules and the invoker, under the first name."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
from smdebug.mode_keys import ModeKeys
from smdebug.rules.rule_invoker import main
from tests.rules.made_runs import made_run
from tests.seeds.blocks import Story, code_of, runs
from tests.seeds.conftest import write_resnet
from tests.smdebug_rules.support import fires_at


@pytest.fixture
def trial(run_path):
    story = Story(run_path=run_path)
    story.run("000-03")
    return story["trial"]


@runs("000-03", "000-04")
def test_a_trial_is_opened_in_a_folder_and_in_a_bucket(run_path, s3):
    story = Story(run_path=run_path)
    story.run("000-03")
    assert story["trial"].name == "resnet_training_run"

    write_resnet("s3://tornasole-testing-bucket/outputs/resnet", steps=3)
    story.run("000-04")
    assert story["trial"].steps() == [0, 1, 2]


@runs("000-05")
def test_a_trial_can_be_restricted_to_some_steps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_resnet("ts_outputs/resnet")
    from tornasole.trials import create_trial

    story = Story(create_trial=create_trial)
    story.run("000-05")
    assert story["lt"].steps() == list(range(100, 110))


@runs("000-06", "000-07", "000-08")
def test_a_mode_counts_its_own_steps(tmp_path):
    from tornasole.trials import create_trial

    write_resnet(tmp_path, steps=10)
    story = Story(trial=create_trial(str(tmp_path)))
    assert story.run("000-06") == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert story.run("000-07") == [0, 1, 2, 3, 4, 5, 6, 7]
    assert story.run("000-08") == 5


@runs("000-09", "000-10", "000-11", "000-12", "000-13", "000-14", "000-15")
def test_a_trial_lists_its_tensors_steps_and_modes(trial):
    story = Story(trial=trial)
    assert {"relu:0", "relu_activation:0", "gradient/conv_weight"} <= set(story.run("000-09"))
    assert story.run("000-10") == list(range(88))
    assert story.run("000-11") == list(range(110))
    story.run("000-12", "000-13", "000-14")
    assert story["mode"] is ModeKeys.TRAIN
    assert story["mode_step"] == 80
    assert story["global_step_num"] == 12
    assert set(story.run("000-15")) == {ModeKeys.TRAIN, ModeKeys.EVAL}


@runs("000-16", "000-17", "000-18", "000-19", "000-20", "000-21")
def test_a_tensor_has_steps_and_values(trial):
    story = Story(trial=trial)
    assert story.run("000-16").name == "relu_activation:0"
    assert story.run("000-17") == list(range(110))
    assert story.run("000-18") == list(range(88))
    at_10 = story.run("000-19")
    assert at_10.shape == (4, 3)
    at_training_step_10 = story.run("000-20")
    assert not np.array_equal(at_10, at_training_step_10)
    expected = np.abs(trial.tensor("relu:0").value(10)).mean()
    assert story.run("000-21") == pytest.approx(expected)


@runs("000-22", "000-23", "000-24")
def test_tensors_are_found_by_pattern_and_collection(trial):
    story = Story(trial=trial)
    assert story.run("000-22") == ["relu_activation:0"]
    assert story.run("000-23") == ["gradient/conv_weight"]
    assert "gradients" in story.run("000-24")


@runs("000-25", "000-26", "000-27")
def test_refreshing_can_be_switched_and_a_star_imports_the_exceptions(trial):
    story = Story(trials=[trial])
    story.run("000-25", "000-26", "000-27")
    assert story["NoMoreData"] is NoMoreData


@pytest.fixture
def vanishing(trial):
    story = Story()
    story.run_as_class("000-28", "000-33", "000-34")
    story.names["rule"] = story["VanishingGradientRule"](trial, threshold=10.0)
    return story


@runs("000-28", "000-33", "000-34", "000-35")
def test_a_rule_is_written_and_invoked(trial):
    story = Story()
    story.run_as_class("000-28", "000-33", "000-34")
    rule = story["VanishingGradientRule"](trial)
    assert fires_at(rule, 0, 20) == []
    with pytest.raises(RuleEvaluationConditionMet):
        story["VanishingGradientRule"](trial, threshold=100.0).invoke(0)

    from tornasole.rules.rule_invoker import invoke

    with pytest.raises(NoMoreData):
        Story(invoke=invoke, rule_obj=rule).run("000-35")


@runs("000-29", "000-30", "000-31", "000-32")
def test_a_rule_requests_its_required_tensors(vanishing):
    rule = vanishing["rule"]
    story = Story(self=rule, tname="relu:0", step_num=3, name="relu:0")
    story.run("000-29")
    assert list(story.run("000-30")) == ["relu:0"]
    assert story.run("000-31") == [3]
    assert [tensor.name for tensor in story.run("000-32")] == ["relu:0"]


@runs("000-36", "000-37")
def test_built_in_rules_are_invoked_from_the_command_line(tmp_path, monkeypatch, s3, capsys):
    from tests.seeds.blocks import _executed

    monkeypatch.setenv("HOME", str(tmp_path))
    made_run({0: {"gradient/w": [0.0]}}, tmp_path / "ts_outputs" / "vanishing_gradients")
    steps = {step: {"w": [1.0]} for step in range(10)}
    made_run(steps, "s3://tornasole-runes/trial0")
    for block, found in (
        ("000-36", "step 0: gradient/w: the mean of |gradient| is 0"),
        ("000-37", "step 9: w: unchanged at steps 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
    ):
        python, _, module, *argv = shlex.split(code_of(block))
        assert (python, module) == ("python", "tornasole.rules.rule_invoker")
        assert main(argv) == 1
        assert found in capsys.readouterr().out
        _executed.add(block)


@runs("000-38", "000-39", "000-40", "000-41", "000-42", "000-43", "000-44")
def test_the_first_party_rules_are_created_as_documented(trial, tmp_path):
    from tornasole.trials import create_trial

    other_trial = create_trial(str(write_resnet(tmp_path, steps=5)))
    story = Story(
        base_trial=trial,
        trial_obj=trial,
        other_trial=other_trial,
        large_threshold=10,
        small_threshold=0.1,
    )
    story.run("000-38")
    assert fires_at(story["r"], 0, 10) == []
    story.run("000-39")
    assert fires_at(story["r"], 0, 10) == []
    story.run("000-40")
    assert fires_at(story["r"], 0, 10) == []  # both runs are made from the same numbers
    story.run("000-41", "000-42", "000-43", "000-44")
    assert fires_at(story["wur"], 0, 10) == []
    assert story["allzero"].rule_name == "AllZero"
    assert fires_at(story["allzero"], 0, 10) == []
    # tname never changes; at 4 and 9, which evaluate, no change is expected
    assert fires_at(story["ut"], 0, 10) == [2, 3, 5, 6, 7, 8]
    assert fires_at(story["lnd"], 0, 60) == []
