"""Train the network of `mnist.py` with MXNet Gluon, whose tensor names are those of the original notebook.

python mnist_mxnet.py --out-dir runs/bad --initializer uniform --lr 0.001
"""

import argparse

import mxnet
from digits import batches
from mxnet import autograd, gluon
from mxnet.gluon import nn

import smdebug.mxnet as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
parser.add_argument("--initializer", choices=("uniform", "he"), default="he")
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--steps", type=int, default=200)
arguments = parser.parse_args()

mxnet.random.seed(2)
net = nn.Sequential()
net.add(nn.Conv2D(6, 5, activation="relu"), nn.MaxPool2D())
net.add(nn.Conv2D(16, 3, activation="relu"), nn.MaxPool2D())
net.add(nn.Dense(48, activation="relu"), nn.Dense(32, activation="relu"), nn.Dense(10))
he = mxnet.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2)
net.initialize(mxnet.init.Uniform(1) if arguments.initializer == "uniform" else he)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": arguments.lr, "momentum": 0.9})

hook = smd.Hook(arguments.out_dir, save_all=True, save_config=smd.SaveConfig(save_interval=10))
hook.register_block(net)
hook.register_block(loss_of)
for images, labels in batches(arguments.steps):
    with autograd.record():
        loss = loss_of(net(mxnet.nd.array(images)), mxnet.nd.array(labels))
    loss.backward()
    trainer.step(len(labels))
hook.close()
print(f"{arguments.initializer}: loss {float(loss.mean().asscalar()):.3f}")
