"""Kullback-Leibler divergences are recognised in the graph, with what they were given."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.pytorch.observing.loss_graph import describe
from smdebug.runs.evaluation.evaluating import evaluate

SCORES = torch.randn(8, 5, requires_grad=True)
SHARES = torch.randn(8, 5).softmax(1)
LABELS = torch.tensor([0, 1, 2, 3, 4, 0, 0, 0])


def divergence(given=None, shares=SHARES, reduction="batchmean"):
    return F.kl_div(F.log_softmax(SCORES, 1) if given is None else given, shares, reduction=reduction)


def terms_of(loss):
    return [(term.criterion, term.given, term.rows) for term in describe(loss).terms]


@pytest.mark.parametrize(
    ("given", "name"),
    [(lambda: F.log_softmax(SCORES, 1), "log-softmax"), (lambda: SCORES.softmax(1), "softmax")],
)
def test_a_divergence_knows_what_it_was_given(given, name):
    assert terms_of(divergence(given())) == [("Kullback-Leibler divergence", name, 8)]


@pytest.mark.parametrize(
    ("loss", "factor", "reduction"),
    [
        (lambda: 4 * divergence(), 0.5, "sum"),
        (lambda: divergence(reduction="sum"), 1.0, "sum"),
        (lambda: divergence(reduction="none").mean(), 1.0, "mean"),
        (lambda: nn.KLDivLoss(reduction="batchmean")(F.log_softmax(SCORES / 2, 1), SHARES), 0.125, "sum"),
    ],
)
def test_a_divergence_alone_is_the_whole_loss(loss, factor, reduction):
    graph = describe(loss())
    assert (graph.is_whole, graph.factor, graph.terms[0].reduction) == (True, factor, reduction)


def test_beside_another_criterion_it_is_one_of_two_terms():
    both = [name for name, *_ in terms_of(F.cross_entropy(SCORES, LABELS) + divergence())]
    assert both == ["cross entropy", "Kullback-Leibler divergence"]


@pytest.mark.parametrize(
    "loss",
    [
        lambda: divergence() - SCORES.mean(),  # of a policy, which need not fall
        lambda: divergence(shares=2 * SHARES),
        lambda: divergence(SCORES * 1.0),
        lambda: (SHARES - LABELS[:, None] * F.log_softmax(SCORES, 1)).sum(),
        lambda: -(SHARES * F.log_softmax(SCORES, 1)).sum(),
    ],
)
def test_what_is_like_a_divergence_is_none(loss):
    assert terms_of(loss()) == []


@pytest.mark.parametrize("is_right", [True, False])
def test_probabilities_in_place_of_their_logarithms_are_reported(tmp_path, is_right):
    torch.manual_seed(0)
    student = nn.Linear(6, 5)
    optimizer = torch.optim.Adam(student.parameters(), 1e-2)
    with smdebug.start(str(tmp_path / "run")):
        for _ in range(12):
            rows = torch.randn(32, 6)
            made = F.log_softmax if is_right else F.softmax
            loss = divergence(made(student(rows), 1), rows[:, :5].softmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    (judged,) = evaluate(str(tmp_path / "run"), ["LossInput"])
    assert [at.findings[0]["title"] for at in judged.found][:1] == (
        [] if is_right else ["The loss needs log-probabilities"]
    )
