"""Steps that are computed twice: equal on a sound machine, whatever a model does, and not on another."""

import itertools
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import smdebug.pytorch as smd
from smdebug import modes
from smdebug.exceptions import SMDebugValueError
from smdebug_default_rules.values.computed_twice import NOT_ASKED, ComputedTwice
from tests.frameworks.pytorch.repeating.stored_training import noted

STEPS = (1, 2, 3, 20, 40)


class Counting(nn.Module):
    """A model whose forward depends on all that may be forgotten: counts, lists, buffers, random numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 2)
        self.calls, self.seen, self.hidden = 0, [], torch.zeros(16)
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, rows):
        self.calls += 1
        hidden = torch.relu(self.norm(self.first(rows)))
        self.mean = 0.9 * self.mean + 0.1 * hidden.detach().mean(0)
        self.seen.append(float(hidden.detach().sum()))
        noise = random.random() + np.random.random() + len(self.seen) % 3
        hidden = nn.functional.dropout(hidden + self.hidden, 0.3) * (1 + noise / 100 + self.calls % 2)
        self.hidden = hidden.detach().mean(0) + self.mean
        return self.last(hidden)


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2)), nn.Linear(16, 2)

    def forward(self, rows):
        return self.last(checkpoint(self.first, rows, use_reentrant=False))


def plain():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(16, 2))


def train(place, make=plain, *, steps=50, every=20, change=None, batches=1, autocast=False):
    """Train a model; return what it is in the end, down to the next random number."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = make()
    options = {} if every is None else {"compute_twice": every}
    hook = smd.Hook(str(place), **options)
    hook.register_module(model)
    hook.follow_training_flag()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if change is not None:
        change(model)
    for _ in range(steps):
        for _ in range(batches):
            rows = torch.randn(16, 8)
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = nn.functional.cross_entropy(model(rows), (rows.sum(1) > 0).long())
            (loss / batches).backward()
        optimizer.step()
        optimizer.zero_grad()
    hook.close()
    kept = [getattr(model, name, None) for name in ("calls", "seen", "hidden")]
    return [*model.state_dict().values()], kept, torch.rand(1), random.random()


def found(place):
    """The findings of the rule, and why it could not check steps after the first."""
    trial = smd.create_trial(str(place))
    rule = ComputedTwice(trial)
    findings, reasons = [], set()
    for step in trial.steps(mode=modes.TRAIN):
        rule.not_checked = None
        if rule.invoke_at_step(step):
            findings += rule.findings
        reasons |= {rule.not_checked} if step else set()
    return findings, reasons - {None}


def same(first, second):
    (values, *rest), (others, *others_rest) = first, second
    return all(map(torch.equal, values, others)) and str(rest) == str(others_rest)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (plain, {}),
        (Counting, {}),
        (Checkpointed, {}),
        (Counting, {"autocast": True}),
        (plain, {"batches": 3}),
    ],
    ids=["plain", "keeps state", "checkpointed", "autocast", "accumulates"],
)
def test_a_sound_machine_gives_the_same_bits_and_the_training_is_what_it_was(tmp_path, make, options):
    without = train(tmp_path / "without", make, every=None, **options)
    assert same(train(tmp_path / "a", make, **options), without)
    facts = noted(tmp_path / "a")
    assert len(facts) == len(STEPS)
    for fact in facts.values():
        assert fact["outputs"].keys() == fact["gradients"].keys() == {"equal"}
        assert fact["gradients"]["equal"] >= 4
    assert found(tmp_path / "a") == ([], set())
    assert noted(tmp_path / "without") == {}


def wrong_output(*calls):
    """Change one bit of what the first layer gives, in these calls of it."""

    def change(model):
        count = itertools.count()

        def flip(module, args, output):
            if next(count) in calls:
                changed = output.detach().clone()
                changed.view(torch.int32)[3, 5] ^= 1
                return output + (changed - output.detach())
            return None

        model[0].register_forward_hook(flip)

    return change


# Of 50 steps, 1, 2, 3 and 20 have been called twice when step 40 begins.
AT_40 = 44


def test_a_bit_that_is_wrong_once_is_found_with_its_layer(tmp_path):
    train(tmp_path / "a", change=wrong_output(AT_40))
    findings, _ = found(tmp_path / "a")
    assert [(each.since, each.worker, each.tensor) for each in findings] == [(40, "worker_0", "0_output_0")]
    assert findings[0].title == "A computation on worker_0 went wrong once"
    assert findings[0].message == "Computed again, the output of 0 at step 40 is not what the training used"
    assert findings[0].why[1] == "At 4 earlier steps, all bits were the same twice"


def test_results_that_vary_are_told_from_those_wrong_once(tmp_path):
    train(tmp_path / "a", change=wrong_output(AT_40, AT_40 + 2, AT_40 + 3))
    findings, _ = found(tmp_path / "a")
    assert [each.title for each in findings] == ["The same numbers give other results on worker_0"]
    said = "5 further computations have given 2 values, 2 times the first"
    assert findings[0].why[0] == f"The output of 0: {said}"


def test_a_gradient_that_is_wrong_once_is_found(tmp_path):
    def change(model):
        count = itertools.count()
        model[3].weight.register_hook(lambda gradient: gradient * (1 + 2**-20 * (next(count) == AT_40)))

    train(tmp_path / "a", change=change)
    findings, _ = found(tmp_path / "a")
    assert [(each.since, each.tensor) for each in findings] == [(40, "gradient/Sequential_3.weight")]


def test_what_is_never_the_same_is_not_checked(tmp_path):
    def change(model):
        noise = torch.Generator().manual_seed(3)
        model[0].register_forward_hook(
            lambda module, args, output: output + 1e-3 * torch.rand(output.shape, generator=noise)
        )

    train(tmp_path / "a", change=change)
    assert found(tmp_path / "a") == ([], {"computed twice, outputs differ from the first step on"})


def test_a_loss_with_weights_in_it_leaves_gradients_out_and_no_finding(tmp_path):
    """Those gradients are not of the model's forward alone."""
    torch.manual_seed(0)
    model = plain()
    hook = smd.Hook(str(tmp_path / "a"), compute_twice=20)
    hook.register_module(model)
    hook.follow_training_flag()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(50):
        loss = model(torch.randn(16, 8)).square().mean() + 0.01 * model[0].weight.square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    hook.close()
    facts = noted(tmp_path / "a")
    assert {"equal"} == set().union(*(fact["outputs"] for fact in facts.values()))
    assert facts[1]["gradients"]["first"] == "gradient/Sequential_0.weight"
    assert found(tmp_path / "a") == ([], set())


def test_a_compiled_model_is_not_computed_twice_and_says_so(tmp_path):
    train(tmp_path / "a", lambda: torch.compile(plain(), backend="eager"), steps=12)
    findings, reasons = found(tmp_path / "a")
    assert not findings
    assert "no step was computed twice: the model is compiled" in reasons


def test_without_the_option_the_rule_says_how_to_ask(tmp_path):
    train(tmp_path / "a", steps=12, every=None)
    assert found(tmp_path / "a") == ([], {NOT_ASKED})


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "1000", True])
def test_an_interval_that_is_none_is_refused(tmp_path, wrong):
    with pytest.raises(SMDebugValueError, match="compute_twice takes a number of steps"):
        smd.Hook(str(tmp_path / "a"), compute_twice=wrong)
