"""Which rows a contrastive loss compares: two views, or each row with itself."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from smdebug.pytorch.graphs.positives import LOOKED, equal_positives

ROWS = 24
ITSELF = torch.eye(ROWS, dtype=torch.bool)


def codes(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(ROWS, 6, generator=generator), dim=1).requires_grad_()


def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return left @ right.T / 0.1


def equation(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.einsum("nd,md->nm", left, right) * torch.tensor(2.0, requires_grad=True).exp()


def cosines(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return F.cosine_similarity(left[:, None], right[None], dim=-1)


def _put(logits: torch.Tensor) -> None:
    logits[ITSELF] = -1e9


def counted(logits: torch.Tensor, targets: torch.Tensor) -> dict[str, int] | None:
    found = equal_positives(F.cross_entropy(logits, targets), targets, ROWS)
    return None if found is None else found()


@pytest.mark.parametrize("similarities", [product, equation, cosines])
def test_views_that_are_equal_are_told_from_views_that_differ(similarities):
    targets = torch.arange(ROWS)
    assert counted(similarities(codes(), codes()), targets) == {"looked": LOOKED, "equal": LOOKED}
    assert counted(similarities(codes(), codes(1)), targets) == {"looked": LOOKED, "equal": 0}


def test_a_batch_of_both_views_is_compared_with_the_other_half():
    targets = (torch.arange(ROWS) + ROWS // 2) % ROWS
    half = codes()[: ROWS // 2]
    for other, equal in ((half, LOOKED), (codes(1)[: ROWS // 2], 0)):
        both = torch.cat([half, other])
        logits = (both @ both.T).masked_fill(ITSELF, float("-inf"))
        assert counted(logits, targets) == {"looked": LOOKED, "equal": equal}


@pytest.mark.parametrize("leave_out", [lambda logits: logits.fill_diagonal_(-1e9), _put])
def test_a_diagonal_may_be_written_in_place(leave_out):
    targets = (torch.arange(ROWS) + ROWS // 2) % ROWS
    both = torch.cat([codes()[: ROWS // 2]] * 2)
    logits = both @ both.T / 0.1
    leave_out(logits)
    assert counted(logits, targets) == {"looked": LOOKED, "equal": LOOKED}


def test_views_of_which_some_are_equal_are_counted():
    left, right = codes(), codes(1)
    some = torch.where(torch.arange(ROWS)[:, None] % 2 == 0, left, right)
    assert 0 < counted(product(left, some), torch.arange(ROWS))["equal"] <= LOOKED
    assert counted(
        product(left, torch.where(torch.arange(ROWS)[:, None] < 12, left, right)), torch.arange(ROWS)
    ) == {
        "looked": LOOKED,
        "equal": LOOKED // 2,
    }


def test_a_table_of_as_many_classes_is_no_other_view():
    table = codes()
    hidden = torch.tanh(torch.nn.Linear(6, 6)(table))
    assert counted(hidden @ table.T, torch.arange(ROWS))["equal"] == 0
    logits = torch.nn.Linear(6, ROWS)(codes())
    assert counted(logits, torch.arange(ROWS)) is None


def test_what_was_changed_in_place_since_is_not_read():
    left, right = codes() * 1, codes() * 1
    loss = F.cross_entropy(product(left, right), torch.arange(ROWS))
    with torch.no_grad():
        right += 1
    assert equal_positives(loss, torch.arange(ROWS), ROWS) is None
