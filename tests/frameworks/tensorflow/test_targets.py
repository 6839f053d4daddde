"""What the default plan says of the targets of a Keras loss."""

import keras
import numpy as np
import pytest

import smdebug.tensorflow as smd
from smdebug.numbers.targets import MAX_VALUES
from tests.frameworks.tensorflow.training import trial_of

pytestmark = pytest.mark.usefixtures("same_beginning")

RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(32, 6)).astype("float32")
CLASSES = np.arange(32) % 3
NUMBERS = RANDOM.normal(2, 3, size=(32, 1)).astype("float32")
CROSS_ENTROPY = "sparse_categorical_crossentropy"


def loss_of(run, loss, labels, *, inputs=INPUTS, outputs=1, last=None, penalty=None, weight=None, **fit):
    """Train one batch; return the facts of its loss, and the loss that Keras says."""
    out = keras.layers.Dense(outputs, last, kernel_regularizer=penalty)
    model = keras.Sequential([keras.Input(inputs.shape[1:]), out])
    model.compile(keras.optimizers.SGD(0.01), loss, loss_weights=weight)
    with smd.KerasHook(str(run)) as hook:
        history = model.fit(inputs, labels, batch_size=32, verbose=0, callbacks=[hook], **fit).history
    return trial_of(run).facts(0)["loss"], history["loss"][0]


def test_classes_are_counted_beside_the_loss(run):
    loss, logged = loss_of(run, CROSS_ENTROPY, CLASSES, outputs=3, last="softmax")
    (term,) = loss["terms"]
    assert term["counts"] == [[0, 11], [1, 11], [2, 10]]
    assert (term["reduction"], term["of_a_layer"]) == ("mean", True)
    assert loss["value"] == pytest.approx(logged, rel=1e-6)


@pytest.mark.parametrize("loss", ["mse", "mae", keras.losses.Huber(0.5), "binary_crossentropy"])
def test_numbers_have_their_mean_and_spread(run, loss):
    labels = (CLASSES == 1)[:, None].astype("float32") if loss == "binary_crossentropy" else NUMBERS
    last = "sigmoid" if loss == "binary_crossentropy" else None
    found, logged = loss_of(run, loss, labels, last=last)
    (term,) = found["terms"]
    assert term["means"] == pytest.approx([labels.mean()], rel=1e-5)
    assert term["variances"] == pytest.approx([labels.var()], rel=1e-5)
    assert found["value"] == pytest.approx(logged, rel=1e-6)
    apart = np.abs(labels - np.median(labels))
    if loss == "mae":
        assert term["constant"] == pytest.approx(apart.mean(), rel=1e-5)
    elif isinstance(loss, keras.losses.Huber):
        cost = float(loss(labels, np.full_like(labels, np.median(labels))))
        mean = float(loss(labels, np.full_like(labels, labels.mean())))
        assert term["constant"] == pytest.approx(min(cost, mean), rel=1e-4)
    else:
        assert "constant" not in term


@pytest.mark.parametrize(
    "more",
    [
        {"class_weight": {0: 1.0, 1: 5.0, 2: 1.0}},
        {"sample_weight": np.linspace(0, 1, 32)},
        {"penalty": keras.regularizers.L2(0.1)},
        {"weight": 0.5},
        {"loss": keras.losses.SparseCategoricalCrossentropy(ignore_class=2)},
    ],
)
def test_a_loss_that_is_more_than_its_criterion_has_no_value(run, more):
    arguments = {"loss": CROSS_ENTROPY, "outputs": 3, "last": "softmax", **more}
    loss, _ = loss_of(run, labels=CLASSES, **arguments)
    assert "value" not in loss
    assert loss["terms"][0]["counts"]


def test_smoothed_labels_and_rows_of_several_steps_have_no_value(run, tmp_path):
    smoothed = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    loss, _ = loss_of(run, smoothed, np.eye(3)[CLASSES], outputs=3, last="softmax")
    assert "value" not in loss
    several = INPUTS.reshape(32, 2, 3)
    loss, _ = loss_of(tmp_path / "2", "mse", NUMBERS.repeat(2, 1)[:, :, None], inputs=several)
    assert "value" not in loss


@pytest.mark.parametrize("loss", [CROSS_ENTROPY, "mse"])
def test_the_column_that_is_the_target_is_named(run, loss):
    labels = CLASSES if loss == CROSS_ENTROPY else NUMBERS
    inputs = INPUTS.copy()
    inputs[:, 4] = labels.reshape(-1)
    classes = {"outputs": 3, "last": "softmax"} if loss == CROSS_ENTROPY else {}
    found, _ = loss_of(run, loss, labels, inputs=inputs, **classes)
    assert found["revealed_by"] == [0, 4]


def test_inputs_beside_the_targets_reveal_nothing(run):
    inputs = INPUTS.copy()
    inputs[:, 4] = NUMBERS[:, 0]
    inputs[7, 4] += 1
    loss, _ = loss_of(run, "mse", NUMBERS, inputs=inputs)
    assert "revealed_by" not in loss
    assert "value" in loss


def test_of_many_targets_some_rows_are_described(run, tmp_path):
    wide = MAX_VALUES // 8
    loss, _ = loss_of(run, "mse", np.ones((32, wide), np.float32), outputs=wide)
    (term,) = loss["terms"]
    assert (term["target_rows"], term["columns"], term["rows"]) == (8, wide, 32)
    few = np.ones((8, wide), np.float32)
    loss, _ = loss_of(tmp_path / "2", "mse", few, inputs=INPUTS[:8], outputs=wide)
    assert loss["terms"][0]["target_rows"] == loss["terms"][0]["rows"] == 8
