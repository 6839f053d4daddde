"""The loss that a training with PyTorch saw, wherever its run is shown."""

import copy

import numpy as np
import pytest
import torch

import smdebug
from smdebug.runs import open_run, overview_of
from smdebug.runs.listing import list_runs
from smdebug.runs.live_run import LiveRun
from smdebug.runs.training_loss import training_loss
from smdebug.ui.finding.glance import Glance, Glancer
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.summary import summary_of

STEPS = 57


@pytest.mark.parametrize("evaluates", ["", "the model", "a mean of its weights"])
def test_every_place_shows_the_loss_that_the_training_saw(tmp_path, evaluates):
    out_dir = str(tmp_path / "run")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion, mean = torch.nn.MSELoss(), copy.deepcopy(model)
    inputs, seen = torch.randn(256, 4), []
    labels = inputs[:, :1] * inputs[:, 1:2]
    with smdebug.start(out_dir):
        for at in range(STEPS):
            chosen = torch.randint(256, (16,))
            optimizer.zero_grad()
            loss = criterion(model(inputs[chosen]), labels[chosen])
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
            if evaluates.startswith("a mean") and at % 10 == 6:
                with torch.no_grad():
                    criterion(mean(inputs[:16]), labels[:16] + 5)
            elif evaluates and at % 10 == 6:
                model.eval()
                with torch.no_grad():
                    criterion(model(inputs[:16]), model(inputs[:16]))  # 0
                model.train()
    loss = training_loss(open_run(out_dir))
    np.testing.assert_allclose(loss.values, seen, rtol=1e-6)
    (listed,) = list_runs(out_dir)
    assert (listed.loss, listed.best_loss) == pytest.approx((seen[-1], min(seen)))
    assert overview_of(open_run(out_dir)).loss.to_dict() == loss.to_dict()
    live, reader = LiveRun(out_dir), RunReader(out_dir)
    live.advance()
    while reader.advance(seconds=1):
        pass
    shown = Glancer().at(out_dir), summary_of(Glance(), reader)
    assert [glance.loss for glance in shown] == pytest.approx([seen[-1]] * 2)
    assert live.losses == pytest.approx(seen)
