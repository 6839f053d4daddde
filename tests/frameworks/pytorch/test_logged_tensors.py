"""Tensors that a training logs to be looked at."""

from __future__ import annotations

import pytest
import torch

import smdebug
from smdebug.exceptions import SMDebugTypeError
from smdebug.trials import create_trial


def test_tensors_are_logged_as_images_and_histograms(tmp_path):
    model = torch.nn.Linear(4, 2)
    image = torch.linspace(0, 1, 3 * 8 * 6, requires_grad=True).reshape(3, 8, 6)
    with smdebug.start(str(tmp_path / "run")) as watched:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(torch.ones(5, 4)), torch.zeros(5, 2)).backward()
            optimizer.step()
        watched.log(image=image, half=image.bfloat16(), loss_text="fine", accuracy=torch.tensor(0.5))
        smdebug.log(weights=smdebug.Histogram(model.weight, bins=4))
        smdebug.log(one=torch.tensor([[0.25]]))
        with pytest.raises(SMDebugTypeError, match="channels first or last"):
            smdebug.log(ambiguous=torch.zeros(3, 8, 4))
    trial = create_trial(str(tmp_path / "run"))
    logged = {value.name: value for value in trial.logged()}
    assert set(logged) == {"image", "half", "loss_text", "weights"}
    assert logged["image"].shape == (8, 6, 3)
    assert logged["image"].read()[0, 0, 0] == 0
    assert logged["image"].read()[-1, -1, 2] == 255
    assert sum(logged["weights"].read()["counts"]) == 8
    assert {value.step for value in logged.values()} == {2}
    assert trial.series("accuracy").values.tolist() == [0.5]
    assert trial.series("one").values.tolist() == [0.25]
