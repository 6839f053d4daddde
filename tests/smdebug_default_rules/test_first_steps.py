"""Rules that judge the facts and statistics of a step alone: what they find, and what they let pass."""

import numpy as np
import pytest

from smdebug import modes
from smdebug.diagnosis.causes import CAUSES
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_runs import PARAMETERS, TERM


@pytest.mark.parametrize("rule", CATALOG)
def test_a_healthy_run_passes(run, rule):
    for step in range(30):
        run.loss = 2.3 * 0.95**step
        run.write()
    assert run.evaluate(rule) == []


@pytest.mark.parametrize("entry", CATALOG.values(), ids=CATALOG)
def test_a_rule_names_causes_of_the_product_and_says_what_to_try(entry):
    rule = entry.load()
    assert rule.cause in CAUSES
    assert set(rule.advice) <= set(CAUSES)
    assert all(1 <= len(sentences) <= 3 for sentences in rule.advice.values())
    assert rule.cause in rule.advice


def test_gradients_that_nobody_resets_are_found_from_the_second_step_on(run):
    run.write()
    run.facts["gradients_were_reset"] = False
    run.write(steps=2)
    found = run.evaluate("GradientsNotReset")
    assert [(step, finding.since) for step, finding in found] == [(1, 1), (2, 1)]


def test_a_parameter_that_stays_bit_equal_with_a_gradient_is_found(run):
    run.write()
    run.kinds["updates"]["update/Net_2.weight"][:] = 0
    run.write()
    ((step, finding),) = run.evaluate("LostUpdates")
    assert (step, finding.tensor, finding.cause, finding.since) == (
        1,
        "Net_2.weight",
        "lost update",
        1,
    )


@pytest.mark.parametrize("reason", ["frozen", "no rate", "rounded away", "no step"])
def test_a_parameter_may_stay_bit_equal_for_a_reason(run, reason):
    run.kinds["updates"]["update/Net_2.weight"][:] = 0
    if reason == "frozen":
        run.lasting["frozen"] = ["Net_2.weight"]
    elif reason == "no rate":
        run.rate = 0.0
    elif reason == "rounded away":
        run.kinds["gradients"]["gradient/Net_2.weight"] *= 1e-7
    else:
        run.facts["optimizer_steps"] = False
    assert run.write().evaluate("LostUpdates") == []


def in_16_bits(run, dtype):
    for name, values in run.kinds["parameters"].items():
        run.kinds["parameters"][name] = (values + 1).astype(dtype)


@pytest.mark.parametrize(
    ("layer", "is_found"),
    [("0", False), ("2", True), ("4", False)],
    ids=["first", "between", "last"],
)
def test_where_updates_are_differences_only_a_layer_between_two_that_move_is_found(run, layer, is_found):
    """Which parameters are frozen is not known there, and nobody freezes the middle of a model."""
    run.lasting["updates_are_differences"] = True
    for kind in run.kinds.values():
        for name in [name for name in kind if f"Net_{layer}.weight" in name]:
            kind[name] = kind[name][:8]
    run.kinds["updates"][f"update/Net_{layer}.weight"][:] = 0
    found = [finding.tensor for _, finding in run.write().evaluate("LostUpdates")]
    assert found == ([f"Net_{layer}.weight"] if is_found else [])


def test_an_update_below_the_spacing_of_16_bits_may_be_rounded_away(run):
    """It would be a hundredth of the values, of which bfloat16 has 128 between 1 and 2."""
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    run.kinds["updates"]["update/Net_2.bias"][:] = 0
    run.kinds["gradients"]["gradient/Net_2.bias"] *= 10
    in_16_bits(run, bfloat16)
    assert run.write().evaluate("LostUpdates") == []


def test_the_same_update_is_lost_in_32_bits(run):
    run.kinds["updates"]["update/Net_2.bias"][:] = 0
    run.kinds["gradients"]["gradient/Net_2.bias"] *= 10
    in_16_bits(run, np.float32)
    ((_, finding),) = run.write().evaluate("LostUpdates")
    assert finding.tensor == "Net_2.bias"


def standing_still(run, steps):
    for _ in range(steps):
        for update in run.kinds["updates"].values():
            update[:] = 0
        run.write()
    return run


def test_a_training_that_moves_nothing_is_found_after_three_steps(run):
    ((step, finding),) = standing_still(run, 3).evaluate("LostUpdates")
    assert (step, finding.since, finding.value) == (2, 0, 0)
    assert "No step of the optimizer changes a parameter" in finding.message
    assert "16 bits" not in finding.message


@pytest.mark.parametrize(
    ("size", "optimizer", "is_found"),
    [(1e-5, "SGD", False), (1e-14, "Adam", False), (1e-6, "Adam", True), (0.01, "SGD", True)],
)
def test_a_loss_that_is_nearly_zero_moves_nothing(run, size, optimizer, is_found):
    """Its gradients are too small for 32 bits: everything was learnt."""
    run.lasting["optimizers"][0]["class"] = optimizer
    for _ in range(4):
        for name, value in run.kinds["gradients"].items():
            run.kinds["gradients"][name] = np.sign(value) * np.float32(size)
        for name, value in run.kinds["parameters"].items():
            run.kinds["parameters"][name] = np.sign(value) + value
        standing_still(run, 1)
    assert bool(run.evaluate("LostUpdates")) == is_found


def test_steps_at_a_rate_of_zero_move_nothing(run):
    run.rate = 0.0
    assert standing_still(run, 4).evaluate("LostUpdates") == []


def test_gradients_that_are_cleared_before_the_step_are_found(run):
    for _ in range(3):
        run.kinds["gradients"].clear()
        standing_still(run, 1)
    ((step, finding),) = run.evaluate("LostUpdates")
    assert (step, finding.since) == (2, 0)
    assert "cleared between" in finding.message


def test_gradients_of_zero_were_not_cleared(run):
    for _ in range(3):
        for gradient in run.kinds["gradients"].values():
            gradient[:] = 0
        standing_still(run, 1)
    assert run.evaluate("LostUpdates") == []


def test_a_training_that_moves_again_has_lost_nothing(run):
    standing_still(run, 2).write()
    assert standing_still(run, 2).evaluate("LostUpdates") == []


def test_an_optimizer_of_other_parameters_is_found(run):
    run.lasting["optimizers"] = [{"class": "Adam", "groups": [{"parameters": [], "others": 6}]}]
    for update in run.kinds["updates"].values():
        update[:] = 0
    ((_step, finding),) = run.write().evaluate("LostUpdates")
    assert "owns none" in finding.message
    assert finding.tensor in PARAMETERS


def test_a_layer_that_stops_getting_gradients_is_found(run):
    run.write(steps=6)
    for name in ("gradient/Net_2.weight", "gradient/Net_2.bias"):
        del run.kinds["gradients"][name]
    run.kinds["updates"]["update/Net_2.weight"][:] = 0
    run.kinds["updates"]["update/Net_2.bias"][:] = 0
    found = run.write().evaluate("LostUpdates")
    assert {finding.tensor for _, finding in found} == {"Net_2.weight", "Net_2.bias"}
    assert {finding.since for _, finding in found} == {6}


def test_a_layer_that_a_step_leaves_out_has_not_stopped(run):
    run.write(steps=6)
    for name in ("gradient/Net_2.weight", "gradient/Net_2.bias"):
        del run.kinds["gradients"][name]
    del run.kinds["outputs"]["2_output_0"]
    assert run.write().evaluate("LostUpdates") == []


def test_layers_before_a_cut_are_found_and_side_branches_are_not(run):
    for _ in range(3):
        del run.kinds["gradients"]["gradient/Net_0.weight"]
        run.kinds["updates"]["update/Net_0.weight"][:] = 0
        run.write()
    found = run.evaluate("UnreachedParameters")
    assert {finding.tensor for _, finding in found} == {"Net_0.weight"}
    assert {finding.since for _, finding in found} == {0}


def test_an_unused_layer_in_the_middle_passes(run):
    for _ in range(3):
        del run.kinds["gradients"]["gradient/Net_2.weight"]
        run.write()
    assert run.evaluate("UnreachedParameters") == []


@pytest.mark.parametrize(("rate", "skipped"), [(0.0, False), (0.1, True)])
def test_steps_that_change_nothing_say_nothing_of_layers_without_a_gradient(run, rate, skipped):
    for step in range(4):
        is_first_change = step == 3  # from the next step on what was zero lets the gradient pass
        run.rate, run.facts["update_skipped"] = (0.1, False) if is_first_change else (rate, skipped)
        del run.kinds["gradients"]["gradient/Net_0.weight"]
        run.kinds["updates"]["update/Net_0.weight"][:] = 0
        run.write()
    assert run.write(steps=3).evaluate("UnreachedParameters") == []


def test_a_layer_that_the_optimizer_lacks_is_found(run):
    run.lasting["optimizers"][0]["groups"][0]["parameters"] = list(PARAMETERS[2:])
    found = run.write(steps=2).evaluate("UnreachedParameters")
    assert [finding.tensor for _, finding in found] == ["Net_0.weight"]


def test_training_the_head_alone_passes(run):
    run.lasting["optimizers"][0]["groups"][0]["parameters"] = list(PARAMETERS[4:])
    assert run.write(steps=3).evaluate("UnreachedParameters") == []


def evaluation(run, **facts):
    run.lasting["modules"] = [*run.lasting["modules"], ["norm", "BatchNorm1d", True]]
    run.facts = {"training": False, "gradients": False, "other_mode": [], **facts}
    return run.write(modes.EVAL)


def test_an_evaluation_in_training_mode_is_found(run):
    ((_step, finding),) = evaluation(run, training=True).evaluate("ModuleModes")
    assert (finding.tensor, finding.cause) == ("norm", "mode mismatch")


def test_a_pass_without_a_loss_may_be_in_training_mode(run):
    run.loss = None  # such as one that renews the statistics of a batch normalisation
    assert evaluation(run, training=True).evaluate("ModuleModes") == []


def test_an_evaluation_in_evaluation_mode_passes(run):
    assert evaluation(run).evaluate("ModuleModes") == []


def test_dropout_in_an_evaluation_is_found(run):
    ((_step, finding),) = evaluation(run, dropout_in_evaluation=0.5).evaluate("ModuleModes")
    assert "0.5" in finding.message


def test_a_training_in_evaluation_mode_is_found(run):
    run.lasting["modules"] = [*run.lasting["modules"], ["drop", "Dropout", True]]
    run.facts["training"] = False
    ((_step, finding),) = run.write().evaluate("ModuleModes")
    assert finding.tensor == "drop"


def test_equal_batches_are_found_and_a_whole_data_set_passes(run, tmp_path):
    batch = run.normal(32, 8)
    for _ in range(3):
        run.kinds["inputs"]["Net_input_0"] = batch
        run.write()
    found = run.evaluate("RepeatedInput")
    assert [(step, finding.since, finding.tensor) for step, finding in found] == [
        (1, 1, "Net_input_0"),
        (2, 1, "Net_input_0"),
    ]


def test_full_batches_pass(run):
    batch = run.normal(150, 8)
    run.facts.update(shapes=[[150, 8]], distinct_rows=150)
    for _ in range(3):
        run.kinds["inputs"]["Net_input_0"] = batch
        run.write()
    assert run.evaluate("RepeatedInput") == []


@pytest.mark.parametrize(
    ("rows", "features", "largest_share"),
    [(512, 8, 0.125), (64, 2, 0.125), (64, 8, 0.1)],
    ids=["too many for a batch", "points of a plane", "classes of the same size"],
)
def test_whole_data_sets_of_a_power_of_two_of_rows_pass(run, rows, features, largest_share):
    batch = run.normal(rows, features)
    run.facts.update(shapes=[[rows, features]], distinct_rows=rows)
    run.facts["loss"]["terms"][0].update(largest_share=largest_share)
    for _ in range(3):
        run.kinds["inputs"]["Net_input_0"] = batch
        run.write()
    assert run.evaluate("RepeatedInput") == []


def test_copies_of_rows_are_found_after_three_batches(run):
    run.facts["distinct_rows"] = 8
    found = run.write(steps=3).evaluate("RepeatedInput")
    assert [(step, finding.value, finding.since) for step, finding in found] == [(2, 0.25, 0)]


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        ({"terms": []}, False),
        ({"terms": [{"criterion": "mean squared error", "rows": 32}]}, False),  # beside the gain of a policy
        ({"terms": [{"criterion": "mean squared error", "rows": 32}], "value": 0.3}, True),
        ({"terms": [TERM]}, True),  # beside a penalty
    ],
)
def test_copies_pass_where_a_policy_may_try_several_actions_in_a_state(run, loss, found):
    run.facts["distinct_rows"] = 8
    run.facts["loss"] = {"factor": 1.0, "broadcast": None, **loss}
    assert bool(run.write(steps=4).evaluate("RepeatedInput")) == found


def test_rows_of_few_values_may_be_equal(run):
    run.facts["distinct_rows"] = 8
    for _ in range(4):
        run.kinds["inputs"]["Net_input_0"] = np.sign(run.normal(32, 8))
        run.write()
    assert run.evaluate("RepeatedInput") == []


def test_inputs_in_the_thousands_are_found_unless_the_model_scales_them(run):
    run.kinds["inputs"]["Net_input_0"] *= 3000
    run.kinds["outputs"]["0_output_0"] *= 1200
    ((_step, finding),) = run.write().evaluate("InputScale")
    assert finding.tensor == "Net_input_0"
    assert finding.since == 0


def test_inputs_that_the_model_scales_itself_pass(run):
    run.kinds["inputs"]["Net_input_0"] *= 3000
    assert run.write().evaluate("InputScale") == []


def tokens(run, share):
    ids = run.random.integers(1, 40, (64, 24))
    ids[:, : int(share * 24)] = 0
    run.kinds["inputs"] = {"Net_input_0": ids}
    return run


def test_tokens_that_are_nearly_all_padding_are_found(run):
    ((_step, finding),) = tokens(run, 0.9).write().evaluate("InputPadding")
    assert finding.tensor == "Net_input_0"
    assert finding.value == pytest.approx(0.875)


def test_padding_with_a_mask_or_of_half_the_tokens_passes(run):
    tokens(run, 0.5).write()
    tokens(run, 0.9)
    run.kinds["inputs"]["Net_input_1"] = run.kinds["inputs"]["Net_input_0"] > 0
    assert run.write().evaluate("InputPadding") == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"terms": [{**TERM, "given": "softmax"}]}, "got a softmax"),
        ({"terms": [{**TERM, "classes": 1}]}, "single class"),
        ({"broadcast": [32, 32]}, "broadcast to 32 x 32"),
    ],
)
def test_a_loss_that_is_given_the_wrong_thing_is_found(run, changes, words):
    run.facts["loss"].update(changes)
    ((_step, finding),) = run.write().evaluate("LossInput")
    assert words in finding.message
    assert finding.cause == "loss input"


def test_log_softmax_before_its_criterion_passes(run):
    run.facts["loss"]["terms"] = [{**TERM, "given": "log-softmax"}]
    assert run.write().evaluate("LossInput") == []


def test_a_batch_that_collapses_to_a_row_is_found(run):
    run.facts["loss"]["terms"] = [{**TERM, "rows": 1}]
    found = run.write(steps=2).evaluate("BatchShape")
    assert [finding.since for _, finding in found] == [0]


def test_weights_that_start_alike_or_far_too_large_are_found(run):
    run.kinds["parameters"]["Net_0.weight"][:] = 0.01
    run.kinds["parameters"]["Net_2.weight"] *= 100
    found = run.write(steps=2).evaluate("InitialWeights")
    assert [(step, finding.tensor) for step, finding in found] == [
        (0, "Net_0.weight"),
        (0, "Net_2.weight"),
    ]


def test_weights_that_start_at_zero_pass(run):
    run.kinds["parameters"]["Net_4.weight"][:] = 0
    assert run.write().evaluate("InitialWeights") == []
