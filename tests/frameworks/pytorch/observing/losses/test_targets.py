"""What is kept of the targets of a loss, and whether the inputs reveal them."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import smdebug
from smdebug.numbers.batches import digests_of
from smdebug.numbers.targets import MAX_VALUES
from smdebug.pytorch.observing.loss_graph import describe
from smdebug.pytorch.observing.targets import loss_facts
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.trials import create_trial
from tests.frameworks.pytorch.training import since

LAYER = nn.Linear(4, 3)
ROWS = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
CLASSES = torch.arange(16) % 3


def facts_of(loss, *inputs):
    return loss_facts(loss, describe(loss), inputs)()


def test_a_regression_keeps_the_means_of_its_targets_and_its_own_value():
    targets = torch.arange(48.0).reshape(16, 3)
    loss = F.mse_loss(LAYER(ROWS), targets, reduction="sum") / 4
    facts = facts_of(loss, ROWS)
    (term,) = facts["terms"]
    assert term["means"] == targets.mean(0).tolist()
    assert (term["reduction"], term["of_a_layer"], term["target_rows"]) == ("sum", True, 16)
    assert (facts["factor"], facts["value"]) == (0.25, pytest.approx(float(loss.detach())))


def test_facts_are_those_of_the_targets_before_they_change():
    targets = torch.ones(16, 3)
    loss = F.mse_loss(LAYER(ROWS), targets)
    later = loss_facts(loss, describe(loss), ())
    targets.zero_()
    assert later()["terms"][0]["means"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(torch.bfloat16, marks=since("2.2", "a squared error of bfloat16 on the CPU")),
        torch.float16,
        torch.float64,
    ],
)
def test_targets_of_every_precision_have_facts(dtype):
    loss = F.mse_loss(LAYER(ROWS).to(dtype), torch.ones(16, 3, dtype=dtype))
    assert facts_of(loss)["terms"][0]["means"] == [1.0, 1.0, 1.0]


def test_large_targets_are_described_by_rows_at_even_distances():
    rows = 1 + MAX_VALUES // 4
    loss = F.mse_loss(torch.zeros(rows, 8, requires_grad=True), torch.ones(rows, 8))
    assert facts_of(loss)["terms"][0]["target_rows"] == -(-rows // 3)


def test_the_class_that_a_criterion_ignores_is_no_label():
    (term,) = facts_of(F.cross_entropy(LAYER(ROWS), CLASSES, ignore_index=0))["terms"]
    assert [name for name, _ in term["counts"]] == [1, 2]
    assert term["ignored"] == pytest.approx(6 / 16)


def test_a_loss_of_more_than_one_criterion_has_no_value_to_compare():
    both = F.cross_entropy(LAYER(ROWS), CLASSES) + F.mse_loss(LAYER(ROWS), torch.ones(16, 3))
    assert "value" not in facts_of(both)
    smoothed = F.cross_entropy(LAYER(ROWS), CLASSES, label_smoothing=0.1)
    assert "value" not in facts_of(smoothed)
    assert "weighted" in facts_of(F.cross_entropy(LAYER(ROWS), CLASSES, weight=torch.ones(3)))["terms"][0]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (lambda: LAYER(ROWS), True),
        (lambda: LAYER(ROWS.reshape(4, 4, 4).transpose(0, 1)).flatten(0, 1), True),
        (lambda: LAYER(ROWS).sigmoid(), True),
        (lambda: LAYER(ROWS) / 0.2, False),
        (lambda: torch.cat([LAYER(ROWS), LAYER(ROWS)], 1), False),
        (lambda: LAYER(ROWS) + LAYER(ROWS), False),
    ],
)
def test_whether_a_criterion_was_given_what_a_layer_returns_is_a_fact(scores, expected):
    assert describe(F.cross_entropy(scores(), CLASSES)).terms[0].is_of_a_layer == expected


TOKENS = torch.randint(9, (4, 12), generator=torch.Generator().manual_seed(0))
PADDED = TOKENS.masked_fill(torch.arange(12) >= torch.tensor([[12], [7], [9], [5]]), 9)
EMBEDDED = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10))


@pytest.mark.parametrize(
    ("targets", "revealed"),
    [
        (TOKENS, [0, "input"]),
        (TOKENS.masked_fill(TOKENS == 3, -100), [0, "input"]),
        (TOKENS.roll(1, 1), [0, "token before"]),
        (TOKENS.roll(-1, 1), None),
        (TOKENS.where(TOKENS != 3, torch.tensor(4)), None),
        (torch.full_like(TOKENS, -100), None),
    ],
)
def test_tokens_that_are_their_own_targets_are_a_fact(targets, revealed):
    loss = F.cross_entropy(EMBEDDED(TOKENS).flatten(0, 1), targets.flatten())
    assert facts_of(loss, TOKENS).get("revealed_by") == revealed


class ReturnsLoss(nn.Module):
    """As models of transformers do, and many others: with targets, the loss is returned beside the scores."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10))

    def forward(self, tokens, labels=None):
        scores = self.layers(tokens)
        loss = None if labels is None else F.cross_entropy(scores.flatten(0, 1), labels.flatten())
        return scores, loss


@pytest.mark.parametrize(
    ("loss_of", "revealed"),
    [
        (lambda model: model(TOKENS, TOKENS.roll(-1, 1))[1], None),
        (lambda model: model(TOKENS, labels=TOKENS.roll(-1, 1))[1], None),
        (lambda model: model(TOKENS, TOKENS)[1], [0, "input"]),
        (lambda model: F.cross_entropy(model(TOKENS)[0].flatten(0, 1), TOKENS.flatten()), [0, "input"]),
    ],
)
def test_targets_of_a_model_that_returns_its_loss_are_no_input(tmp_path, loss_of, revealed):
    model = ReturnsLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(tmp_path / "run")):
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    facts = create_trial(str(tmp_path / "run")).facts(2)["loss"]
    assert len(facts["terms"]) == 1
    assert facts.get("revealed_by") == revealed


@pytest.mark.parametrize(
    ("targets", "revealed"),
    [
        (ROWS[:, 2:3], [1, 2]),
        (ROWS[:, 2:3] + 1e-6, None),
        (torch.zeros(16, 1), None),
        (ROWS[:, 2:3].roll(1, 0), None),
    ],
)
def test_a_column_of_the_input_that_is_the_target_is_a_fact(targets, revealed):
    loss = F.mse_loss(nn.Linear(4, 1)(ROWS), targets)
    assert facts_of(loss, torch.zeros(16, 4) - 1, ROWS).get("revealed_by") == revealed


@pytest.mark.parametrize(("kind", "revealed"), [(torch.float32, [0, 3]), (torch.int64, None)])
def test_to_recall_one_of_the_tokens_may_be_the_task(kind, revealed):
    loss = F.cross_entropy(EMBEDDED(TOKENS.T)[:, 0], TOKENS.T[:, 3])
    assert facts_of(loss, TOKENS.T.to(kind)).get("revealed_by") == revealed


@pytest.mark.parametrize(
    ("mask", "learned"),
    [(TOKENS > 4, None), (torch.ones_like(TOKENS), None), (PADDED != 9, 0.0), (PADDED == 9, 0.0)],
)
def test_labels_of_tokens_are_compared_with_the_mask_that_the_model_is_given(mask, learned):
    labels = PADDED[:, 1:].masked_fill(PADDED[:, 1:] == 9, -100)
    scores = EMBEDDED(PADDED)[:, :-1].flatten(0, 1)
    found = facts_of(F.cross_entropy(scores, labels.flatten()), PADDED, mask)["tokens"]
    assert (found["equal"][1], found.get("padding")) == (1.0, learned)


@pytest.mark.parametrize(
    ("ignored", "reduction", "padding"), [(-100, "mean", True), (9, "mean", False), (-100, "none", True)]
)
def test_padding_is_known_by_the_embedding_of_the_model(tmp_path, ignored, reduction, padding):
    model = nn.Sequential(nn.Embedding(10, 8, padding_idx=9), nn.Linear(8, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(tmp_path / "run")):
        for _ in range(4):
            scores, labels = model(PADDED)[:, :-1].flatten(0, 1), PADDED[:, 1:].flatten()
            losses = F.cross_entropy(scores, labels, ignore_index=ignored, reduction=reduction)
            optimizer.zero_grad()
            losses[labels != 9].mean().backward() if reduction == "none" else losses.backward()
            optimizer.step()
    trial = create_trial(str(tmp_path / "run"))
    assert (trial.facts(2)["loss"]["tokens"]["padding"] > 0) == padding
    (judged,) = evaluate(str(tmp_path / "run"), ["TokenLabels"])
    assert bool(judged.found) == (padding and reduction == "mean")


def test_labels_without_tokens_have_no_facts_of_tokens():
    assert "tokens" not in facts_of(F.cross_entropy(LAYER(ROWS), CLASSES), ROWS)


def test_facts_of_targets_are_kept_under_the_default_plan(tmp_path):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with smdebug.start(str(tmp_path / "run")):
        for _ in range(3):
            optimizer.zero_grad()
            F.mse_loss(model(ROWS), ROWS[:, 1:2]).backward()
            optimizer.step()
    loss = create_trial(str(tmp_path / "run")).facts(2)["loss"]
    assert loss["revealed_by"] == [0, 1]
    assert loss["terms"][0]["means"] == pytest.approx([float(ROWS[:, 1].mean())], abs=1e-6)


@pytest.mark.parametrize(
    ("error", "criterion", "cost"),
    [
        (partial(F.smooth_l1_loss, beta=2.0), "smooth L1", 3.0),
        (partial(F.huber_loss, delta=2.0), "Huber", 6.0),
    ],
)
def test_bounded_errors_say_what_a_constant_costs(error, criterion, cost):
    targets = torch.tensor([-4.0, 4.0]).repeat(8)[:, None].repeat(1, 3)
    (term,) = facts_of(error(LAYER(ROWS), targets))["terms"]
    assert (term["criterion"], term["constant"]) == (criterion, pytest.approx(cost))


@pytest.mark.parametrize(
    "error",
    [
        lambda *both: F.l1_loss(*both),
        nn.L1Loss(),
        nn.L1Loss(reduction="sum"),
        lambda *both: F.l1_loss(*both, reduction="none").mean(),
    ],
)
def test_an_absolute_error_has_the_facts_of_its_targets(tmp_path, error):
    targets = torch.arange(16.0)[:, None]
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with smdebug.start(tmp_path / "run"):
        for _ in range(2):
            optimizer.zero_grad()
            error(model(ROWS), targets).backward()
            optimizer.step()
    (term,) = create_trial(tmp_path / "run").facts(0)["loss"]["terms"]
    assert (term["criterion"], term["rows"], term["of_a_layer"]) == ("mean absolute error", 16, True)
    assert (term["means"], term["constant"], term["ascending"]) == ([7.5], 4.0, 1.0)


def test_an_absolute_error_between_two_results_has_no_targets(tmp_path):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with smdebug.start(tmp_path / "run"):
        F.l1_loss(model(ROWS), model(ROWS + 1)).backward()
        optimizer.step()
    (term,) = create_trial(tmp_path / "run").facts(0)["loss"]["terms"]
    assert term["criterion"] == "mean absolute error"
    assert "means" not in term


def test_equal_rows_of_training_and_evaluation_have_equal_digests(tmp_path):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with smdebug.start(tmp_path / "run"):
        model(ROWS).sum().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(ROWS[8:])
    trial = create_trial(tmp_path / "run")
    trained, evaluated = (set(digests_of(trial.facts(step)["row_digests"])) for step in trial.steps()[:2])
    assert (len(trained), len(evaluated)) == (16, 8)
    assert evaluated < trained


@pytest.mark.parametrize(
    ("given", "wanted", "cost"),
    [
        (torch.arange(32.0).reshape(4, 8), torch.arange(8.0, 40.0, 8.0)[:, None], 1.0),
        (torch.arange(32.0).reshape(4, 8, 1), torch.arange(9.0, 41.0, 8.0), 4.0),
        (
            torch.arange(64.0).reshape(4, 8, 2),
            torch.arange(15.0, 79.0, 16.0)[:, None],
            0.0,
        ),  # its second series
        (torch.arange(12.0).reshape(4, 3), torch.ones(4, 1), None),  # too short for a sequence
        (torch.arange(32.0).reshape(4, 8), torch.ones(2, 1), None),
        (torch.arange(32).reshape(4, 8), torch.ones(4, 1), None),  # tokens
    ],
)
def test_what_it_costs_to_repeat_the_last_value_is_a_fact(given, wanted, cost):
    estimates = nn.Parameter(torch.zeros_like(wanted))
    (term,) = facts_of(F.mse_loss(estimates * 1, wanted), given)["terms"]
    assert term.get("repeated") == (cost if cost is None else pytest.approx(cost))


LABELS = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("weights", "wanted", "facts"),
    [
        (torch.tensor(3.0), LABELS[:, :1], ([3.0], [3], 4)),
        (torch.tensor([3.0]), LABELS[:, 0], ([3.0], [3], 4)),
        (torch.tensor([0.5, 4.0]), LABELS, ([0.5, 4.0], [3, 1], 4)),
        (torch.tensor([0.5, 4.0]), LABELS.expand(3, 4, 2), ([0.5, 4.0], [9, 3], 12)),
        (
            torch.full((2, 1, 1), 2.0),
            torch.ones(4, 2, 2, 2),
            None,
        ),  # which of them a weight is for is not known
        (torch.tensor([0.5, 4.0]), LABELS * 0.9, None),  # smoothed
    ],
)
def test_the_weights_of_positives_are_beside_their_counts(weights, wanted, facts):
    scores = nn.Parameter(torch.zeros_like(wanted))
    loss = F.binary_cross_entropy_with_logits(scores * 1, wanted, pos_weight=weights)
    (term,) = facts_of(loss, torch.randn(4, 3))["terms"]
    assert term["weighted"]
    assert facts == (tuple(map(term.get, ("weights", "positives", "labels"))) if facts else None)
    assert facts or "weights" not in term


def test_the_weights_of_classes_are_beside_their_counts():
    scores, weights = nn.Parameter(torch.zeros(4, 3)), torch.tensor([1.0, 2.0, 0.5])
    loss = F.cross_entropy(scores * 1, torch.tensor([2, 2, 0, 2]), weight=weights)
    (term,) = facts_of(loss, torch.randn(4, 3))["terms"]
    assert (term["weights"], term["counts"]) == ([1.0, 2.0, 0.5], [[0, 1], [2, 3]])


def test_weights_of_single_values_are_no_weights_of_classes():
    scores, wanted = nn.Parameter(torch.zeros(4, 2)), LABELS
    loss = F.binary_cross_entropy_with_logits(scores * 1, wanted, weight=torch.ones(4, 2))
    (term,) = facts_of(loss, torch.randn(4, 3))["terms"]
    assert term["weighted"]
    assert "weights" not in term
