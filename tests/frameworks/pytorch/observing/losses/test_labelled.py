"""The loss that a causal language model computes of its labels without a criterion, as with a fused head."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug import modes
from smdebug.trials import create_trial
from smdebug_default_rules.inputs.token_labels import TokenLabels
from tests.smdebug_default_rules.made_runs import findings_of

CLASSES, STEPS = 12, 6


class Fused(torch.autograd.Function):
    """Log probabilities of labels, as an operation of its own in the graph."""

    @staticmethod
    def forward(context, hidden, weight, labels):
        context.save_for_backward(hidden, weight, labels)
        scores = F.log_softmax(hidden @ weight.T, -1)
        return scores.gather(-1, labels.clamp(min=0)[..., None])[..., 0]

    @staticmethod
    def backward(context, gradient):
        hidden, weight, labels = context.saved_tensors
        scores = F.softmax(hidden @ weight.T, -1)
        slope = (F.one_hot(labels.clamp(min=0), CLASSES) - scores) * gradient[..., None]
        return slope @ weight, slope.flatten(0, 1).T @ hidden.flatten(0, 1), None


class CausalModel(nn.Module):
    loss_type = "ForCausalLM"

    def __init__(self, *, calls_criterion=False):
        super().__init__()
        self.config = SimpleNamespace(vocab_size=CLASSES)
        self.embed, self.head = nn.Embedding(CLASSES, 8), nn.Linear(8, CLASSES, bias=False)
        self.calls_criterion = calls_criterion

    def forward(self, input_ids, attention_mask=None, labels=None):
        hidden = self.embed(input_ids)
        if labels is None:
            return {"logits": self.head(hidden)}
        if self.calls_criterion:
            shifted = F.pad(labels, (0, 1), value=-100)[:, 1:]
            return {"loss": F.cross_entropy(self.head(hidden).flatten(0, 1), shifted.flatten())}
        labels = labels[:, 1:]
        counts = labels != -100
        scores = Fused.apply(hidden[:, :-1], self.head.weight, labels).masked_fill(~counts, 0)
        return {"loss": -scores.sum() / counts.sum(), "log_probs": scores, "count": counts.sum()}


def batch(rows=6, length=9):
    ids = (torch.arange(length) + torch.randint(3, CLASSES - 3, (rows, 1))) % (CLASSES - 2) + 2
    mask = torch.ones_like(ids)
    mask[0, -3:] = 0
    ids[0, -3:] = 0
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.where(mask == 1, -100)}


def run_of(place, loss_of, *, make_batch=batch, steps=STEPS, evaluates=False, **options):
    torch.manual_seed(0)
    with smdebug.start(place):
        model = CausalModel(**options)
        optimizer = torch.optim.AdamW(model.parameters(), 0.05)
        for step in range(steps):
            optimizer.zero_grad()
            loss_of(model(**make_batch())).backward()
            optimizer.step()
            if evaluates and step % 3 == 2:
                model.eval()
                with torch.no_grad():
                    for rows in (4, 6):
                        model(**batch(rows))
                model.train()
    return create_trial(place)


def own_loss(output):
    return output["loss"]


def written_loss(output):
    return (-output["log_probs"]).sum() / output["count"]


@pytest.mark.parametrize("loss_of", [own_loss, written_loss, lambda output: output["loss"] / 4])
def test_labels_are_those_of_a_criterion_that_was_called(tmp_path, loss_of):
    fused = run_of(str(tmp_path / "fused"), loss_of).facts(0)["loss"]
    called = run_of(str(tmp_path / "called"), own_loss, calls_criterion=True).facts(0)["loss"]
    assert fused["tokens"] == called["tokens"]
    (term,), (known,) = fused["terms"], called["terms"]
    assert known.pop("reduction") == "mean"
    assert term.pop("reduction") == "sum"
    assert term == known
    value = fused["value"] / fused["factor"] / term["targets"]
    assert value == pytest.approx(called["value"], rel=1e-5)


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda output: -F.logsigmoid(output["log_probs"].sum(1)).mean(),
        lambda output: output["loss"] + output["log_probs"].square().mean(),
        lambda output: output["loss"].exp(),
    ],
    ids=["preferences", "a sum", "a function"],
)
def test_another_loss_of_what_was_returned_has_no_term(tmp_path, loss_of):
    assert run_of(str(tmp_path / "run"), loss_of).facts(0)["loss"]["terms"] == []


def test_weights_of_tokens_are_seen(tmp_path):
    def weighted(output):
        scores = output["log_probs"]
        return (-scores * scores.exp().detach()).sum() / output["count"]

    (term,) = run_of(str(tmp_path / "run"), weighted).facts(0)["loss"]["terms"]
    assert term["weighted"]


@pytest.mark.parametrize("calls_criterion", [True, False])
def test_an_evaluation_has_the_mean_loss_of_its_batches_once(tmp_path, calls_criterion):
    seen = []
    forward = CausalModel.forward

    def watched(self, *args, **kwargs):
        output = forward(self, *args, **kwargs)
        if not self.training:
            seen.append(float(output["loss"]))
        return output

    CausalModel.forward = watched
    try:
        trial = run_of(str(tmp_path / "run"), own_loss, evaluates=True, calls_criterion=calls_criterion)
    finally:
        CausalModel.forward = forward
    losses = trial.series("loss")
    assert list(losses.of(modes.TRAIN).steps) == list(range(STEPS))
    means = [sum(seen[:2]) / 2, sum(seen[2:]) / 2]
    assert list(losses.of(modes.EVAL).values) == pytest.approx(means, rel=1e-5)


def test_an_evaluation_of_another_loss_has_none(tmp_path):
    trial = run_of(str(tmp_path / "run"), lambda output: output["log_probs"].square().mean(), evaluates=True)
    assert not len(trial.series("loss").of(modes.EVAL).steps)


@pytest.mark.parametrize("is_shifted", [True, False])
def test_labels_that_are_shifted_twice_are_found_without_a_criterion(tmp_path, is_shifted):
    def random_batch():
        ids = torch.randint(2, CLASSES, (6, 9))
        labels = torch.cat([ids[:, 1:], torch.full((6, 1), -100)], 1) if is_shifted else ids
        return {"input_ids": ids, "labels": labels}

    trial = run_of(str(tmp_path / "run"), own_loss, make_batch=random_batch)
    found = findings_of(TokenLabels(trial), trial.steps())
    assert {finding.title for _, finding in found} == ({"Labels are shifted twice"} if is_shifted else set())
