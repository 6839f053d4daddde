"""A training with Lightning Fabric: two backward passes make an update. Takes RUN and STRATEGY."""

import sys

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import ModelParallelStrategy
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

import smdebug


def sharded(model, mesh):
    fully_shard(model[0], mesh=mesh["data_parallel"])
    return fully_shard(model, mesh=mesh["data_parallel"])


torch.set_num_threads(1)
smdebug.start(sys.argv[1])
strategy = ModelParallelStrategy(sharded, data_parallel_size=2, tensor_parallel_size=1)
fabric = Fabric(accelerator="cpu", devices=2, strategy=strategy if sys.argv[2] == "sharded" else "ddp")
fabric.launch()
torch.manual_seed(0)
model = fabric.setup_module(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
optimizer = fabric.setup_optimizers(torch.optim.AdamW(model.parameters(), lr=1e-2))
rows = torch.randn(512, 8)
batches = fabric.setup_dataloaders(DataLoader(TensorDataset(rows, rows[:, :1]), batch_size=8))
for number, (inputs, targets) in enumerate(batches):
    is_first = number % 2 == 0
    with fabric.no_backward_sync(model, enabled=is_first):
        fabric.backward(nn.functional.mse_loss(model(inputs), targets))
    if not is_first:
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
fabric.barrier()
