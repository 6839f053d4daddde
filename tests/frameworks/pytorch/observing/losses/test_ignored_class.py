"""A criterion that leaves a class out is found in a training, and one that leaves out rows passes."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.runs import diagnose
from smdebug_default_rules.loss.ignored_class import TITLE

CLASSES, ROWS, STEPS = 5, 60, 12


def titles(place, ignored, missing=None, places=1):
    """Train for a few steps, on labels of which some may be replaced by `missing`; return what is found."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    labels = torch.arange(ROWS * places) % CLASSES
    if missing is not None:
        labels[: len(labels) // 2] = missing
    with smdebug.start(str(place)):
        for _ in range(STEPS):
            inputs = torch.randn(ROWS, places, 8) if places > 1 else torch.randn(ROWS, 8)
            optimizer.zero_grad()
            F.cross_entropy(model(inputs).flatten(0, -2), labels, ignore_index=ignored).backward()
            optimizer.step()
    return [issue.title for issue in diagnose(str(place)).issues if issue.cause == "loss input"]


@pytest.mark.parametrize("ignored", [0, 2, CLASSES - 1])
def test_a_class_that_is_left_out_is_found(tmp_path, ignored):
    assert titles(tmp_path / "run", ignored) == [TITLE]


@pytest.mark.parametrize(("ignored", "missing"), [(-100, None), (CLASSES, CLASSES), (-1, -1), (0, 0)])
def test_rows_without_a_label_pass(tmp_path, ignored, missing):
    assert titles(tmp_path / "run", ignored, missing) == []


def test_labels_of_places_pass(tmp_path):
    assert titles(tmp_path / "run", 0, places=3) == []
