"""What a custom rule reads from an observed run."""

from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Rule, restore_state, save_state
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.runs.left_out import left_out_of
from smdebug.trials import create_trial
from tests.smdebug_default_rules import made_runs
from tests.smdebug_default_rules.made_runs import findings_of
from tests.smdebug_default_rules.made_steps import Steps


class Asking(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.answers = []

    def invoke_at_step(self, step):
        self.answers = [
            self.facts(step)["backward_passes"],
            len(self.statistics(step, "gradients")),
            self.history("gradient/Net_0.weight", "rms").steps,
            list(self.replicas("Net_0.weight")),
        ]
        return False


@pytest.fixture
def trial(run):
    run.write(steps=4)
    run.hook.close()
    return create_trial(run.place)


def test_facts_statistics_and_histories_are_asked_by_step(trial):
    rule = Asking(trial)
    for step in range(3):
        rule.invoke(step)
    assert rule.answers == [1, 6, (0, 1, 2), ["worker_0"]]
    assert len(rule.series("loss")) == 4
    assert rule.series("accuracy") is None
    assert rule.statistics(0, "trees") is None
    assert len(rule.statistics(0)) == 6 + 6 + 6 + 6 + 1


def test_a_history_continues_in_another_process(trial):
    first = Asking(trial)
    first.invoke(0)
    later = Asking(create_trial(trial.path))
    restore_state(later, bytes(save_state(first)))
    later.invoke(1)
    assert later.answers[2] == (0, 1)
    assert later.history("gradient/Net_0.weight", "rms", 1, keep=1).steps == (0, 1)


def test_a_step_that_is_read_twice_is_read_once(trial):
    assert trial.observations.at(2) is trial.observations.at(2)


def test_the_names_of_rows_are_worked_out_once_for_all_steps_of_a_layout(trial):
    first, last = (trial.observations.at(step).statistics("parameters") for step in (0, 3))
    assert first.names is last.names
    assert last.row("Net_0.weight")["count"] == first.row("Net_0.weight")["count"]


def test_what_is_derived_from_the_losses_of_a_step_is_shared(trial):
    from smdebug_default_rules.loss_history import finite_losses, new_losses

    seen = trial.observations.at(1)
    assert finite_losses(seen) is finite_losses(seen)
    assert [*map(list, finite_losses(seen))] == [*map(list, new_losses(seen))]


def test_without_an_evaluated_step_one_has_to_be_named(trial):
    with pytest.raises(SMDebugValueError, match="Name the step"):
        Asking(trial).replicas("Net_0.weight")
    assert list(Asking(trial).replicas("Net_0.weight", 1)) == ["worker_0"]


def damage_gradients_of_step_1(run):
    run.hook.close()
    (file,) = Path(run.place, "events").rglob("*1_worker_0.tfevents")
    content = bytearray(file.read_bytes())
    place = content.index(b"smdebug/statistics/gradients") + 120
    content[place : place + 8] = bytes(8 * [0xFF])
    file.write_bytes(bytes(content))
    return create_trial(run.place)


def test_a_damaged_matrix_is_left_out_and_named(run):
    seen = damage_gradients_of_step_1(run.write(steps=2)).observations.at(1)
    assert seen.statistics("gradients") is None
    assert list(seen.damaged) == ["statistics of gradients"]
    assert np.isfinite(seen.statistics("parameters").column("rms")).all()


def test_a_damaged_part_of_a_step_is_counted_and_its_file_is_named(run):
    trial = damage_gradients_of_step_1(run.write(steps=3))
    results = {result.name: result for result in diagnose(trial).results}
    assert (results["LostUpdates"].looked, results["LostUpdates"].damaged) == (3, 1)
    assert results["LostUpdates"].summary().endswith("1 damaged step left out.")
    (left_out,) = left_out_of(trial)
    assert (left_out.step, left_out.worker) == (1, "worker_0")


def test_a_rule_continues_with_what_is_not_damaged(run):
    from smdebug_default_rules.catalog import CATALOG

    run.facts["gradients_were_reset"] = False
    trial = damage_gradients_of_step_1(run.write(steps=2))
    found = {name for name, entry in CATALOG.items() if findings_of(entry.load()(trial), [1])}
    assert found == {"GradientsNotReset"}


def test_a_rule_that_looked_at_nothing_has_not_passed(run):
    """A run of a framework without layers, inputs and optimizers: only its parameters and loss are known."""
    run.lasting = {}
    run.facts = {"training": True}
    run.kinds = {"parameters": run.kinds["parameters"]}
    for _ in range(4):
        run.kinds = {"parameters": run.kinds["parameters"]}
        run.write()
    run.hook.close()
    found = diagnose(run.place)
    assert found.issues == ()
    assert sorted(found.passed) == [
        "ElementCorruption",
        "LearningRate",
        "LossSpike",
        "NonFiniteValues",
        "ShrunkWeights",
    ]
    assert not [why for why in found.not_checked.values() if "had data for it" in why]
    assert found.not_checked["DeadUnits"] == "no outputs of layers were saved"
    assert found.not_checked["InitialWeights"] == "no trained layer is known to be dense or convolutional"
    assert found.not_checked["ModuleModes"].startswith("no module, such as dropout")
    assert found.not_checked["LeakedLabel"].startswith("the run is not an XGBoost training")


def test_a_first_step_that_was_not_saved_is_named_to_the_end(trial):
    from smdebug_default_rules.catalog import CATALOG

    rule = CATALOG["InitialWeights"].load()(trial)
    for step in (2, 3):
        rule.invoke(step)
        assert rule.looked is False
        assert rule.not_checked.startswith("the first saved step is 2")


def test_too_few_losses_are_named(run):
    run.losses(*[2.3] * 20)
    run.hook.close()
    found = diagnose(run.place)
    assert "too few losses" in found.not_checked["StuckLoss"]


def test_a_last_step_of_scalars_alone_does_not_hide_what_the_others_lack(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook:
        for _ in range(15):
            with hook.step():
                hook.record("loss", 2.3)
                hook.record("0_output_0", np.ones((4, 2), np.float32))
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps()[-1] == 14
    assert trial.observations.facts_of_step(14) == {}
    found = diagnose(trial)
    assert "autocast" in found.not_checked["ComputePrecision"]
    assert found.not_checked["DeadUnits"].startswith("no output of a layer with ReLU")
    assert found.not_checked["GradientFlow"].startswith("no statistics of parameters")


@pytest.mark.parametrize(
    ("rule", "change", "why"),
    [
        ("DeadUnits", lambda run: rename(run, "ReLU", "GELU"), "no output of a layer with ReLU"),
        ("ModuleModes", lambda run: None, "no module, such as dropout"),
        ("RepeatedInput", lambda run: run.facts.pop("shapes", None), "the shapes of the model's inputs"),
        ("ConstantOutput", lambda run: few_rows(run), "the model's output has too few rows"),
        ("GradientFlow", lambda run: keep_weights(run, 2), "fewer than 3 layers have weights"),
        ("ShrunkWeights", lambda run: keep_weights(run, 1), "fewer than 2 layers have weights"),
        ("InitialWeights", lambda run: rename(run, "Linear", "Own"), "no trained layer is known"),
        (
            "AccumulationScale",
            lambda run: run.lasting.update(optimizers=2 * run.lasting["optimizers"]),
            "the backward passes do not belong to the steps of one optimizer",
        ),
    ],
)
def test_a_rule_that_cannot_find_anything_in_such_a_model_has_not_passed(rule, change, why):
    """A dropout is in a model where ModuleModes passes; the others pass on the healthy run."""
    healthy, steps = Steps(), Steps()
    if rule == "ModuleModes":
        healthy.lasting["modules"] = [*made_runs.MODULES, ["5", "Dropout", True]]
    for run in (healthy, steps):
        for _ in range(6):
            if run is steps:
                change(run)
            run.write()
    assert healthy.evaluations(rule)[-1][1:] == ([], None if rule != "InitialWeights" else "")
    assert [found for _, found, _ in steps.evaluations(rule)] == [[]] * 6
    assert steps.evaluations(rule)[-1][2].startswith(why)


def rename(run, module, other):
    """Give the modules of one class another."""
    run.lasting["modules"] = [[n, other if kind == module else kind, d] for n, kind, d in made_runs.MODULES]


def few_rows(run):
    """Make the output one of two rows."""
    run.kinds["outputs"]["Net_output_0"] = run.kinds["outputs"]["Net_output_0"][:2]


def keep_weights(run, count):
    """Leave the model so many layers."""
    for kind in ("parameters", "gradients", "updates"):
        run.kinds[kind] = dict([*run.kinds[kind].items()][: 2 * count])


def test_values_that_overflow_a_comparison_are_judged_without_a_warning(run, recwarn):
    for _ in range(3):
        for array in run.kinds["parameters"].values():
            array *= 1e38
        run.write()
    for rule in ("NonFiniteValues", "ElementCorruption", "GradientFlow", "LearningRate"):
        run.evaluate(rule)
    assert not [warning for warning in recwarn if warning.category is RuntimeWarning]
