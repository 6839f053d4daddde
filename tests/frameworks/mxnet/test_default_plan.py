"""What the hook for Gluon observes when it gets only a place."""

import mxnet
import numpy as np
import pytest
from mxnet import autograd, gluon

import smdebug.mxnet as smd
from smdebug.runs.evaluation.diagnosing import diagnose
from tests.frameworks.mxnet.test_hook import net_of


@pytest.fixture
def run(tmp_path):
    return str(tmp_path / "run")


def train(run=None, *, steps=25, hybridize=False, freeze=False, given=lambda logits: logits):
    """Train a classifier, and validate it in between."""
    mxnet.random.seed(0)
    net, loss_of = net_of(), gluon.loss.SoftmaxCrossEntropyLoss(prefix="loss_")
    if hybridize:
        net.hybridize()
    if freeze:
        net[0].weight.grad_req = "null"
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    hook = None
    if run is not None:
        hook = smd.Hook(run)
        hook.register_block(net)
        hook.register_block(loss_of)
    random = np.random.default_rng(0)
    for step in range(steps):
        inputs = mxnet.nd.array(random.random((12, 3)))
        labels = inputs[:, 0] > inputs[:, 1]
        if hook is not None:
            hook.set_mode(smd.modes.TRAIN)
        with autograd.record():
            loss = loss_of(given(net(inputs)), labels)
        loss.backward()
        trainer.step(12)
        if step % 12 == 11:
            if hook is not None:
                hook.set_mode(smd.modes.EVAL)
            loss_of(net(inputs), labels)
    if hook is not None:
        hook.close()
    return net, mxnet.nd.random.uniform(shape=(3,)).asnumpy()


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_watched_training_is_the_same_to_the_last_bit(run, hybridize):
    (watched, drawn), (alone, drawn_alone) = (
        train(run, hybridize=hybridize),
        train(hybridize=hybridize),
    )
    pairs = zip(watched.collect_params().values(), alone.collect_params().values(), strict=True)
    for value, other in pairs:
        np.testing.assert_array_equal(value.data().asnumpy(), other.data().asnumpy())
    np.testing.assert_array_equal(drawn, drawn_alone)


def test_losses_of_every_step_and_measurements_of_saved_ones_are_kept(run):
    train(run)
    trial = smd.create_trial(run)
    loss = trial.series("loss")
    assert (len(loss.of(smd.modes.TRAIN)), len(loss.of(smd.modes.EVAL))) == (25, 2)
    assert np.isfinite(loss.values).all()
    assert trial.steps(smd.modes.TRAIN)[:11] == list(range(11))
    seen = trial.statistics(10, smd.modes.TRAIN)
    assert set(seen.kinds) == {"parameters", "gradients", "updates", "inputs", "outputs"}
    assert seen.of("inputs").names == ["net_input_0"]
    weight, update = seen.row("net_dense1_weight"), seen.row("update/net_dense1_weight")
    gradient = seen.row("gradient/net_dense1_weight")
    assert weight["count"] == 8
    assert update["rms"] == pytest.approx(0.1 * gradient["rms"] / 12, rel=1e-4)
    assert set(trial.series("learning_rate/0/0").values) == {0.1}


def test_facts_have_blocks_trainer_mode_batch_and_loss(run):
    train(run, freeze=True)
    trial = smd.create_trial(run)
    facts = trial.facts(10, smd.modes.TRAIN)
    assert facts["modules"][0] == ["net", "HybridSequential", False]
    assert ["net_dense0_relu", "ReLU", False] in facts["modules"]
    (optimizer,) = facts["optimizers"]
    assert (optimizer["class"], optimizer["groups"][0]["others"]) == ("SGD", 0)
    assert facts["frozen"] == ["net_dense0_weight"]
    assert (facts["training"], facts["optimizer_steps"]) == (True, True)
    assert (facts["shapes"], facts["distinct_rows"]) == ([[12, 3]], 12)
    (term,) = facts["loss"]["terms"]
    assert (term["criterion"], term["rows"], term["classes"]) == ("cross entropy", 12, 2)
    assert not trial.facts(0, smd.modes.EVAL)["training"]


def causes(run):
    found = diagnose(run)
    assert not found.failed
    return [issue.cause for issue in found.issues]


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_healthy_training_has_no_issue(run, hybridize):
    train(run, steps=60, hybridize=hybridize)
    assert causes(run) == []


def test_a_cross_entropy_that_gets_probabilities_is_found(run):
    train(run, given=mxnet.nd.softmax)
    assert causes(run) == ["loss input"]


def test_parameters_without_values_yet_are_measured_once_they_have_them(run):
    net = gluon.nn.Dense(2)
    net.initialize()
    with smd.Hook(run) as hook:
        hook.register_block(net)
        for _ in range(2):
            with autograd.record():
                net(mxnet.nd.ones((4, 3))).backward()
    trial = smd.create_trial(run)
    prefix = net.name
    assert trial.statistics(0).of("parameters").names == [f"{prefix}_bias"]  # the weight's shape is open
    assert set(trial.statistics(1).of("parameters").names) == {f"{prefix}_bias", f"{prefix}_weight"}
