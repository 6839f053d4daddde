"""Trainings that cannot learn from the start: empty inputs, weights at zero, weights that are frozen."""

import numpy as np

from tests.smdebug_default_rules.made_runs import PARAMETERS


def test_inputs_that_are_all_zero_are_found(run):
    for _ in range(4):
        run.kinds["inputs"]["Net_input_0"][:] = 0
        run.facts["distinct_rows"] = 1
        run.write()
    found = run.evaluate("RepeatedInput")
    assert [(step, finding.since, finding.tensor) for step, finding in found] == [
        (2, 0, "Net_input_0"),
        (3, 0, "Net_input_0"),
    ]
    assert "All 256 values of Net_input_0 are 0" in found[0][1].message


def test_a_constant_input_may_be_wanted_where_nothing_is_compared(run):
    run.facts["loss"]["terms"] = []
    for _ in range(4):
        run.kinds["inputs"]["Net_input_0"][:] = 1
        run.write()
    assert run.evaluate("RepeatedInput") == []


def test_weights_that_all_start_at_zero_are_found(run):
    for values in run.kinds["parameters"].values():
        values[:] = 0
    found = run.write(steps=2).evaluate("InitialWeights")
    assert [finding.tensor for _, finding in found] == [
        "Net_0.weight",
        "Net_2.weight",
        "Net_4.weight",
    ]


def test_a_layer_may_start_at_zero(run):
    run.kinds["parameters"]["Net_4.weight"][:] = 0
    assert run.write().evaluate("InitialWeights") == []


def freeze_weights(run, drawn):
    run.lasting["frozen"] = [name for name in PARAMETERS if name.endswith("weight")]
    for name in run.lasting["frozen"]:
        if drawn:
            even = run.random.uniform(-0.25, 0.25, (16, 16))
            run.kinds["parameters"][name] = even.astype(np.float32)


def test_biases_alone_are_trained_of_weights_as_they_were_drawn(run):
    freeze_weights(run, drawn=True)
    found = run.write().evaluate("UnreachedParameters")
    assert {finding.tensor for _, finding in found} == {"Net_0.weight"}


def test_biases_alone_may_be_tuned_of_a_trained_model(run):
    freeze_weights(run, drawn=False)
    assert run.write(steps=3).evaluate("UnreachedParameters") == []
