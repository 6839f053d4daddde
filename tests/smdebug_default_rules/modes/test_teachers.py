"""A model beside the trained one that is not trained and drops values, as a teacher in training mode."""

import pytest

from smdebug import modes
from tests.smdebug_default_rules.made_runs import FACTS, MODULES, PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps

TEACHER = {
    "model": "Teacher",
    "module": "drop",
    "rate": 0.5,
    "shape": [32, *FACTS["shapes"][0][1:]],
    "is_copy": False,
    "calls": 1,
    "values": 1,
}


def taught(steps=12, every=5, **facts):
    """A training that is saved at every fifth step, in which a teacher drops values."""
    run = Steps()
    for _ in range(steps):
        run.facts["teacher"] = {**TEACHER, **facts}
        run.write().skip(*[2.3] * (every - 1))
    return run


def test_a_teacher_that_drops_values_is_found_after_thirty_steps():
    found = taught().evaluate("ModuleModes")
    assert [step for step, _ in found] == list(range(30, 60, 5))
    finding = found[0][1]
    assert (finding.tensor, finding.since, finding.cause) == ("Teacher.drop", 0, "mode mismatch")
    assert "Teacher gets the batches of the trained model" in finding.message
    assert "50%" in finding.message
    assert finding.title == "A model that is not trained drops values"
    assert finding.why == ("Dropout of 0.5 is active, and its weights have not changed for 30 steps",)
    assert finding.advice[0].startswith("Call .eval() on it")


@pytest.mark.parametrize(
    "facts",
    [
        {"calls": 5},  # what it says with several draws is averaged
        {"shape": [32, 3]},  # it makes something else than the trained model's inputs from other rows
        {"shape": [32]},
        {"is_copy": True},  # a target network, which is set to the trained weights after a while
    ],
)
def test_a_model_that_may_drop_values_on_purpose_passes(facts):
    assert taught(**facts).evaluate("ModuleModes") == []


def test_a_teacher_whose_weights_follow_passes():
    run = Steps()
    for step in range(60):
        run.facts["teacher"] = {**TEACHER, "values": step // 20}
        run.write()
    assert run.evaluate("ModuleModes") == []


def test_a_copy_that_never_follows_is_found_after_a_thousand_steps():
    found = taught(steps=120, every=10, is_copy=True).evaluate("ModuleModes")
    assert [step for step, _ in found] == list(range(1000, 1200, 10))


def test_a_few_saved_steps_are_too_few():
    assert taught(steps=4, every=50).evaluate("ModuleModes") == []


def test_a_teacher_that_is_evaluated_passes():
    run = Steps()
    for _ in range(12):
        run.facts |= {"teacher": TEACHER, "training": False, "gradients": False, "optimizer_steps": False}
        run.write(modes.EVAL).skip(*[2.3] * 4)
    assert run.evaluate("ModuleModes") == []


DROPOUT = [*MODULES[:3], ["Drop", "Dropout", True], *MODULES[3:]]


def test_a_teacher_in_evaluation_mode_is_not_taken_for_the_trained_model():
    run = Steps()
    run.lasting |= {"modules": DROPOUT, "frozen": list(PARAMETERS)}
    run.facts["training"] = False
    run.kinds["gradients"].clear()
    run.kinds["updates"].clear()
    assert run.write().evaluate("ModuleModes") == []


def evaluated(*with_loss):
    """A run whose evaluation in training mode has losses at these calls of the model."""
    run = Steps()
    run.lasting["modules"] = DROPOUT
    run.facts |= {"training": True, "gradients": False, "optimizer_steps": False, "loss": None}
    run.loss = None
    run._carried["loss"] = [[0, modes.EVAL.value, call, 1.0] for call in with_loss]
    return run


@pytest.mark.parametrize(
    ("with_loss", "found"),
    [
        ([4, 9, 14], []),  # teaches another model
        ([7], []),  # the mean of eight draws
        ([7, 8], []),  # which is followed by an evaluation
        ([1], []),
        ([0], [0]),
        ([0, 1, 2], [0]),
        ([0, 5, 10], []),
    ],
)
def test_a_model_is_evaluated_if_its_first_call_has_a_loss(with_loss, found):
    run = evaluated(*with_loss)
    assert [step for step, _ in run.write(modes.EVAL).evaluate("ModuleModes")] == found


def test_calls_are_counted_from_the_loss_before():
    for first, found in ((6, [1]), (13, [])):
        run = evaluated(5).write(modes.EVAL)
        run._carried["loss"] = [[1, modes.EVAL.value, first, 1.0]]
        assert [step for step, _ in run.write(modes.EVAL).evaluate("ModuleModes")] == found


@pytest.mark.parametrize(("is_frozen", "count"), [(True, 0), (False, 1)])
def test_a_body_that_another_model_has_as_a_layer_is_judged_by_its_own_layers(is_frozen, count):
    run, body, head = Steps(), "Net_0.0.weight", "Net_1.weight"
    run.lasting |= {
        "modules": [["Net_0", "Sequential", False], ["Net_0.1", "Dropout", True]],
        "frozen": [body] if is_frozen else [],
    }
    run.facts["training"] = False
    values = {body: run.normal(4, 4), head: run.normal(3, 4)}
    moved = {name: value for name, value in values.items() if name not in run.lasting["frozen"]}
    run.kinds |= {
        "parameters": values,
        "gradients": {f"gradient/{name}": value for name, value in moved.items()},
        "updates": {f"update/{name}": value for name, value in moved.items()},
    }
    assert len(run.write().evaluate("ModuleModes")) == count
