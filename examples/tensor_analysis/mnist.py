"""Train a small convolutional network on digits with PyTorch, without using the debugger.

python mnist.py --initializer uniform --lr 0.001
"""

import argparse

import torch
from digits import batches
from torch import nn


class Net(nn.Module):
    """Two convolutions and three dense layers, named as in the original notebook on MXNet."""

    def __init__(self):
        super().__init__()
        self.conv0, self.conv0_relu = nn.Conv2d(1, 6, 5), nn.ReLU()
        self.conv1, self.conv1_relu = nn.Conv2d(6, 16, 3), nn.ReLU()
        self.dense0, self.dense0_relu = nn.Linear(64, 48), nn.ReLU()
        self.dense1, self.dense1_relu = nn.Linear(48, 32), nn.ReLU()
        self.dense2 = nn.Linear(32, 10)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images):
        x = self.pool(self.conv0_relu(self.conv0(images)))
        x = self.pool(self.conv1_relu(self.conv1(x))).flatten(1)
        return self.dense2(self.dense1_relu(self.dense1(self.dense0_relu(self.dense0(x)))))


parser = argparse.ArgumentParser()
parser.add_argument("--initializer", choices=("uniform", "he"), default="he")
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--steps", type=int, default=200)
arguments = parser.parse_args()

torch.manual_seed(2)
torch.set_num_threads(1)  # with tensors this small, more threads only wait for each other
net = Net()
for parameter in net.parameters():
    if arguments.initializer == "uniform":
        nn.init.uniform_(parameter, -1, 1)
    elif parameter.ndim > 1:
        nn.init.kaiming_normal_(parameter, nonlinearity="relu")
    else:
        nn.init.zeros_(parameter)
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=arguments.lr, momentum=0.9)
right = seen = 0
for step, (images, labels) in enumerate(batches(arguments.steps)):
    answers, labels = net(torch.from_numpy(images)), torch.from_numpy(labels)
    loss = loss_of(answers, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step >= arguments.steps - 20:
        right, seen = right + int((answers.argmax(1) == labels).sum()), seen + len(labels)
print(f"{arguments.initializer}: loss {loss.item():.3f}, {right / seen:.0%} of the last digits are right")
