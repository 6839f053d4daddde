"""MXNet's Gluon.

python examples/frameworks/mxnet_gluon.py --out-dir /tmp/mxnet-run
"""

import argparse

import mxnet
from mxnet import autograd, gluon

import smdebug.mxnet as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir

mxnet.random.seed(0)
net = gluon.nn.Sequential()
net.add(gluon.nn.Dense(16, activation="relu"), gluon.nn.Dense(2))
net.initialize()
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})

hook = smd.Hook(out_dir, save_config=smd.SaveConfig(save_interval=10), include_collections=["gradients"])
hook.register_block(net)
hook.register_block(loss_of)
for _ in range(40):
    inputs = mxnet.nd.random.normal(shape=(32, 8))
    with autograd.record():
        loss = loss_of(net(inputs), inputs[:, 0] > 0)
    loss.backward()
    trainer.step(32)
hook.close()

trial = smd.create_trial(out_dir)
(name,) = trial.tensor_names(collection="losses")
print({step: round(float(v.mean()), 2) for step, v in trial.tensor(name).values().items()})
