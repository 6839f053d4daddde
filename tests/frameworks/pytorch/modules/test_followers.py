"""How fast a model beside the trained one follows it, measured from call to call."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.trials import create_trial

pytestmark = pytest.mark.usefixtures("nothing_was_compiled")


def shares(place, follow, *, calls=1, steps=60, optimizer=torch.optim.Adam, follows_first=False):
    """Train beside a copy that `follow` moves; return what is known of it at each saved step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
    mean = copy.deepcopy(model).requires_grad_(False)
    made = optimizer(model.parameters(), 1e-2)
    with smdebug.start(str(place)):
        for _ in range(steps):
            rows = torch.randn(16, 6)
            for _ in range(calls):
                wanted = mean(rows).softmax(1)
            loss = F.mse_loss(model(rows).softmax(1), wanted) + model(rows)[:, 0].mean()
            made.zero_grad()
            loss.backward()
            if follows_first:
                follow(mean, model)
            made.step()
            if not follows_first:
                follow(mean, model)
    trial = create_trial(str(place))
    return [fact for step in trial.steps()[:-1] if (fact := trial.facts(step).get("followed"))]


def moved(share):
    def follow(mean, model):
        with torch.no_grad():
            for ours, theirs in zip(mean.parameters(), model.parameters(), strict=True):
                ours.mul_(1 - share).add_(theirs, alpha=share)

    return follow


def copied(mean, model):
    mean.load_state_dict(model.state_dict())


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99, 0.999])
@pytest.mark.parametrize("calls", [1, 3])
def test_the_share_of_a_mean_is_measured(tmp_path, share, calls):
    found = shares(tmp_path / "run", moved(share), calls=calls)
    assert len(found) >= 4
    for fact in found:
        assert fact["share"] == pytest.approx(share, rel=2e-3)
        assert not fact["is_same"]
        assert (fact["model"], fact["of"]) == ("Sequential", "Sequential_0.weight")


def test_a_mean_that_moves_before_the_update_is_measured(tmp_path):
    found = shares(tmp_path / "run", moved(0.99), follows_first=True)
    assert found
    assert all(fact["share"] > 0.9 for fact in found)


def test_a_copy_is_the_same(tmp_path):
    found = shares(tmp_path / "run", copied)
    assert found
    assert all(fact["is_same"] for fact in found)


def test_a_model_that_stays_has_moved_nothing(tmp_path):
    assert all(fact["share"] == 0 for fact in shares(tmp_path / "run", lambda mean, model: None))


def test_a_model_that_goes_its_own_way_is_no_mean(tmp_path):
    def own_way(mean, model):
        for parameter in mean.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.01)

    assert shares(tmp_path / "run", own_way) == []
