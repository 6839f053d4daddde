"""The hook for MXNet's Gluon, on real trainings."""

import mxnet
import numpy as np
import pytest
from mxnet import autograd, gluon

import smdebug.mxnet as smd

EVERY_STEP = smd.SaveConfig(save_interval=1)


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


def net_of(kind=gluon.nn.HybridSequential):
    net = kind(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(4, activation="relu", in_units=3), gluon.nn.Dense(2, in_units=4))
    net.initialize(mxnet.init.Xavier())
    return net


def train(run=None, *, steps=3, hybridize=False, kind=gluon.nn.HybridSequential, **settings):
    """Train, always the same; gives the net, and what it held after each update."""
    mxnet.random.seed(0)
    net, loss_of = (
        net_of(kind),
        gluon.loss.SoftmaxCrossEntropyLoss(prefix="softmaxcrossentropyloss0_"),
    )
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    hook = None
    if run is not None:
        given = {"save_config": EVERY_STEP, "save_all": True, **settings}
        hook = smd.Hook(str(run), **given)
        hook.register_block(net)
        hook.register_block(loss_of)
    held = []
    for step in range(steps):
        inputs = mxnet.nd.array(np.random.default_rng(step).random((5, 3)))
        with autograd.record():
            loss = loss_of(net(inputs), mxnet.nd.array([0, 1, 0, 1, 1]))
        loss.backward()
        trainer.step(5)
        weight = net[0].weight
        held.append((loss.asnumpy(), weight.data().asnumpy(), weight.grad().asnumpy()))
    if hook is not None:
        hook.close()
    return net, held


def test_names_values_and_collections_are_those_of_the_old_library(run):
    _, held = train(run)
    trial = smd.create_trial(str(run))
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor_names(collection="weights") == ["net_dense0_weight", "net_dense1_weight"]
    assert trial.tensor_names(collection="biases") == ["net_dense0_bias", "net_dense1_bias"]
    assert trial.tensor_names(collection="losses") == ["softmaxcrossentropyloss0_output_0"]
    assert {"net_dense0_output_0", "net_dense1_input_0", "gradient/net_dense1_bias"} <= set(
        trial.tensor_names()
    )
    for step, (loss, weight, gradient) in enumerate(held):
        for name, value in (
            ("softmaxcrossentropyloss0_output_0", loss),
            ("net_dense0_weight", weight),
            ("gradient/net_dense0_weight", gradient),
        ):
            np.testing.assert_array_equal(trial.tensor(name).value(step), value)


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_training_has_the_same_results_with_and_without_the_hook(run, hybridize):
    watched, _ = train(run, hybridize=hybridize)
    alone, _ = train(hybridize=hybridize)
    for value, other in zip(watched.collect_params().values(), alone.collect_params().values(), strict=True):
        np.testing.assert_array_equal(value.data().asnumpy(), other.data().asnumpy())


def test_blocks_are_hooked_only_at_steps_that_want_them(run):
    net = net_of()
    with smd.Hook(str(run), save_config=smd.SaveConfig(save_interval=2), save_all=True) as hook:
        hook.register_hook(net)
        net(mxnet.nd.ones((1, 3)))
        assert net[0]._forward_hooks
        net(mxnet.nd.ones((1, 3)))
        assert not net[0]._forward_hooks
    assert not net._forward_pre_hooks


def test_a_hybridized_net_runs_as_one_graph_with_one_warning(run, capfd):
    train(run, hybridize=True)
    trial = smd.create_trial(str(run))
    assert {"net_input_0", "net_output_0", "net_dense0_weight"} <= set(trial.tensor_names())
    assert not trial.has_tensor("net_dense0_output_0")
    assert capfd.readouterr().out.count("runs as one graph") == 1


def test_whoever_chooses_steps_alone_saves_losses(run):
    train(run, save_all=False)
    assert smd.create_trial(str(run)).tensor_names() == ["softmaxcrossentropyloss0_output_0"]


def test_what_is_not_a_block_is_reported_as_none(run, capfd):
    hook = smd.Hook(str(run))
    hook.register_block("net")
    net = net_of()
    hook.register_block(net)
    hook.register_block(net)
    output = capfd.readouterr().out
    assert "gluon.Block" in output
    assert "already" in output
    hook.close()


def test_numpy_is_the_old_one_here():
    assert np.lib.NumpyVersion(np.__version__) < "1.24.0"
