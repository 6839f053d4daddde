"""What a loss was given, and multiplied with, is read off its graph however it was computed."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from smdebug.pytorch.observing.loss_graph import describe, wrong_axis

SCORES = torch.randn(8, 5, requires_grad=True)
LABELS = torch.tensor([0, 1, 2, 3, 4, 0, 0, 0])
needs_shapes = pytest.mark.skipif(
    not hasattr(SCORES.sum().grad_fn, "_input_metadata"), reason="PyTorch 2.1 keeps no shapes"
)


def term_of(loss):
    (term,) = describe(loss).terms
    return term


@pytest.mark.parametrize(
    "criterion",
    [
        F.cross_entropy,
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(label_smoothing=0.1),
        lambda scores, labels: F.nll_loss(F.log_softmax(scores, 1), labels),
        lambda scores, labels: F.cross_entropy(scores, labels, reduction="none").mean(),
        lambda scores, labels: F.cross_entropy(scores, labels) + 0.1 * scores.square().sum(),
    ],
)
def test_a_cross_entropy_is_recognised_with_its_targets(criterion):
    term = term_of(criterion(SCORES, LABELS))
    assert (term.criterion, term.given, term.rows, term.classes) == ("cross entropy", "", 8, 5)
    assert term.targets.tolist() == LABELS.tolist()


def _balanced(part):
    return F.cross_entropy(SCORES, LABELS) + part


SHARES = SCORES.softmax(1).mean(0)


@pytest.mark.parametrize(
    ("loss", "idle"),
    [
        (lambda: F.cross_entropy(SCORES, LABELS), ""),
        (lambda: 0.5 * F.cross_entropy(SCORES, LABELS), ""),
        (lambda: _balanced(0.01 * SHARES.square().sum()), ""),
        (lambda: _balanced(0.01 * SHARES.square().sum().detach()), "no gradient"),
        (lambda: (_balanced(torch.tensor(1.5)) + SHARES.square().sum()) / 4, "no gradient"),
        (lambda: _balanced(0.0 * SHARES.square().sum()), "weight 0"),
        (lambda: _balanced(SHARES.square().sum() * 0), "weight 0"),
        (lambda: _balanced(SHARES.square().sum() * torch.tensor(0.0)), "weight 0"),
        (lambda: _balanced((SHARES * torch.zeros(5)).sum()), ""),
    ],
)
def test_a_part_of_a_sum_that_teaches_nothing_is_noted(loss, idle):
    assert describe(loss()).idle == idle


def test_a_cross_entropy_of_probabilities_is_distinguished_from_one_of_scores():
    model = nn.Sequential(nn.Linear(5, 5), nn.Softmax(dim=1))
    assert term_of(F.cross_entropy(model(SCORES), LABELS)).given == "softmax"
    assert term_of(F.cross_entropy(torch.sigmoid(SCORES), LABELS)).given == "sigmoid"
    assert term_of(F.cross_entropy(F.log_softmax(SCORES, 1), LABELS)).given == "log-softmax"
    assert term_of(F.cross_entropy(model[0](SCORES), LABELS)).given == ""
    assert term_of(F.cross_entropy(model[0](SCORES).relu(), LABELS)).given == "relu"
    assert term_of(F.cross_entropy(model[0](SCORES.relu()), LABELS)).given == ""


def test_a_negative_log_likelihood_without_a_logarithm_before_it_is_recognised():
    model = nn.Sequential(nn.Linear(5, 5), nn.Softmax(dim=1))
    assert term_of(F.nll_loss(model[0](SCORES), LABELS)).given == "raw outputs"
    assert term_of(F.nll_loss(model(SCORES), LABELS)).given == "probabilities"
    assert term_of(F.nll_loss(model(SCORES).log(), LABELS)).given == ""


@pytest.mark.parametrize(
    ("shape", "axis", "classes", "found"),
    [
        ((8, 5), 0, 5, (0, 8)),
        ((8, 5), -2, 5, (0, 8)),
        ((8, 5), 1, 5, None),
        ((8, 5), -1, 5, None),
        ((2, 3, 5), 1, 5, (1, 3)),
        ((2, 3, 5), -1, 5, None),
        ((2, 5, 4, 4), 1, 5, None),
        ((2, 5, 4, 4), 3, 5, (3, 4)),
        ((5, 5), 0, 5, None),  # nobody can tell
        ((8, 10), 0, 5, None),  # only a part of the classes is compared
        ((8,), 0, 8, None),
        ((8, 1), 0, 1, None),  # a choice among rows
    ],
)
def test_a_softmax_is_over_the_wrong_axis_if_the_classes_lie_along_another(shape, axis, classes, found):
    assert wrong_axis(shape, axis, classes) == found


@needs_shapes
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "loss",
    [
        lambda axis: F.nll_loss(F.log_softmax(SCORES, axis), LABELS),
        lambda axis: F.nll_loss(SCORES.softmax(axis).log(), LABELS),
        lambda axis: F.cross_entropy(SCORES.softmax(axis), LABELS),
        lambda axis: F.mse_loss(SCORES.softmax(axis), F.one_hot(LABELS, 5).float()),
    ],
)
def test_the_axis_of_a_softmax_before_the_criterion_is_known(loss, axis):
    assert term_of(loss(axis)).normalised == ((0, 8) if axis == 0 else None)


@needs_shapes
def test_the_axis_of_a_softmax_is_known_past_reshaping():
    tokens = torch.randn(2, 4, 5, requires_grad=True)
    of_axis = [
        term_of(F.nll_loss(F.log_softmax(tokens, axis).view(-1, 5), LABELS)).normalised for axis in range(3)
    ]
    assert of_axis == [(0, 2), (1, 4), None]


def test_what_a_criterion_was_given_is_seen_past_reshaping():
    tokens = torch.randn(2, 3, 5, requires_grad=True).softmax(2)
    loss = F.cross_entropy(tokens.flatten(0, 1), torch.zeros(6, dtype=torch.long))
    assert term_of(loss).given == "softmax"


def test_attention_and_other_softmaxes_inside_a_model_are_not_what_the_loss_is_given():
    attention = nn.MultiheadAttention(5, 1, batch_first=True)
    output, _ = attention(SCORES[None], SCORES[None], SCORES[None])
    assert term_of(F.cross_entropy(output[0], LABELS)).given == ""


@pytest.mark.parametrize(
    ("loss", "criterion", "given"),
    [
        (F.mse_loss(SCORES, torch.zeros(8, 5)), "mean squared error", ""),
        (
            F.binary_cross_entropy(SCORES.sigmoid(), torch.ones(8, 5)),
            "binary cross entropy",
            "sigmoid",
        ),
        (
            F.binary_cross_entropy_with_logits(SCORES.sigmoid(), torch.ones(8, 5)),
            "binary cross entropy with logits",
            "sigmoid",
        ),
    ],
)
def test_other_criteria_are_recognised(loss, criterion, given):
    term = term_of(loss)
    assert (term.criterion, term.given) == (criterion, given)
    assert term.targets is None


def test_the_factor_of_a_loss_is_the_product_of_its_constants():
    loss = F.cross_entropy(SCORES, LABELS)
    assert describe(loss).factor == 1
    assert describe(loss / 4).factor == pytest.approx(0.25)
    assert describe(2 * loss / 8).factor == pytest.approx(0.25)
    assert describe(-loss / 4).factor == pytest.approx(-0.25)
    assert describe(loss * torch.tensor(65536.0)).factor == pytest.approx(65536)


def test_several_criteria_are_all_named():
    loss = F.cross_entropy(SCORES, LABELS) + F.mse_loss(SCORES, torch.zeros(8, 5))
    assert sorted(term.criterion for term in describe(loss).terms) == [
        "cross entropy",
        "mean squared error",
    ]


@needs_shapes
def test_a_difference_of_a_column_and_a_row_is_noticed():
    output = nn.Linear(5, 1)(SCORES)
    assert describe((output - torch.zeros(8)).square().mean()).broadcast == (8, 8)
    assert describe((output - torch.zeros(8, 1)).square().mean()).broadcast is None
    assert describe((SCORES[:5] - SCORES[:5].mean(1, keepdim=True)).square().mean()).broadcast is None


@needs_shapes
@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("criterion", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_a_criterion_that_compares_each_output_with_all_targets_is_seen(criterion):
    column = torch.zeros(8, 1, requires_grad=True) * 2
    assert describe(criterion(column, torch.zeros(8))).broadcast == (8, 8)
    assert describe(criterion(column[:, 0], torch.zeros(8, 1))).broadcast == (8, 8)
    assert describe(criterion(column, torch.zeros(8, 1))).broadcast is None
    assert describe(criterion(column[:, 0], torch.zeros(8))).broadcast is None


def test_distances_between_all_pairs_of_outputs_are_wanted():
    column = torch.zeros(8, 1, requires_grad=True) * 2
    assert describe((column.expand(8, 8) - column.T.expand(8, 8)).abs().mean()).broadcast is None


def test_what_has_no_graph_or_an_unknown_one_is_described_as_far_as_it_goes():
    assert describe(torch.tensor(1.0)) is None
    assert describe(SCORES.sum()).terms == ()


def test_describing_reads_a_limited_number_of_operations():
    loss = SCORES.sum()
    for _ in range(2_000):
        loss = loss + SCORES.mean()
    assert describe(loss).terms == ()


def test_describing_changes_nothing():
    loss = F.cross_entropy(SCORES, LABELS)
    describe(loss)
    loss.backward()
    assert SCORES.grad is not None
