"""What the hook for JAX observes when it gets only a place."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import smdebug.jax as smd
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.trials.observations.whole_run import ObservationsUnavailable


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


@jax.jit
def value_and_gradients(params, inputs, key):
    def loss(params):
        kept = jax.random.bernoulli(key, 0.8, (16, 4))
        hidden = jnp.tanh((inputs * kept) @ params["output"]["kernel"] + params["output"]["bias"])
        return jnp.mean((hidden - inputs[:, :3]) ** 2)

    return jax.value_and_grad(loss)(params)


def train(hook=None, steps=25):
    key = jax.random.key(0)
    params = {"output": {"kernel": jax.random.normal(key, (4, 3)), "bias": jnp.zeros(3)}}
    for step in range(steps):
        key, own = jax.random.split(key)
        inputs = jax.random.normal(own, (16, 4))
        if hook is not None:
            hook.begin_step(smd.modes.TRAIN)
        loss, gradients = value_and_gradients(params, inputs, own)
        updates = jax.tree.map(lambda gradient: -0.1 * gradient, gradients)
        if hook is not None:
            hook.record("loss", loss)
            hook.record("learning_rate", 0.1 / (step + 1))
            hook.record_batch(inputs)
            hook.record_weights(params)
            hook.record_gradients(gradients)
            hook.record_updates(updates)
            hook.record_layers({"intermediates": {"output": {"__call__": (inputs,)}}})
        params = jax.tree.map(jnp.add, params, updates)
    return params, key


def test_a_watched_training_is_the_same_to_the_last_bit(run):
    alone, key = train()
    with smd.Hook(run) as hook:
        seen, its_key = train(hook)
    pairs = zip(jax.tree.leaves(alone), jax.tree.leaves(seen), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert np.array_equal(jax.random.key_data(key), jax.random.key_data(its_key))


def test_numbers_are_series_and_trees_are_measured(run):
    with smd.Hook(run) as hook:
        train(hook)
    trial = smd.create_trial(run)
    assert len(trial.series("loss")) == len(trial.series("learning_rate")) == 25
    assert trial.observations.steps() == [*range(10), 10, 20]
    statistics = trial.statistics(20)
    kinds = {kind: statistics.of(kind).names for kind in set(statistics.kinds)}
    assert kinds == {
        "parameters": ["output/bias", "output/kernel"],
        "gradients": ["gradient/output/bias", "gradient/output/kernel"],
        "updates": ["update/output/bias", "update/output/kernel"],
        "inputs": ["batch_input_0"],
        "outputs": ["output/output"],
    }
    row = statistics.row
    assert row("update/output/kernel")["rms"] == pytest.approx(
        0.1 * row("gradient/output/kernel")["rms"], rel=1e-5
    )
    facts = trial.facts(20)
    assert (facts["shapes"], facts["distinct_rows"]) == ([[16, 4]], 16)
    assert trial.tensor("loss").value(20) == np.float32(trial.series("loss").values[20])


def descend(run, *, change, steps=12, given=False):
    """Train three layers; `change` returns the parameters of the next step."""
    key = jax.random.key(0)
    params = {name: {"kernel": jax.random.normal(key, (6, 6))} for name in ("layer0", "layer1", "layer2")}
    gradient = jax.jit(jax.grad(lambda p: sum(jnp.mean(p[n]["kernel"] ** 2) for n in p)))
    with smd.Hook(run) as hook:
        for _ in range(steps):
            with hook.step(smd.modes.TRAIN):
                gradients = gradient(params)
                updates = jax.tree.map(lambda g: -0.1 * g, gradients)
                hook.record("learning_rate", 0.1)
                hook.record_weights(params)
                hook.record_gradients(gradients)
                if given:
                    updates = {**updates, "layer2": jax.tree.map(jnp.zeros_like, updates["layer2"])}
                    hook.record_updates(updates)
            params = change(params, updates)
    return smd.create_trial(run)


add = jax.jit(lambda params, updates: jax.tree.map(jnp.add, params, updates), donate_argnums=0)


@pytest.mark.parametrize("changes_in_place", [False, True])
def test_updates_are_the_changes_since_the_step_before(run, changes_in_place):
    def change(params, updates):
        return add(params, updates) if changes_in_place else jax.tree.map(jnp.add, params, updates)

    trial = descend(run, change=change)
    assert "updates" not in trial.statistics(0).kinds  # nothing has changed yet
    for step in (1, 9, 10):
        seen = trial.statistics(step)
        assert seen.of("updates").names == [
            "update/layer0/kernel",
            "update/layer1/kernel",
            "update/layer2/kernel",
        ]
        # The gradient is that of the parameters after the update, and hardly smaller.
        gradient = seen.row("gradient/layer0/kernel")["rms"]
        assert seen.row("update/layer0/kernel")["rms"] == pytest.approx(0.1 * gradient, rel=0.1)
    facts = trial.facts(10)
    assert facts["optimizer_steps"]
    assert facts["updates_are_differences"]
    assert facts["optimizers"][0]["groups"][0]["parameters"] == [
        "layer0/kernel",
        "layer1/kernel",
        "layer2/kernel",
    ]
    assert len(trial.series("learning_rate/0/0")) == 12


def issues(run):
    found = diagnose(run)
    assert not found.failed
    return [(issue.cause, issue.since, issue.where) for issue in found.issues]


def test_a_layer_whose_update_is_dropped_is_found(run):
    descend(run, change=lambda p, u: {**jax.tree.map(jnp.add, p, u), "layer1": p["layer1"]})
    assert issues(run) == [("lost update", 1, ("layer1/kernel",))]


def test_a_first_layer_that_never_moves_counts_as_frozen(run):
    descend(run, change=lambda p, u: {**jax.tree.map(jnp.add, p, u), "layer0": p["layer0"]})
    assert issues(run) == []


def test_parameters_that_an_optimizer_leaves_alone_are_not_lost(run):
    trial = descend(run, change=lambda p, u: jax.tree.map(jnp.add, p, u), given=True)
    assert trial.facts(10)["frozen"] == ["layer2/kernel"]
    assert issues(run) == []


def test_a_given_update_that_does_not_arrive_is_found(run):
    descend(run, change=lambda p, u: {**jax.tree.map(jnp.add, p, u), "layer1": p["layer1"]}, given=True)
    assert issues(run) == [("lost update", 1, ("layer1/kernel",))]


def test_most_of_a_model_may_be_frozen_without_a_word(run):
    descend(run, change=lambda p, u: {**p, "layer0": jax.tree.map(jnp.add, p["layer0"], u["layer0"])})
    assert issues(run) == []


def test_micro_batches_without_an_update_are_not_steps_of_the_optimizer(run):
    counter = iter(range(100))

    def change(params, updates):
        return params if next(counter) % 4 else jax.tree.map(jnp.add, params, updates)

    trial = descend(run, change=change)
    assert [trial.facts(step)["optimizer_steps"] for step in range(1, 6)] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert issues(run) == []


def test_a_number_whose_memory_was_donated_is_left_out(run):
    double = jax.jit(lambda value: value * 2, donate_argnums=0)
    with smd.Hook(run) as hook:
        loss = jnp.float32(1.0)
        for _ in range(13):
            with hook.step(smd.modes.TRAIN):
                hook.record("loss", loss)
                loss = double(loss)
    values = smd.create_trial(run).series("loss").values
    assert len(values) == 13
    assert all(np.isnan(value) or value == 2.0**step for step, value in enumerate(values))


def test_whoever_says_what_to_save_gets_that_alone(run):
    with smd.Hook(run, include_collections=["weights"]) as hook:
        train(hook, steps=3)
    with pytest.raises(ObservationsUnavailable):
        smd.create_trial(run).statistics(0)


def classify(run, *, given=lambda logits: logits, steps=12, also=lambda hook: None):
    """Train a classifier; `given` makes what its cross entropy gets of the logits."""
    key = jax.random.key(0)
    inputs = jax.random.normal(key, (60, 4))
    classes = (inputs[:, 0] > 0).astype(int)
    params = {"dense": {"kernel": jax.random.normal(key, (4, 2)) * 0.1, "bias": jnp.zeros(2)}}

    @jax.jit
    def value_and_gradients(params):
        def loss(params):
            predicted = given(inputs @ params["dense"]["kernel"] + params["dense"]["bias"])
            criterion = optax.softmax_cross_entropy_with_integer_labels
            return criterion(predicted, classes).mean(), predicted

        return jax.value_and_grad(loss, has_aux=True)(params)

    with smd.Hook(run) as hook:
        for _ in range(steps):
            with hook.step(smd.modes.TRAIN):
                (loss, predicted), gradients = value_and_gradients(params)
                hook.record_loss(
                    loss,
                    predicted,
                    classes,
                    criterion=optax.softmax_cross_entropy_with_integer_labels,
                )
                hook.record_batch(inputs)
                hook.record_weights(params)
                hook.record_gradients(gradients)
                also(hook)
            params = jax.tree.map(lambda p, g: p - 0.5 * g, params, gradients)
        with hook.step(smd.modes.EVAL):
            hook.record_loss(loss, predicted, classes)
    return smd.create_trial(run)


def test_a_loss_is_recorded_with_what_it_was_computed_from(run):
    trial = classify(run)
    loss = trial.series("loss")
    assert (len(loss.of(smd.modes.TRAIN)), len(loss.of(smd.modes.EVAL))) == (12, 1)
    (term,) = trial.facts(10)["loss"]["terms"]
    assert (term["criterion"], term["given"]) == ("cross entropy", "")
    assert (term["rows"], term["classes"], term["targets"]) == (60, 2, 60)
    seen = trial.statistics(10)
    assert seen.of("outputs").names == ["predictions"]
    assert seen.of("inputs").names == ["batch_input_0"]
    assert seen.of("labels").names == ["labels"]
    assert issues(run) == []


def test_a_cross_entropy_that_gets_probabilities_is_found(run):
    classify(run, given=jax.nn.softmax)
    assert [(cause, since) for cause, since, _ in issues(run)] == [("loss input", 0)]


def test_a_model_with_one_output_for_all_rows_is_found(run):
    classify(run, given=lambda logits: jnp.broadcast_to(logits[:1], logits.shape))
    assert ("constant output", 0) in [(cause, since) for cause, since, _ in issues(run)]
