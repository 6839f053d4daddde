"""A validation that counts right answers without a loss, in training mode, and what others ask a model."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.trials import create_trial

DIGITS = load_digits()
IMAGES = torch.tensor(DIGITS.data / 16, dtype=torch.float32)
LABELS = torch.tensor(DIGITS.target)
HELD_OUT = slice(1400, 1480)


def train(place, between, *, normalises=True, loss=F.cross_entropy, every=8):
    """Train a classifier, and do something with it every so many steps."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(32) if normalises else nn.Dropout(0.3)
    with smdebug.start(str(place)):
        model = nn.Sequential(nn.Linear(64, 32), norm, nn.ReLU(), nn.Linear(32, 10))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(48):
            rows = torch.randint(0, 1400, (32,))
            optimizer.zero_grad()
            loss(model(IMAGES[rows]), LABELS[rows]).backward()
            optimizer.step()
            if step % every == every - 1:
                with torch.no_grad():
                    between(model)
                model.train()
    (result,) = evaluate(create_trial(str(place)), ["ModuleModes"])
    assert not result.error
    return result.found[0].findings if result.found else []


def count_right_answers(model, batches=2):
    for rows in torch.arange(1400, 1480).chunk(batches):
        (model(IMAGES[rows]).argmax(1) == LABELS[rows]).sum().item()


def test_right_answers_that_are_counted_in_training_mode_are_found(tmp_path):
    (found,) = train(tmp_path / "run", count_right_answers)
    assert found["cause"] == "mode mismatch"
    assert found["tensor"] == "1"
    assert found["since"] == 8
    assert "model.eval()" in found["advice"][0]


def test_dropout_is_found_where_each_row_is_asked_once(tmp_path):
    assert train(tmp_path / "run", lambda model: count_right_answers(model, 1), normalises=False)


@pytest.mark.parametrize(
    ("between", "normalises"),
    [
        (lambda model: count_right_answers(model.eval()), True),
        # Several passes show how sure a model is.
        (lambda model: [model(IMAGES[HELD_OUT]) for _ in range(5)], False),
        # Statistics are computed anew from rows of the training.
        (lambda model: model(IMAGES[torch.randint(0, 1400, (64,))]), True),
        (lambda model: model(IMAGES[:2]), True),
    ],
    ids=["evaluated", "several passes", "rows of the training", "a picture or two"],
)
def test_what_is_asked_on_purpose_passes(tmp_path, between, normalises):
    assert train(tmp_path / "run", between, normalises=normalises) == []


def test_a_model_that_is_asked_at_each_step_may_teach_or_choose_rows(tmp_path):
    assert train(tmp_path / "run", count_right_answers, every=2) == []


def test_a_model_with_another_loss_may_draw_samples(tmp_path):
    def error(outputs, labels):
        return F.mse_loss(outputs, F.one_hot(labels, 10).float())

    assert train(tmp_path / "run", count_right_answers, loss=error) == []
