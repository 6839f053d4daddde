"""What attention looks at is read off the graph of the loss, however it is computed."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

import smdebug
from smdebug.runs import diagnose

CAN_READ = hasattr(torch.ones(1, requires_grad=True).exp().grad_fn._raw_saved_result, "unpack_hook")
pytestmark = pytest.mark.skipif(not CAN_READ, reason="before PyTorch 2.7 nothing is read")
WORDS, LENGTH, ROWS, WIDTH = 16, 8, 6, 8


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def by_hand(query, key, value, is_causal):
    scores = query @ key.transpose(-2, -1) / math.sqrt(WIDTH)
    if is_causal:
        scores = scores.masked_fill(~causal_mask(scores.shape[-1]), -torch.inf)
    return scores.softmax(-1) @ value


def by_argument(query, key, value, is_causal):
    return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)


def by_mask(query, key, value, is_causal):
    mask = causal_mask(query.shape[-2]) if is_causal else None
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def with_dropout(query, key, value, is_causal):
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.1, is_causal=is_causal)


class Language(nn.Module):
    def __init__(self, attend, is_causal):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.mixing, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WORDS)
        self.attend, self.is_causal = attend, is_causal

    def forward(self, ids):
        hidden = self.words(ids) + self.places.weight
        query, key, value = (part[:, None] for part in self.mixing(hidden).chunk(3, -1))
        return self.head(hidden + self.attend(query, key, value, self.is_causal)[:, 0])


class Encoded(nn.Module):
    """An encoder that is given the mask that `mask` makes of the ids, under that name."""

    def __init__(self, outputs, mask=None, batch_first=True, pooled=False):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, WIDTH, 0.1, batch_first=batch_first)
        self.head, self.mask, self.pooled = nn.Linear(WIDTH, outputs), mask, pooled

    def forward(self, ids):
        mask = self.mask(ids) if self.mask else {}
        hidden = self.layer(self.words(ids) + self.places.weight, **mask)
        return self.head(hidden.mean(1) if self.pooled else hidden)


def following(step):
    texts = torch.randint(1, WORDS, (ROWS, LENGTH + 1), generator=torch.Generator().manual_seed(step))
    return texts[:, :-1], texts[:, 1:].flatten()


def padded(step):
    random = torch.Generator().manual_seed(step)
    texts = torch.randint(1, WORDS, (ROWS, LENGTH), generator=random)
    lengths = torch.randint(2, LENGTH - 1, (ROWS, 1), generator=random)
    return texts * (torch.arange(LENGTH) < lengths), lengths[:, 0] % 2


def titles(place, model, batch, steps=3, rate=1e-3):
    """Train for a few steps; return the titles of what is found of attention."""
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    with smdebug.start(str(place)):
        for step in range(steps):
            ids, labels = batch(step)
            optimizer.zero_grad()
            scores = model(ids)
            F.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels).backward()
            optimizer.step()
    issues = diagnose(str(place)).issues
    return [issue.title for issue in issues if issue.cause == "attention"]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("attend", [by_hand, by_argument, by_mask, with_dropout])
def test_a_model_that_sees_the_tokens_to_predict_is_found(tmp_path, attend, is_causal):
    found = [] if is_causal else ["The model sees the tokens that it should predict"]
    assert titles(tmp_path / "run", Language(attend, is_causal), following) == found


def masked(ids):
    return {"src_mask": nn.Transformer.generate_square_subsequent_mask(ids.shape[1])}


@pytest.mark.parametrize(("mask", "count"), [(None, 1), (masked, 0)])
def test_an_encoder_without_a_causal_mask_is_found(tmp_path, mask, count):
    assert len(titles(tmp_path / "run", Encoded(WORDS, mask), following)) == count


def test_words_that_are_filled_in_may_be_predicted_from_both_sides(tmp_path):
    def hidden(step):
        ids, _ = following(step)
        return ids.masked_fill(ids > 9, 0), ids.masked_fill(ids <= 9, -100).flatten()

    assert titles(tmp_path / "run", Encoded(WORDS), hidden) == []


def test_an_inverted_padding_mask_is_found(tmp_path):
    def right(ids):
        return {"src_key_padding_mask": ids == 0}

    def inverted(ids):
        return {"src_key_padding_mask": ids != 0}

    found = titles(tmp_path / "inverted", Encoded(2, inverted, pooled=True), padded)
    assert found == ["The padding mask is inverted"]
    assert titles(tmp_path / "right", Encoded(2, right, pooled=True), padded) == []
    assert titles(tmp_path / "none", Encoded(2, pooled=True), padded) == []


def test_attention_over_the_rows_of_the_batch_is_found(tmp_path):
    found = titles(tmp_path / "run", Encoded(2, batch_first=False, pooled=True), padded)
    assert found == ["Attention mixes the rows of a batch"]


def test_inputs_with_the_tokens_first_are_healthy(tmp_path):
    class TokensFirst(Encoded):
        def forward(self, ids):
            hidden = self.layer(self.words(ids) + self.places.weight[:, None])
            return self.head(hidden.mean(0))

    def batch(step):
        ids, labels = padded(step)
        return ids.T, labels

    model = TokensFirst(2, batch_first=False, pooled=True)
    assert titles(tmp_path / "run", model, batch) == []


def test_layers_that_are_checkpointed_are_not_computed_again_to_be_read(tmp_path):
    calls = []

    def counting(query, key, value, is_causal):
        calls.append(torch.is_grad_enabled())
        return by_hand(query, key, value, is_causal)

    class Checkpointed(Language):
        def forward(self, ids):
            return checkpoint(super().forward, ids, use_reentrant=False)

    assert titles(tmp_path / "run", Checkpointed(counting, False), following) == []
    assert len(calls) == 2 * 3  # forward and backward of three steps
