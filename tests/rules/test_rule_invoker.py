from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from smdebug.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Rule, invoke, invoke_rule
from smdebug.rules.outcomes import NothingToCheck, NotSaved
from smdebug.rules.rule_invoker import evaluations
from tests.rules.made_runs import MadeRun, made_run


class Recording(Rule):
    """Remembers at which steps it was invoked; fires at those in `fires_at`."""

    def __init__(self, base_trial, fires_at=()):
        super().__init__(base_trial)
        self.seen = []
        self.fires_at = fires_at

    def invoke_at_step(self, step):
        self.seen.append(step)
        self.findings.append(f"it is step {step}")
        return step in self.fires_at


@pytest.fixture
def trial():
    return made_run({step: {"loss": [1.0]} for step in (0, 3, 4, 9)}).trial()


def test_a_rule_is_invoked_at_every_saved_step_until_the_training_ends(trial):
    rule = Recording(trial)
    with pytest.raises(NoMoreData) as end:
        invoke_rule(rule)
    assert rule.seen == [0, 3, 4, 9]
    assert (end.value.step, end.value.last_step) == (10, 9)


def test_the_end_step_is_left_out_and_then_nothing_is_raised(trial):
    rule = Recording(trial)
    invoke_rule(rule, start_step=3, end_step=9)
    assert rule.seen == [3, 4]
    invoke_rule(rule, start_step=9, end_step=10)
    assert rule.seen == [3, 4, 9]
    invoke_rule(rule, start_step=5, end_step=5)
    assert rule.seen == [3, 4, 9]


def test_a_start_past_the_end_is_the_end(trial):
    with pytest.raises(NoMoreData):
        invoke_rule(Recording(trial), start_step=50)


def test_steps_that_were_not_saved_are_skipped_at_once():
    trial = made_run({0: {"loss": [1.0]}, 10_000_000: {"loss": [1.0]}}).trial()
    rule = Recording(trial)
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.seen == [0, 10_000_000]


def test_a_condition_is_logged_and_the_rule_continues(trial, capsys):
    rule = Recording(trial, fires_at=(3, 9))
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    output = capsys.readouterr().out
    assert rule.seen == [0, 3, 4, 9]
    assert "Started execution of rule Recording at step 0" in output
    assert "at step 3 resulted in the condition being met: it is step 3" in output
    assert "at step 9 resulted in the condition being met" in output


def test_a_condition_is_raised_on_request(trial):
    with pytest.raises(RuleEvaluationConditionMet) as met:
        invoke_rule(Recording(trial, fires_at=(4, 9)), raise_eval_cond=True)
    assert met.value.step == 4


def test_the_end_of_an_invocation_is_logged(trial, capsys):
    invoke_rule(Recording(trial), 0, 5)
    assert "Ended execution of rule Recording at end_step 5" in capsys.readouterr().out


def test_invoke_is_the_older_name(trial):
    rule = Recording(trial)
    invoke(rule, start_step=4, end_step=5)
    assert rule.seen == [4]


@pytest.mark.parametrize(
    "missing",
    [
        TensorUnavailableForStep("w", 3),
        StepUnavailable(3, ModeKeys.GLOBAL),
        TensorUnavailable("w"),
    ],
)
def test_what_is_missing_at_a_step_is_skipped(trial, missing):
    class Missing(Recording):
        def invoke_at_step(self, step):
            super().invoke_at_step(step)
            if step == 3:
                raise missing

    rule = Missing(trial)
    outcomes = [evaluation.outcome for evaluation in evaluations(rule, 0, 9)]
    assert outcomes == [NothingToCheck(), NotSaved(str(missing)), NothingToCheck()]
    assert rule.seen == [0, 3, 4]


def test_an_error_of_the_rule_itself_is_not_hidden(trial):
    class Broken(Rule):
        def invoke_at_step(self, step):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        invoke_rule(Broken(trial))


def test_a_rule_can_end_itself(trial):
    class Ending(Recording):
        def invoke(self, step):
            self.seen.append(step)
            raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)

    class OutOfProfile(Recording):
        def invoke(self, step):
            self.seen.append(step)
            raise NoMoreProfilerData(0)

    for kind in (Ending, OutOfProfile):
        rule = kind(trial)
        invoke_rule(rule)
        assert rule.seen == [0]


def test_a_rule_follows_a_run_that_continues():
    run = MadeRun()
    run.save(0, {"loss": [1.0]})
    rule = Recording(run.trial())

    def go_on():
        for step in (5, 10):
            run.save(step, {"loss": [1.0]})
        run.end()

    training = threading.Timer(0.05, go_on)
    training.start()
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    training.join()
    assert rule.seen == [0, 5, 10]


def test_a_rule_that_skipped_every_tensor_causes_a_warning_with_the_reason(trial, capsys):
    from smdebug.rules.generic import Overfit, UnchangedTensor

    for rule, reason in (
        (UnchangedTensor(trial, tensor_regex="loss", num_steps=9), "it was saved at fewer than 9 "),
        (Overfit(trial, tensor_regex="loss"), "its step has neither mode TRAIN nor EVAL"),
    ):
        with pytest.raises(NoMoreData):
            invoke_rule(rule)
        warning = f"tensors matching 'loss'. Saved tensors: loss. Skipped: loss ({reason}"
        assert warning in capsys.readouterr().out


def test_a_rule_that_never_had_anything_to_look_at_is_warned_of_with_what_was_saved(trial, capsys):
    from smdebug.rules.generic import AllZero, VanishingGradient

    rule = AllZero(trial, collection_names="gradients", tensor_regex="grad")
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    invoke_rule(VanishingGradient(trial), end_step=5)
    output = capsys.readouterr().out
    assert (
        "Rule AllZero had nothing to check at any of 4 steps. It checks tensors in the collections "
        "gradients or matching 'grad'. Saved tensors: loss." in output
    )
    assert "Rule VanishingGradient had nothing to check at any of 3 steps. Saved tensors: loss." in output
    invoke_rule(AllZero(trial, tensor_regex="loss"), end_step=5)
    assert "nothing to check" not in capsys.readouterr().out


@pytest.mark.parametrize("module", ["smdebug.rules.rule_invoker", "tornasole.rules.rule_invoker"])
def test_the_invoker_is_a_command_under_both_names(module, tmp_path):
    made_run({0: {"gradient/w": [0.0]}}, tmp_path)
    command = [sys.executable, "-W", "error", "-m", module, "--trial-dir", str(tmp_path)]
    done = subprocess.run(
        [*command, "--rule-name", "VanishingGradient"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stderr == ""
    assert "step 0: gradient/w: the mean of |gradient| is 0, below 1e-07" in done.stdout
    assert done.returncode == 1


class AtEnd(Recording):
    """Has a finding at the end."""

    def __init__(self, base_trial, fires_at=(), fires=True):
        super().__init__(base_trial, fires_at)
        self.fires = fires
        self.ends = 0

    def invoke_at_end(self, step):
        self.seen = [*self.seen, f"end at {step}"]
        self.ends += 1
        self.findings.append(f"the end, after {self.seen[:-1]}")
        type(self).seen_at_end = self.seen
        return self.fires


def results_of(rule, **which):
    results = []
    try:
        for evaluation in evaluations(rule, **which):
            results += [(evaluation.step, evaluation.at_end, str(finding)) for finding in evaluation.findings]
    except NoMoreData:
        results.append("no more")
    return results


def test_a_rule_runs_its_end_check_once_and_after_the_last_step(trial):
    assert results_of(AtEnd(trial, fires_at=(9,))) == [
        (9, False, "it is step 9"),
        (9, True, "the end, after [0, 3, 4, 9]"),
        "no more",
    ]
    assert results_of(AtEnd(trial, fires=False)) == ["no more"]
    assert results_of(AtEnd(trial), start_step=10) == ["no more"]


def test_the_end_is_seen_by_a_rule_that_sees_the_last_step(trial):
    at_end = (9, True, "the end, after [4, 9]")
    assert results_of(AtEnd(trial), start_step=4, end_step=10) == [at_end]
    assert results_of(AtEnd(trial), start_step=4, end_step=12) == [at_end, "no more"]
    assert results_of(AtEnd(trial), end_step=9) == []
    going_on = MadeRun()
    going_on.save(0, {"loss": [1.0]})
    assert results_of(AtEnd(going_on.trial()), end_step=1) == []


def test_what_is_found_at_the_end_is_raised_as_at_a_step(trial):
    with pytest.raises(RuleEvaluationConditionMet, match="at step 9 resulted") as met:
        invoke_rule(AtEnd(trial), raise_eval_cond=True)
    assert str(met.value.findings[0]) == "the end, after [0, 3, 4, 9]"


def test_a_rule_remembers_nothing_of_the_end(trial):
    rule = AtEnd(trial)
    results_of(rule)
    assert AtEnd.seen_at_end[-1] == "end at 9"
    assert (rule.seen, rule.ends) == ([0, 3, 4, 9], 0)


def test_a_tensor_that_is_missing_at_the_end_is_not_an_error(trial):
    class Missing(AtEnd):
        def invoke_at_end(self, step):
            return self.base_trial.tensor("nothing").value(step) > 0

    assert results_of(Missing(trial)) == ["no more"]
