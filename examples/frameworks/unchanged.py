"""A training that knows nothing of a debugger.

smdebug run --out-dir /tmp/unchanged-run --collections weights,gradients --save-interval 10 \\
    examples/frameworks/unchanged.py
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(50):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), (inputs[:, 0] > 0).long())
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
