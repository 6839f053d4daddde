"""The time between the optimizer's step and the next forward is waiting for data."""

import torch

import smdebug.pytorch as smd
from smdebug.saving.process import system_metrics


def test_a_training_waits_between_its_optimizer_and_the_next_forward(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(system_metrics.SystemMetrics.__init__, "__defaults__", (lambda: now[0],))
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with smd.Hook(str(tmp_path / "run")) as hook:
        hook.register_module(model)
        for _ in range(6):
            now[0] += 3.0  # the data loader
            loss = model(torch.ones(4, 2)).sum()
            now[0] += 1.0
            loss.backward()
            optimizer.step()
    found = smd.create_trial(str(tmp_path / "run")).system_metrics()
    assert [found[step].get("waiting_seconds") for step in range(6)] == [None, *[3.0] * 5]
    assert [found[step].get("step_seconds") for step in range(6)] == [None, *[4.0] * 5]
