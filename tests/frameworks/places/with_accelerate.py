"""A training with accelerate: two backward passes make an update. `python with_accelerate.py RUN`."""

import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import smdebug

torch.set_num_threads(1)
smdebug.start(sys.argv[1])
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
rows = torch.randn(512, 8)
batches = DataLoader(TensorDataset(rows, rows[:, :1]), batch_size=8)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
for inputs, targets in batches:
    with accelerator.accumulate(model):
        accelerator.backward(nn.functional.mse_loss(model(inputs), targets))
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
accelerator.wait_for_everyone()
accelerator.end_training()
