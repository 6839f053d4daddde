"""What the hook for PyTorch logs at the end of a training of which it has seen only a part."""

import torch
from torch import nn

import smdebug
import smdebug.pytorch as smd


def train(model, steps=3, step=None):
    """Train with an optimizer, or with `step` in its place."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(4, 3)), torch.zeros(4, 2)).backward()
        (step or optimizer.step)()


def by_hand(model):
    def step():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad

    return step


def test_a_training_that_was_seen_whole_ends_with_one_line(run, capsys):
    with smdebug.start(str(run)):
        train(nn.Linear(3, 2))
    output = capsys.readouterr().out
    assert output.count("Saved 3 of 3 steps") == 1
    assert "WARNING" not in output


def test_a_test_with_gradients_after_the_training_is_no_step_of_it(run, capsys):
    model = nn.Linear(3, 2)
    with smdebug.start(str(run)):
        train(model)
        for _ in range(2):
            nn.functional.mse_loss(model(torch.randn(4, 3)), torch.zeros(4, 2)).item()
    assert capsys.readouterr().out.count("of 3 steps") == 1


def test_a_step_that_ends_before_its_update_is_counted(run, capsys):
    model = nn.Linear(3, 2)
    with smdebug.start(str(run)):
        train(model)
        model(torch.randn(4, 3)).sum().backward()
    assert capsys.readouterr().out.count("of 4 steps") == 1


def test_an_optimizer_that_was_not_seen_is_missed(run, capsys):
    model = nn.Linear(3, 2)
    with smd.Hook(run) as hook:
        hook.observes = True
        hook.register_module(model)
        train(model, step=by_hand(model))
    output = capsys.readouterr().out
    assert output.count("Gradients were seen in 3 steps, and no optimizer") == 1
    assert "torch.optim" in output


def test_a_model_that_was_not_registered_is_named(run, capsys):
    with smd.Hook(run):
        train(nn.Linear(3, 2))
    output = capsys.readouterr().out
    assert "because no step began. Register the model before it is trained" in output


def test_a_process_without_a_training_is_named(run, capsys):
    with smdebug.start(str(run)):
        torch.ones(3).sum()
    assert "no training of PyTorch, Keras or XGBoost was seen in this process" in capsys.readouterr().out


def test_a_loss_without_a_criterion_is_seen_where_backward_begins(run, capsys):
    model = nn.Linear(3, 2)
    with smdebug.start(str(run)):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (model(torch.randn(4, 3)) ** 2).mean().backward()
            optimizer.step()
    assert "No loss was seen" not in capsys.readouterr().out
