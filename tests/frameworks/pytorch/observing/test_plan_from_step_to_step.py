"""What the default plan keeps from step to step follows the model, and does not grow."""

import gc
import tracemalloc
from itertools import pairwise

import torch
from torch import nn

import smdebug.pytorch as smd
from smdebug.config.save_config import SaveConfigMode
from smdebug.saving.planning import default_plan
from smdebug.trials import create_trial
from tests.support.looking import each

WIDTH = 6


def train(hook, model, steps, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, WIDTH)).sum().backward()
        optimizer.step()


def hooked(place, model):
    hook = smd.Hook(place)
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    return hook


def test_a_replaced_layer_is_seen_from_the_next_saved_step_on(tmp_path):
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    hook = hooked(tmp_path / "run", model)
    train(hook, model, 2)
    model[1] = nn.Linear(WIDTH, 3)
    train(hook, model, 2)
    hook.close()
    trial = create_trial(tmp_path / "run")
    assert list(trial.tensor("Sequential_1.weight").steps()) == [2, 3]
    assert list(trial.tensor("1_output_0").steps()) == [0, 1, 2, 3]
    modules = [{row[0]: row[1] for row in trial.facts(step)["modules"]} for step in (1, 3)]
    assert [found["1"] for found in modules] == ["ReLU", "Linear"]


def test_a_replaced_parameter_is_measured_instead(tmp_path):
    model = nn.Linear(WIDTH, 2)
    hook = hooked(tmp_path / "run", model)
    train(hook, model, 2)
    model.weight = nn.Parameter(torch.full((2, WIDTH), 7.0))
    train(hook, model, 1, torch.optim.SGD(model.parameters(), 0.0))
    hook.close()
    trial = create_trial(tmp_path / "run")
    assert trial.tensor("Linear_weight").reduction_value(2, "mean") == 7
    assert trial.tensor("update/Linear_weight").reduction_value(2, "max", abs=True) == 0


def test_updates_are_differences_to_the_last_bit(tmp_path):
    model = nn.Sequential(nn.Linear(WIDTH, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))
    hook = hooked(tmp_path / "run", model)
    optimizer = torch.optim.Adam(model.parameters(), 0.3)
    changes = []
    for _ in range(4):
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        train(hook, model, 1, optimizer)
        changes.append({name: value - before[name] for name, value in model.named_parameters()})
    hook.close()
    trial = create_trial(tmp_path / "run")
    for step, change in enumerate(changes):
        for name, values in each(change.items(), at_least=6):
            update = trial.tensor(f"update/Sequential_{name}")
            assert update.reduction_value(step, "min") == float(values.min())
            assert update.reduction_value(step, "max") == float(values.max())


def test_nothing_grows_from_step_to_step(tmp_path, monkeypatch):
    """Neither objects nor memory, whether steps are saved or not."""
    monkeypatch.setattr(default_plan, "_SCHEDULE", SaveConfigMode(save_interval=2))
    for left_open in [found for found in gc.get_objects() if type(found) is smd.Hook]:
        left_open.close()  # it would keep the losses of this training, too
    model = nn.Sequential(nn.Linear(WIDTH, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))
    hook = hooked(tmp_path / "run", model)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)

    def after(steps):
        train(hook, model, steps, optimizer)
        hook.recorder.flush()
        gc.collect()
        ours = [
            found
            for found in gc.get_objects()
            if isinstance(found, torch.Tensor) or str(type(found).__module__).startswith("smdebug")
        ]
        taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/smdebug/*")])
        return len(ours), sum(trace.size for trace in taken.traces)

    tracemalloc.start()
    try:
        after(100)
        found = [after(200) for _ in range(4)]
    finally:
        tracemalloc.stop()
        hook.close()
    # What grows does so each time. Buffers are made once, when the steps before are still being written.
    objects, sizes = (
        min(later - before for before, later in pairwise(column)) for column in zip(*found, strict=True)
    )
    assert objects < 10  # a tenth of an object for each of 100 saved steps
    assert sizes < 10_000  # 100 bytes for each
