"""The hook for Keras, in `fit`, on real trainings."""

import json
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.runs.evaluation.diagnosing import diagnose
from tests.frameworks import seen
from tests.frameworks.tensorflow.training import (
    INPUTS,
    LABELS,
    compiled,
    fit,
    hook_in,
    layers,
    same,
    small_model,
    trial_of,
)

pytestmark = pytest.mark.usefixtures("same_beginning")

ROOT = Path(__file__).parents[3]


def test_names_and_collections_are_those_of_the_old_library(run):
    with hook_in(run) as hook:
        fit(small_model(), hook)
    trial = trial_of(run)
    assert trial.steps(smd.modes.TRAIN) == list(range(8))
    assert trial.tensor_names(collection="weights") == [
        "dense/weights/dense/kernel:0",
        "out/weights/out/kernel:0",
    ]
    assert {"dense/weights/dense/bias:0", "out/weights/out/bias:0"} <= set(
        trial.tensor_names(collection="biases")
    )
    assert trial.tensor_names(collection="gradients") == [
        f"gradients/{layer}/{kind}Grad" for layer in ("dense", "out") for kind in ("bias", "kernel")
    ]
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert trial.tensor_names(collection="metrics") == ["accuracy", "batch"]
    assert trial.tensor_names(collection="inputs") == ["inputs"]
    assert trial.tensor_names(collection="outputs") == ["labels", "predictions"]
    assert trial.tensor_names(collection="layers") == [
        f"{layer}/{what}" for layer in ("dense", "dropout", "out") for what in ("inputs", "outputs")
    ]
    assert "adam/learning_rate:0" in trial.tensor_names(collection="optimizer_variables")


@pytest.mark.parametrize("compiling", [{}, {"jit_compile": False}, {"run_eagerly": True}])
def test_gradients_and_layers_are_those_of_the_step_itself(run, compiling):
    with hook_in(run) as hook:
        fit(small_model(optimizer=keras.optimizers.SGD(0.5), **compiling), hook)
    trial = trial_of(run)
    kernel = trial.tensor("out/weights/out/kernel:0")
    gradient = trial.tensor("gradients/out/kernelGrad")
    for step in range(1, 8):
        updated = kernel.value(step - 1) - np.float32(0.5) * gradient.value(step)
        np.testing.assert_allclose(kernel.value(step), updated, rtol=1e-5, atol=1e-7)
        before = kernel.value(step - 1)
        outputs = trial.tensor("out/inputs").value(step) @ before
        outputs += trial.tensor("out/weights/out/bias:0").value(step - 1)
        np.testing.assert_allclose(trial.tensor("out/outputs").value(step), outputs, atol=1e-6)
        np.testing.assert_array_equal(
            trial.tensor("predictions").value(step), trial.tensor("out/outputs").value(step)
        )


@pytest.mark.parametrize("compiling", [{}, {"jit_compile": False}])
@pytest.mark.parametrize("interval", [1, 3])
def test_a_training_has_the_same_results_with_and_without_the_hook(run, interval, compiling):
    alone = fit(small_model(**compiling), epochs=3, validation_data=(INPUTS, LABELS))
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    with hook_in(run, save_config=smd.SaveConfig(save_interval=interval)) as hook:
        watched = fit(small_model(**compiling), hook, epochs=3, validation_data=(INPUTS, LABELS))
    assert same(watched, alone)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_gradients_of_a_scaled_loss_are_saved_unscaled(run, run_eagerly):
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=2**10)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, name="out")])
    compiled(model, optimizer, run_eagerly=run_eagerly)
    before = model.get_weights()[0]
    with hook_in(run) as hook:
        model.fit(INPUTS, LABELS, batch_size=20, verbose=0, callbacks=[hook])
    trial = trial_of(run)
    learnt = (before - model.get_weights()[0]) / 0.5
    np.testing.assert_allclose(
        trial.tensor("gradients/out/kernelGrad").value(0), learnt, rtol=1e-3, atol=1e-6
    )


def test_gradients_of_an_embedding_are_saved_whole(run):
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int32"),
            keras.layers.Embedding(6, 2, name="words"),
            keras.layers.Flatten(),
            keras.layers.Dense(2, name="out"),
        ]
    )
    compiled(model, keras.optimizers.SGD(0.5))
    before = model.get_weights()[0]
    with hook_in(run) as hook:
        model.fit(np.array([[0, 1, 1], [4, 0, 1]]), np.array([0, 1]), verbose=0, callbacks=[hook])
    saved = trial_of(run).tensor("gradients/words/embeddingsGrad").value(0)
    np.testing.assert_allclose(saved, (before - model.get_weights()[0]) / 0.5, rtol=1e-3, atol=1e-6)


def test_for_losses_and_metrics_alone_no_function_is_replaced(run):
    model = small_model()
    fit(model)
    function = model.train_function
    with smd.KerasHook(str(run), include_collections=["losses", "metrics"]) as hook:
        fit(model, hook)
    assert model.train_function is function
    assert not hook.functions.compiled
    trial = trial_of(run)
    assert trial.tensor_names(step=0) == ["accuracy", "batch", "loss"]
    assert trial.tensor("loss").steps() == [0, 3, 7]  # the end of an epoch is saved whatever is due


def test_modes_set_themselves_and_validation_has_names_of_its_own(run):
    model = small_model()
    with hook_in(run) as hook:
        fit(model, hook, epochs=1, validation_data=(INPUTS[:5], LABELS[:5]))
        model.evaluate(INPUTS[:10], LABELS[:10], batch_size=5, verbose=0, callbacks=[hook])
        answers = model.predict(INPUTS[:5], verbose=0, callbacks=[hook])
    trial = trial_of(run)
    steps = [trial.steps(m) for m in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT)]
    assert steps == [[0, 1, 2, 3], [0, 1, 2], [0]]
    assert trial.tensor("val_loss").steps(smd.modes.EVAL) == [0]
    np.testing.assert_array_equal(trial.tensor("predictions").value(0, smd.modes.PREDICT), answers)
    assert not [n for n in trial.tensor_names(step=4) if n.startswith("gradients")]
    assert trial.tensor("dense/outputs").steps(smd.modes.EVAL) == [0, 1, 2]


def test_each_call_of_a_layer_that_is_called_again_is_saved(run):
    shared = keras.layers.Dense(3, name="shared")
    ends = [keras.Input((4,)), keras.Input((4,))]
    both = keras.layers.Add()([shared(end) for end in ends])
    model = compiled(keras.Model(ends, keras.layers.Dense(2, name="out")(both)))
    with hook_in(run) as hook:
        model.fit([INPUTS, 2 * INPUTS], LABELS, 20, verbose=0, shuffle=False, callbacks=[hook])
    trial = trial_of(run)
    given = [trial.tensor(name).value(0) for name in ("shared/inputs", "shared/inputs_1")]
    np.testing.assert_array_equal(given[0], INPUTS)
    np.testing.assert_array_equal(given[1], 2 * INPUTS)
    assert trial.tensor("shared/outputs_1").steps() == [0]


def test_models_with_several_inputs_and_layers_inside_layers_are_seen(run):
    first, other = keras.Input((4,)), keras.Input((4,))
    inner = keras.Sequential([keras.Input((8,)), keras.layers.Dense(3, name="deep")], name="inner")
    joined = keras.layers.Concatenate(name="join")([first, other])
    model = compiled(keras.Model([first, other], keras.layers.Dense(2, name="out")(inner(joined))))
    with hook_in(run) as hook:
        model.fit([INPUTS, INPUTS], LABELS, epochs=1, verbose=0, callbacks=[hook])
    trial = trial_of(run)
    assert trial.tensor_names(collection="inputs") == ["inputs_0", "inputs_1"]
    assert {"join/inputs_0", "join/inputs_1", "join/outputs", "inner/deep/outputs"} <= set(
        trial.tensor_names(collection="layers")
    )
    assert "inner/weights/inner/deep/kernel:0" in trial.tensor_names(collection="weights")


def test_a_model_that_makes_its_own_function_is_saved_as_far_as_it_can_be(run, caplog):
    class Own(keras.Sequential):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

    model = compiled(Own([keras.layers.Input((4,)), *layers()]))
    hook = hook_in(run)
    hook.logger.addHandler(caplog.handler)
    fit(model, hook)
    hook.close()
    hook.logger.removeHandler(caplog.handler)
    messages = [r.getMessage() for r in caplog.records if "make_train_function" in r.getMessage()]
    assert len(messages) == 1
    assert {"loss", "dense/weights/dense/kernel:0"} <= set(trial_of(run).tensor_names())


def test_asked_to_stop_fit_ends(run):
    class Ask(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3 and not hook.stopped:
                (run / "control").mkdir(exist_ok=True)
                (run / "control" / "stop").write_text('{"reason": "enough"}')

    hook = hook_in(run, look_for_stop=0, save_all=False)
    fit(small_model(), hook, Ask(), epochs=30)
    hook.close()
    assert "enough" in str(hook.stopped)
    assert trial_of(run).loaded_all_steps
    assert len(trial_of(run).steps()) < 8


def test_running_a_cell_again_begins_the_run_again(run):
    for _ in range(2):
        hook = hook_in(run)
        fit(small_model(), hook, epochs=1)
    hook.close()
    assert trial_of(run).steps() == [0, 1, 2, 3]
    assert hook.training_run == 1


def test_a_model_that_is_compiled_again_is_trained_as_that_says(run):
    def train_twice(*callbacks):
        keras.utils.set_random_seed(0)
        model = fit(small_model(), *callbacks, epochs=1)
        model.layers[0].trainable = False
        compiled(model, keras.optimizers.SGD(0.01))
        return fit(model, *callbacks, epochs=1)

    with hook_in(run) as hook:
        watched = train_twice(hook)
    keras.backend.clear_session()
    assert same(watched, train_twice())
    gradients = trial_of(run).tensor("gradients/dense/kernelGrad")
    assert gradients.steps() == [0, 1, 2, 3]  # of eight: frozen, it has none


class Interrupt(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 1:
            raise KeyboardInterrupt


def test_a_cell_that_was_interrupted_is_run_again_and_saves_as_much(run):
    model = small_model()
    with pytest.raises(KeyboardInterrupt):
        fit(model, hook_in(run), Interrupt())
    with hook_in(run) as hook:
        fit(model, hook, epochs=1)
    trial = trial_of(run)
    assert trial.steps() == trial.tensor("gradients/dense/kernelGrad").steps() == [0, 1, 2, 3]


def test_after_an_interrupted_fit_a_model_is_trained_unwatched_as_it_was_compiled(run):
    model, hook = small_model(), hook_in(run)
    with pytest.raises(KeyboardInterrupt):
        fit(model, hook, Interrupt())
    seen = dict(hook.functions.captured)
    fit(model)
    assert hook.functions.captured.keys() == seen.keys()
    assert all(hook.functions.captured[name] is seen[name] for name in seen)
    fit(compiled(model, keras.optimizers.SGD(0.0)))
    function = model.train_function
    hook.close()
    assert model.train_function is function


def test_of_two_hooks_in_a_fit_the_first_looks_inside_and_the_other_says_so(run, tmp_path, caplog):
    with hook_in(run) as first, hook_in(tmp_path / "other") as other:
        first.logger.addHandler(caplog.handler)
        fit(small_model(), first, other)
        first.logger.removeHandler(caplog.handler)
    assert len([r for r in caplog.records if "another hook" in r.getMessage()]) == 1
    assert trial_of(run).tensor("gradients/dense/kernelGrad").steps() == list(range(8))
    assert trial_of(tmp_path / "other").tensor("loss").steps() == list(range(8))


def test_a_function_that_is_made_again_while_it_trains_is_looked_into_as_well(run):
    class Freeze(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                self.model.layers[0].trainable = False
                self.model.make_train_function(force=True)

    with hook_in(run) as hook:
        fit(small_model(), hook, Freeze())
    trial = trial_of(run)
    assert trial.tensor("gradients/dense/kernelGrad").steps() == [0, 1, 2, 3]
    assert trial.tensor("gradients/out/kernelGrad").steps() == list(range(8))


# Elsewhere


def in_a_process(module, *arguments):
    paths = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules", ROOT]
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def on_backend(tmp_path_factory):
    """Trains on a backend, in a process of its own, once: the folder of its runs, and the weights of each."""

    @cache
    def trained(backend):
        folder = tmp_path_factory.mktemp(backend)
        module = "tests.frameworks.tensorflow.backend"
        return folder, in_a_process(module, backend, folder / "run", folder / "planned")

    return trained


@pytest.mark.parametrize("backend", [name for name in ("torch", "jax") if find_spec(name)])
def test_other_backends_have_losses_metrics_and_weights(on_backend, backend):
    folder, weights = on_backend(backend)
    watched = weights["watched"]
    assert watched == weights["alone"]
    trial = trial_of(folder / "run")
    assert {"loss", "accuracy", "dense/weights/dense/kernel:0"} <= set(trial.tensor_names())
    assert trial.steps(smd.modes.TRAIN) == list(range(12))
    np.testing.assert_array_equal(
        trial.tensor("dense/weights/dense/kernel:0").value(11, smd.modes.TRAIN),
        np.float32(watched[0]),
    )
    first = trial.tensor("dense/weights/dense/kernel:0").value(0)
    assert not np.array_equal(first, np.float32(watched[0]))


@pytest.mark.parametrize(("backend", "column"), [("torch", "Keras on PyTorch"), ("jax", "Keras on JAX")])
def test_the_table_of_the_page_says_what_other_backends_show(on_backend, backend, column):
    if not seen.is_installed(column):
        pytest.skip(f"{backend} is not installed")
    folder, _ = on_backend(backend)
    assert seen.rows_of(str(folder / "planned")) == seen.columns_of_the_page()[column]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_on_pytorch_the_default_plan_sees_the_inside_of_a_step(on_backend):
    folder, weights = on_backend("torch")
    assert weights["planned"] == weights["alone"]
    trial = trial_of(folder / "planned")
    statistics = trial.statistics(1, smd.modes.TRAIN)
    kernel = "dense/weights/dense/kernel:0"
    gradient = "gradients/dense/kernelGrad"
    assert {kernel, gradient, f"update/{kernel}", "dense/outputs", "inputs"} <= set(statistics.names)
    assert statistics.row(gradient)["rms"] > 0
    assert len(trial.series("loss").of(smd.modes.TRAIN)) == 12
    facts = trial.facts(1, smd.modes.TRAIN)
    assert "loss_is_mean_of_epoch" not in facts
    assert facts["loss"]["terms"][0]["criterion"] == "cross entropy"
    assert facts["activations"] == {"dense": "relu", "out": "linear"}
    assert diagnose(folder / "planned").failed == {}


@pytest.mark.skipif(find_spec("jax") is None, reason="needs JAX")
def test_on_jax_the_default_plan_sees_what_variables_and_logs_show(on_backend):
    folder, weights = on_backend("jax")
    assert weights["planned"] == weights["alone"]
    trial = trial_of(folder / "planned")
    assert trial.steps(smd.modes.TRAIN) == list(range(11))
    statistics = trial.statistics(4, smd.modes.TRAIN)  # of the second epoch
    assert set(statistics.kinds) == {"parameters", "updates"}
    assert statistics.row("update/dense/weights/dense/kernel:0")["rms"] > 0
    assert len(trial.series("loss").of(smd.modes.TRAIN)) == 12
    assert trial.facts(4, smd.modes.TRAIN)["loss_is_mean_of_epoch"]
    assert diagnose(folder / "planned").failed == {}


def test_replicas_on_two_devices_make_one_worker(run):
    printed = in_a_process("tests.frameworks.tensorflow.replicas", run)
    trial = trial_of(run)
    assert printed == {"replicas": 2, "same": True}
    assert trial.steps(smd.modes.TRAIN) == [0, 1, 2, 3]
    assert {"loss", "dense/weights/dense/kernel:0", "gradients/dense/kernelGrad"} <= set(trial.tensor_names())
