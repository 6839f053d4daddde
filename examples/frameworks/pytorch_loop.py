"""PyTorch, with gradients, an evaluation of its own mode, and one layer's outputs.

python examples/frameworks/pytorch_loop.py --out-dir /tmp/pytorch-run
"""

import argparse

import torch
from torch import nn

import smdebug.pytorch as smd

parser = argparse.ArgumentParser()
parser.add_argument("--out-dir", required=True)
out_dir = parser.parse_args().out_dir

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

hook = smd.Hook(
    out_dir,
    save_config=smd.SaveConfig(save_interval=10),
    include_collections=["gradients", "activations"],
)
hook.get_collection("activations").include("1_output")
hook.register_module(model)
hook.register_loss(criterion)

for _epoch in range(3):
    hook.set_mode(smd.modes.TRAIN)
    for _ in range(20):
        inputs = torch.randn(32, 8)
        optimizer.zero_grad()
        criterion(model(inputs), (inputs[:, 0] > 0).long()).backward()
        optimizer.step()
    hook.set_mode(smd.modes.EVAL)
    with torch.no_grad():
        inputs = torch.randn(32, 8)
        criterion(model(inputs), (inputs[:, 0] > 0).long())
hook.close()

trial = smd.create_trial(out_dir)
losses = trial.tensor("CrossEntropyLoss_output_0").values(smd.modes.TRAIN)
print(f"the loss fell from {losses[0]:.2f} to {losses[max(losses)]:.2f}")
