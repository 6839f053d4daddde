"""Rules that judge several steps together: what they find, and what they let pass."""

import numpy as np
import pytest

from smdebug import modes
from smdebug.rules import restore_state, save_state
from smdebug.trials import create_trial
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_runs import TERM, Run, findings_of


def test_a_rate_that_jumps_is_found_at_its_step(run):
    run.write(steps=30)
    run.rate = 6.0
    run.write()
    run.rate = 0.1
    run.write(steps=3)
    ((step, finding),) = run.evaluate("LearningRate")
    assert (step, finding.since, finding.tensor) == (30, 30, "learning_rate/0/0")
    assert finding.value == pytest.approx(60)


def test_a_rate_that_stays_too_high_is_found_again(run):
    run.write(steps=30)
    run.rate = 0.4
    found = run.write(steps=3).evaluate("LearningRate")
    assert [(step, finding.since) for step, finding in found] == [(30, 30), (31, 30), (32, 30)]


@pytest.mark.parametrize(
    "schedule",
    [
        lambda step: 0.001 + 0.1 * min(step, 20) / 20,  # warm-up
        lambda step: 0.1 * (1 + np.cos(np.pi * (step % 25) / 25)) / 2 + 1e-4,  # restarts
        lambda step: 0.1 / 3 if step < 25 else 0.1,  # ConstantLR
        lambda step: 0.1 * 0.1 ** (step // 20),  # StepLR
    ],
    ids=["warm-up", "restarts", "constant warm-up", "drops"],
)
def test_usual_schedules_pass(run, schedule):
    for step in range(60):
        run.rate = schedule(step)
        run.loss = 2.3 * 0.98**step
        run.write()
    assert run.evaluate("LearningRate") == []


def test_a_rate_that_vanished_early_is_found_with_its_step(run):
    for step in range(80):
        run.rate = 0.1 * 0.7**step
        run.write()
    found = run.evaluate("LearningRate")
    assert {finding.since for _, finding in found} == {26}


def test_a_rate_that_never_leaves_zero_is_found_after_fifty_steps(run):
    run.rate = 0.0
    found = run.write(steps=60).evaluate("LearningRate")
    assert found[0][0] == 50
    assert {(finding.since, finding.value) for _, finding in found} == {(0, 0.0)}


def test_a_warm_up_may_begin_at_a_rate_of_zero(run):
    run.rate = 0.0
    run.write(steps=10)
    for step in range(50):
        run.rate = 0.001 * step
        run.write()
    assert run.evaluate("LearningRate") == []


def test_updates_that_are_far_too_small_are_found(run):
    for _ in range(12):
        for update in run.kinds["updates"].values():
            update *= 1e-5
        run.write()
    found = run.evaluate("LearningRate")
    assert {finding.since for _, finding in found} == {0}
    assert "hardly change" in found[0][1].message


def test_a_loss_that_jumps_is_found_at_its_step(run):
    run.losses(*np.linspace(2.3, 1.5, 25), 40.0, *np.linspace(1.5, 1.4, 3))
    ((step, finding),) = run.evaluate("LossSpike")
    assert (step, finding.since, finding.tensor) == (25, 25, "loss")


def test_a_noisy_loss_passes(run):
    run.losses(*(2.0 * np.exp(run.random.normal(0, 0.5, 60))))
    assert run.evaluate("LossSpike") == []


def test_a_batch_out_of_scale_is_found(run):
    run.write(steps=8)
    run.kinds["inputs"]["Net_input_0"] *= 1000
    ((step, finding),) = run.write().evaluate("LossSpike")
    assert (step, finding.tensor) == (8, "Net_input_0")


def test_a_loss_at_chance_is_found_after_enough_steps(run):
    run.losses(*(2.31 + run.random.normal(0, 0.03, 160)))
    found = run.evaluate("StuckLoss")
    assert found[0][0] == 149
    assert {finding.since for _, finding in found} == {0}


SUM = {**TERM, "reduction": "sum", "targets": 20}


@pytest.mark.parametrize(("loss", "is_stuck"), [(2.3, True), (1.2, False)])
def test_a_sum_that_is_divided_by_the_number_of_labels_is_compared_with_guessing(run, loss, is_stuck):
    run.facts["loss"] |= {"terms": [SUM], "factor": 1 / 20}
    run.losses(*(loss + run.random.normal(0, 0.03, 160)))
    found = run.evaluate("StuckLoss")
    assert bool(found) is is_stuck
    assert all("guessing among 10 classes gives 2.303" in finding.message for _, finding in found)


def test_a_sum_of_an_unknown_number_of_labels_is_not_compared_with_guessing(run):
    run.facts["loss"] |= {"terms": [{**SUM, "targets": None}], "factor": 1 / 20}
    run.losses(*(2.3 + run.random.normal(0, 0.03, 160)))
    assert run.evaluate("StuckLoss") == []


def test_two_classes_may_stay_at_chance_for_longer(run):
    run.facts["loss"]["terms"] = [{**TERM, "classes": 2}]
    noise = np.random.default_rng(1).normal(0, 0.02, 230)
    run.losses(*(0.7 + noise), *np.linspace(0.69, 0.2, 100))
    assert run.evaluate("StuckLoss") == []


def test_a_loss_that_falls_slowly_passes(run):
    run.losses(*(2.30 - 0.0003 * np.arange(160) + run.random.normal(0, 0.01, 160)))
    assert run.evaluate("StuckLoss") == []


def test_a_loss_of_no_known_criterion_is_not_judged(run):
    run.facts["loss"]["terms"] = []
    run.losses(*np.tile([2.3, 2.31], 80))
    assert run.evaluate("StuckLoss") == []


def validations(run, training, validation):
    for level, value in zip(training, validation, strict=True):
        run.losses(*np.full(5, level))
        run.losses(value, mode=modes.EVAL)
    run.losses(training[-1])
    return run.evaluate("Generalisation")


def test_validation_that_gets_worse_while_training_gets_better_is_overfitting(run):
    found = validations(run, [2, 1, 0.5, 0.3, 0.2, 0.1, 0.05], [1.9, 1.2, 0.9, 1.0, 1.1, 1.3, 1.5])
    assert {(finding.cause, finding.since) for _, finding in found} == {("overfitting", 23)}


def test_validation_that_never_gets_better_is_memorising(run):
    found = validations(run, [2.3, 2, 1.5, 1, 0.5, 0.2, 0.1], [2.3, 2.31, 2.4, 2.7, 3.0, 3.4, 3.9])
    assert {(finding.cause, finding.since) for _, finding in found} == {("memorising", 0)}


def test_validation_that_wobbles_passes(run):
    found = validations(run, [2, 1, 0.5, 0.3, 0.2, 0.15, 0.1], [1.9, 1.2, 0.5, 0.54, 0.49, 0.55, 0.53])
    assert found == []


def test_a_wobble_at_the_floor_of_the_validation_passes(run):
    """A fifth above its best, which is a hundredth of what the training has won."""
    found = validations(
        run,
        [2, 1, 0.1, 0.05, 0.04, 0.03, 0.02],
        [1.5, 0.9, 0.05, 0.06, 0.061, 0.06, 0.062],
    )
    assert found == []


def test_generalisation_is_not_checked_without_a_validation(run):
    run.write(steps=3)
    run.hook.close()
    trial = create_trial(run.place)
    rule = CATALOG["Generalisation"].load()(trial)
    rule.invoke(2)
    assert rule.looked is False
    assert "validation" in rule.not_checked


def test_labels_of_nearly_one_class_are_found_if_nothing_more_is_learnt(run):
    run.facts["loss"]["terms"] = [{**TERM, "classes": 2, "largest_class": 0, "largest_share": 0.99}]
    run.losses(*np.linspace(0.6, 0.06, 100), *np.full(80, 0.06))
    found = run.evaluate("LabelBalance")
    assert {finding.since for _, finding in found} == {0}
    assert found[0][1].value == pytest.approx(0.99)


def test_a_rare_class_that_is_learnt_passes(run):
    run.facts["loss"]["terms"] = [{**TERM, "classes": 2, "largest_class": 0, "largest_share": 0.99}]
    run.losses(*np.geomspace(0.6, 0.01, 160))
    assert run.evaluate("LabelBalance") == []


def test_micro_batches_that_are_added_up_are_found(run):
    run.facts["backward_passes"] = 4
    found = run.write(steps=3).evaluate("AccumulationScale")
    assert [(step, finding.since) for step, finding in found] == [(1, 0), (2, 0)]


@pytest.mark.parametrize("fact", ["reset_between_passes", "passes_share_graph"])
def test_passes_that_are_no_micro_batches_need_no_mean(run, fact):
    run.facts |= {"backward_passes": 4, fact: True}
    assert run.write(steps=3).evaluate("AccumulationScale") == []


def test_micro_batches_that_are_averaged_pass(run):
    run.facts["backward_passes"] = 4
    run.facts["loss"]["factor"] = 0.25
    assert run.write(steps=3).evaluate("AccumulationScale") == []


def test_a_sum_that_is_divided_by_its_labels_is_not_divided_twice(run):
    run.facts["backward_passes"] = 4
    run.facts["loss"] |= {"terms": [SUM], "factor": 1 / 16}  # labels of four batches, and 4 * 4 by chance
    assert run.write(steps=3).evaluate("AccumulationScale") == []


def test_a_value_out_of_the_past_of_its_tensor_is_found(run):
    run.write(steps=10)
    run.kinds["gradients"]["gradient/Net_2.weight"][3, 5] = 100.0
    run.write()
    run.write(steps=2)
    ((step, finding),) = run.evaluate("ElementCorruption")
    assert (step, finding.since, finding.tensor) == (10, 10, "gradient/Net_2.weight")


def test_values_that_become_tiny_at_different_speeds_pass(run):
    run.write(steps=12)
    gradient = run.kinds["gradients"]["gradient/Net_2.weight"]
    gradient *= 1e-30
    gradient[3, 4] = 1e-6
    assert run.write().evaluate("ElementCorruption") == []


def test_a_gradient_that_grows_as_a_whole_passes(run):
    run.write(steps=10)
    for gradient in run.kinds["gradients"].values():
        gradient *= 1000
    assert run.write().evaluate("ElementCorruption") == []


def test_a_loss_scale_that_collapses_is_found(run):
    run.facts["optimizer_steps"] = False
    for step in range(9):
        run.facts["loss_scale"] = 2.0 ** (16 - step)
        run.write()
    found = run.evaluate("LossScale")
    assert found[0][0] >= 6
    assert {finding.since for _, finding in found} == {1}


def test_a_loss_scale_that_finds_its_level_passes(run):
    for step in range(9):
        run.facts["loss_scale"] = 2.0 ** max(16 - step, 12)
        run.facts["optimizer_steps"] = step >= 4
        run.write()
    assert run.evaluate("LossScale") == []


def test_a_layer_that_autocast_misses_is_found(run):
    for name in ("0_output_0", "4_output_0"):
        run.kinds["outputs"][name] = run.kinds["outputs"][name].astype(np.float16)
    ((_, finding),) = run.write().evaluate("ComputePrecision")
    assert (finding.tensor, finding.value, finding.threshold) == (
        "2_output_0",
        "float32",
        "float16",
    )


def test_a_last_layer_in_full_precision_passes(run):
    for name in ("0_output_0", "2_output_0"):
        run.kinds["outputs"][name] = run.kinds["outputs"][name].astype(np.float16)
    assert run.write().evaluate("ComputePrecision") == []


def test_a_nan_is_found_with_the_step_of_the_loss(run):
    run.write(steps=3)
    found = run.losses(float("nan")).evaluate("NonFiniteValues")
    assert [(finding.tensor, finding.since) for _, finding in found] == [("loss", 3)]


def test_outputs_that_explode_before_anything_is_trained_are_a_bad_start(run):
    run.kinds["outputs"]["4_output_0"] *= 1000
    ((step, finding),) = run.write().evaluate("NonFiniteValues")
    assert (step, finding.tensor, finding.cause) == (0, "4_output_0", "bad initialisation")


def test_infinity_in_a_mask_passes(run):
    run.kinds["outputs"]["2_output_0"][0, 0] = -np.inf
    assert run.write().evaluate("NonFiniteValues") == []


def test_a_gradient_that_throws_its_weights_away_is_found(run):
    run.write()
    run.kinds["gradients"]["gradient/Net_2.weight"][:] = 20.0
    run.kinds["updates"]["update/Net_2.weight"][:] = 0.5
    ((step, finding),) = run.write().evaluate("NonFiniteValues")
    assert (step, finding.tensor, finding.cause) == (1, "gradient/Net_2.weight", "exploding")


def test_gradients_that_vanish_are_found_at_the_third_step(run):
    for _ in range(4):
        run.kinds["gradients"]["gradient/Net_0.weight"] *= 1e-7
        run.write()
    found = run.evaluate("GradientFlow")
    assert [(step, finding.tensor, finding.since) for step, finding in found] == [
        (2, "Net_0.weight", 0),
        (3, "Net_0.weight", 0),
    ]


def test_a_gradient_of_zero_does_not_vanish(run):
    for _ in range(4):
        run.kinds["gradients"]["gradient/Net_0.weight"][:] = 0
        run.write()
    assert run.evaluate("GradientFlow") == []


def test_dead_rectifiers_are_found_at_the_third_step(run):
    for _ in range(3):
        run.kinds["outputs"]["1_output_0"][:] = 0
        run.write()
    ((step, finding),) = run.evaluate("DeadUnits")
    assert (step, finding.tensor, finding.since) == (2, "1_output_0", 0)


def test_saturated_units_are_found_at_the_third_step(run):
    for _ in range(3):
        run.kinds["outputs"]["3_output_0"] = np.sign(run.kinds["outputs"]["3_output_0"])
        run.write()
    ((step, finding),) = run.evaluate("SaturatedUnits")
    assert (step, finding.tensor, finding.since) == (2, "3_output_0", 0)


def test_an_output_that_is_the_same_for_all_rows_is_found(run):
    for _ in range(3):
        run.kinds["outputs"]["Net_output_0"] = np.tile(run.normal(1, 10), (32, 1))
        run.write()
    ((step, finding),) = run.evaluate("ConstantOutput")
    assert (step, finding.tensor, finding.since) == (2, "Net_output_0", 0)


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """The place of a run that many rules find something in."""
    run = Run(tmp_path_factory.mktemp("troubled") / "run")
    losses = [*np.linspace(2.3, 1.5, 25), 40.0]
    for step, loss in enumerate(losses):
        run.loss = loss
        run.rate = 0.1 if step < 24 else 6.0
        if step > 2:
            run.kinds["outputs"]["1_output_0"][:] = 0
        if step == 25:
            run.kinds["gradients"]["gradient/Net_2.weight"][3, 5] = 100.0
        run.write()
    run.hook.close()
    return run.place


@pytest.mark.parametrize("name", CATALOG)
def test_a_rule_continues_in_another_process_where_it_stopped(troubled, name):
    whole = findings_of(CATALOG[name].load()(create_trial(troubled)), list(range(26)))
    parts = []
    state = None
    for step in range(26):  # each step in a process of its own
        rule = CATALOG[name].load()(create_trial(troubled))
        if state is not None:
            restore_state(rule, state)
        parts += findings_of(rule, [step])
        saved = save_state(rule)
        assert saved.left_out == ()
        state = bytes(saved)
    assert parts == whole


@pytest.mark.parametrize("name", CATALOG)
def test_a_run_of_unknown_tensors_is_not_checked(tmp_path, name):
    import smdebug

    with smdebug.Hook(str(tmp_path / "old"), save_all=True) as hook, hook.step():
        hook.record("something", np.ones(3, np.float32))
    trial = create_trial(str(tmp_path / "old"))
    rule = CATALOG[name].load()(trial)
    rule.invoke(0)
    assert rule.looked is False
    assert "neither statistics and facts of its steps, nor weights" in rule.not_checked
