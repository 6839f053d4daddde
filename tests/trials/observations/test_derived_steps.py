"""What rules see of a run whose tensors somebody chose: what the default plan would have observed of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.files.names import OBSERVATIONS
from smdebug.rules import Rule
from smdebug.runs import diagnose
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.runs.opening import open_run
from smdebug.trials import create_trial
from smdebug.trials.observations import derived_run, derived_step
from smdebug.trials.observations.saved_kinds import SavedKinds, parameter_of, plain_name
from tests.cli.conftest import flip_a_bit
from tests.rules.made_runs import MadeRun

RUNS = Path(__file__).parents[2] / "golden" / "runs"
KINDS = ("parameters", "gradients", "inputs", "outputs")


def tensors(step):
    """One step of a small network; the generator makes each step anew."""
    random = np.random.default_rng(step)
    return {
        "Net_input_0": random.normal(size=(8, 4)).astype(np.float32),
        "Net_a.weight": np.full((6, 4), 0.5, np.float32) + np.float32(step) / 64,
        "Net_a.bias": random.normal(size=6),
        "a_output_0": random.normal(size=(8, 6)).astype(np.float16),
        "relu_output_0": np.maximum(random.normal(size=(8, 6)), 0).astype(np.float32),
        "Net_output_0": random.normal(size=(8, 2)).astype(np.float32),
        "gradient/Net_a.weight": random.normal(size=(6, 4)).astype(np.float32),
        "gradient/Net_a.bias": random.normal(size=6),
    }


def train(place, steps=4, between=1, **options):
    with smdebug.Hook(str(place), **options) as hook:
        hook.set_mode(modes.TRAIN)
        for step in range(steps * between):
            with hook.step():
                for name, value in tensors(step).items():
                    hook.record(name, value)
                hook.record("loss", np.float32(2.0 / (step + 1)))
    return create_trial(str(place))


def chosen(place, steps=4, between=1, **options):
    """The same training, with all its tensors saved."""
    config = smdebug.SaveConfig(save_interval=between)
    return train(place, steps, between, save_all=True, save_config=config, **options)


def test_statistics_and_samples_are_those_that_the_default_plan_observes(tmp_path):
    observed, derived = train(tmp_path / "observed"), chosen(tmp_path / "chosen")
    assert not derived.observations.exist
    for step in range(4):
        expected, found = observed.observations.at(step), derived.observations.judged(step)
        for kind in KINDS:
            theirs, ours = expected.statistics(kind), found.statistics(kind)
            assert set(ours.names) == set(theirs.names), kind
            for name in theirs.names:
                assert ours.row(name) == pytest.approx(theirs.row(name), rel=1e-6, nan_ok=True), name
                np.testing.assert_array_equal(found.samples(kind)[name], expected.samples(kind)[name])
        for kind in ("parameters", "inputs"):
            assert found.digests(kind) == expected.digests(kind)
        assert found.facts["shapes"] == [[8, 4]]
        assert found.series("loss").tolist() == expected.series("loss").tolist()
        assert (found.mode, found.step) == (expected.mode, step)


def test_updates_are_what_changed_since_the_saved_step_before(tmp_path):
    trial = chosen(tmp_path / "run", steps=3, between=10)
    first, second = trial.observations.judged(0), trial.observations.judged(10)
    assert first.statistics("updates") is None
    assert "optimizer_steps" not in first.facts
    row = second.statistics("updates").row("update/Net_a.weight")
    assert (row["min"], row["max"]) == (10 / 64, 10 / 64)
    assert (second.facts["optimizer_steps"], second.facts["steps_apart"]) == (1, 10)


def test_an_evaluation_that_begins_in_the_middle_sees_the_same(tmp_path):
    place = tmp_path / "run"
    whole, later = chosen(place), create_trial(str(place))
    for step in range(3):
        whole.observations.judged(step).statistics("updates")
    expected, found = whole.observations.judged(3), later.observations.judged(3)
    assert found.facts == expected.facts
    np.testing.assert_array_equal(found.statistics("updates").values, expected.statistics("updates").values)


def test_of_parameters_that_are_too_large_to_keep_there_are_no_updates(tmp_path, monkeypatch):
    for module in (derived_step, derived_run):
        monkeypatch.setattr(module, "KEPT_BYTES", 100)
    trial = chosen(tmp_path / "run")
    for step in range(4):
        seen = trial.observations.judged(step)
        assert seen.statistics("updates") is None
        assert seen.statistics("parameters").names == ["Net_a.weight", "Net_a.bias"]


def test_batches_of_tensors_give_the_same_rows(tmp_path, monkeypatch):
    whole = chosen(tmp_path / "run").observations.judged(1).statistics("outputs").values
    monkeypatch.setattr(derived_step, "BATCH_BYTES", 1)
    apart = create_trial(str(tmp_path / "run")).observations.judged(1).statistics("outputs").values
    np.testing.assert_array_equal(apart, whole)


def test_facts_name_the_parameters_with_gradients_and_the_layers(tmp_path):
    trial = chosen(tmp_path / "run")
    facts = trial.observations.judged(1).facts
    assert facts["gradient_names"] == {name: f"gradient/{name}" for name in ("Net_a.weight", "Net_a.bias")}
    assert facts["modules"] == [["Net", "", False], ["a", "", False], ["relu", "ReLU", False]]
    assert trial.observations.judged(1).layout is trial.observations.judged(2).layout


def test_a_run_of_the_default_plan_is_seen_as_it_was_observed(tmp_path):
    trial = train(tmp_path / "run")
    assert trial.observations.judged(2) is trial.observations.at(2)


@pytest.mark.parametrize(
    ("gradient", "parameter"),
    [
        ("gradient/Net_fc1.weight", "Net_fc1.weight"),
        ("gradient/dense/kernel:0", "dense/kernel:0"),
        ("gradients/dense/kernelGrad", "dense/weights/dense/kernel:0"),
        ("gradients/block/dense/biasGrad_1", "block/weights/block/dense/bias:0"),
    ],
)
def test_a_gradient_belongs_to_its_parameter(gradient, parameter):
    assert parameter_of(gradient) == plain_name(parameter)
    kinds = SavedKinds({}).sort([parameter, gradient, f"{OBSERVATIONS}facts"]).kinds
    assert kinds == {"parameters": (parameter,), "gradients": (gradient,)}


def test_collections_say_what_names_do_not():
    members = {
        "weights": {"w"},
        "gradients": {"w_grad"},
        "losses": {"criterion"},
        "metrics": {"accuracy"},
        "inputs": {"images"},
        "outputs": {"logits"},
        "relu_output": {"act_output_0"},
        "predictions": {"predictions"},
    }
    names = [*(name for each in members.values() for name in each), "scalar/mine", "unknown", "dense_input_0"]
    kinds = SavedKinds(members)
    found = kinds.sort(names)
    assert found.kinds == {
        "parameters": ("w",),
        "gradients": ("w_grad",),
        "inputs": ("images",),
        "outputs": ("logits", "act_output_0"),
    }
    assert found.scalars == ("criterion", "accuracy", "scalar/mine")
    assert [kinds.layer_class(name) for name in ("act_output_0", "3_tanh_output_0", "logits")] == [
        "ReLU",
        "Tanh",
        "",
    ]


class AllStatistics(Rule):
    """Notes the statistics of each step, of all kinds together."""

    def invoke_at_step(self, step):
        self.found = self.statistics(step)
        return False


@pytest.mark.parametrize("make", [train, chosen])
def test_a_rule_of_yours_gets_all_statistics_of_a_step_as_one_matrix(tmp_path, make):
    trial = make(tmp_path / "run")
    rule = AllStatistics(trial)
    rule.invoke(1)
    seen = trial.observations.judged(1)
    expected = {
        kind: seen.statistics(kind).names for kind in (*KINDS, "updates") if seen.statistics(kind) is not None
    }
    assert {kind: rule.found.of(kind).names for kind in dict.fromkeys(rule.found.kinds)} == expected
    assert rule.found.row("a_output_0") == pytest.approx(seen.statistics("outputs").row("a_output_0"))


def save_scalars(place, rows):
    run = MadeRun(place)
    for step, values in enumerate(rows):
        run.save(step, {name: np.array(value, np.float32) for name, value in values.items()})
    run.end()
    return create_trial(str(place))


def test_the_loss_is_the_same_one_at_all_steps(tmp_path):
    rows = [{"aux_loss": 5.0, "loss": 1.0}, {"aux_loss": 4.0}, {"aux_loss": 3.0, "loss": 0.5}]
    trial = save_scalars(tmp_path / "run", rows)
    found = [trial.observations.judged(step).series("loss")[:, 3].tolist() for step in range(3)]
    assert found == [[1.0], [], [0.5]]


def test_a_loss_of_several_values_is_their_mean_and_text_is_none(tmp_path):
    trial = save_scalars(tmp_path / "run", [{"loss": [1.0, 3.0]}])
    assert trial.observations.judged(0).series("loss")[:, 3].tolist() == [2.0]


@pytest.mark.parametrize(("make", "looked"), [(chosen, 5), (train, 12)])
def test_default_rules_take_evenly_spread_steps_where_tensors_have_to_be_read(tmp_path, make, looked):
    results = evaluate(make(tmp_path / "run", steps=20), most_steps=5)
    (found,) = (result for result in results if result.rule == "NonFiniteValues")
    assert found.looked == looked


def deep_network(place, shrinks):
    """Save the weights and gradients of six layers, as somebody chose them."""
    names = ["weights", "gradients", "losses"]
    config = smdebug.SaveConfig(save_interval=10)
    random = np.random.default_rng(0)
    with smdebug.Hook(str(place), include_collections=names, save_config=config) as hook:
        for step in range(60):
            with hook.step():
                for layer in range(6):
                    value = random.normal(size=(8, 8)) / 8**0.5
                    hook.record(f"Net_{layer}.weight", value)
                    times = 1e-3 ** (5 - layer) if shrinks else 1
                    hook.record(f"gradient/Net_{layer}.weight", value * times)
                hook.record("loss", np.float32(1 / (step + 1)))


def test_a_fault_is_named_from_chosen_tensors_and_its_healthy_twin_draws_none(tmp_path):
    deep_network(tmp_path / "faulty", shrinks=True)
    deep_network(tmp_path / "healthy", shrinks=False)
    (issue,) = diagnose(tmp_path / "faulty").issues
    assert (issue.cause, issue.since) == ("vanishing gradient", 0)
    assert "Net_0.weight" in issue.where
    healthy = diagnose(tmp_path / "healthy")
    assert healthy.issues == ()
    assert {"GradientFlow", "NonFiniteValues"} <= set(healthy.passed)
    assert "LossScale" in healthy.not_checked
    assert str(healthy).endswith("lets the default rules check the rest.")


def test_gradients_that_a_scaler_may_skip_are_no_explosion_until_the_weights_are(tmp_path):
    run = MadeRun(tmp_path / "run")
    for step in range(6):
        gradient = np.full((4, 4), np.inf if step in (0, 4) else 1.0, np.float32)
        weight = np.full((4, 4), np.nan if step == 5 else 1 + step / 100, np.float32)
        run.save(step, {"fc.weight": weight, "gradient/fc.weight": gradient, "loss": np.ones(1)})
    run.end()
    (issue,) = (issue for issue in diagnose(tmp_path / "run").issues if issue.cause == "exploding")
    assert issue.since == 5


def test_a_damaged_tensor_costs_its_step_and_is_named(tmp_path):
    run = MadeRun(tmp_path / "run")
    for step in range(0, 60, 10):
        named = {name: np.ones((2, 2)) for name in ("fc.weight", "gradient/fc.weight")}
        run.save(step, {"loss": np.array([2.0 - step / 100], np.float32), **named})
    run.end()
    flip_a_bit(tmp_path / "run")
    found = diagnose(tmp_path / "run")
    assert "NonFiniteValues" in found.passed
    trial = open_run(str(tmp_path / "run"))
    seen = trial.observations.judged(20)
    assert len(seen.series("loss")) == 0
    assert seen.statistics("parameters") is not None
    assert (list(seen.damaged), len(trial.damaged_files)) == (["loss"], 1)


@pytest.mark.parametrize("name", ["pytorch_hook", "single_worker", "two_workers", "xgboost_hook"])
def test_runs_of_the_old_library_are_judged_and_draw_no_alarm(name):
    found = diagnose(RUNS / name)
    assert (found.issues, found.failed) == ((), {})
    assert {"LossSpike", "NonFiniteValues"} <= set(found.passed)
    assert found.derived
