"""What attention looks at is told from a few of its queries."""

import numpy as np
import pytest

from smdebug.numbers.attention import Seen, attention_facts, padding_at_the_end

ROWS, TOKENS = 4, 6
ALL = np.ones((TOKENS, TOKENS), bool)
CAUSAL = np.tril(ALL)
LABELS = np.arange(ROWS * TOKENS)


def seen(keys, length=TOKENS):
    return Seen(length, queries=np.arange(length), keys=np.broadcast_to(keys, (ROWS, length, length)))


def future(*found, labels=LABELS, ignored=-100):
    return attention_facts(found, ROWS, TOKENS, None, labels, ignored).get("future")


@pytest.mark.parametrize(
    ("found", "share"),
    [
        ([seen(ALL)], 1.0),
        ([seen(CAUSAL)], 0.0),
        ([seen(ALL), seen(CAUSAL)], 0.0),  # an encoder beside a decoder
        ([Seen(TOKENS, sees_all=True)], 1.0),
        ([Seen(TOKENS, is_causal=True)], 0.0),
        ([Seen(TOKENS), seen(ALL)], None),  # one is unknown
        ([seen(np.ones((9, 9), bool), 9)], None),  # of something else than the tokens
    ],
)
def test_the_future_is_seen_if_no_attention_hides_it(found, share):
    assert future(*found) == share


def test_tokens_whose_label_does_not_count_may_see_what_they_like():
    prefix = CAUSAL.copy()
    prefix[:3, :3] = True
    labels = LABELS.reshape(ROWS, TOKENS).copy()
    assert future(seen(prefix), labels=labels.ravel()) == pytest.approx(2 / 5)
    labels[:, :2] = -100
    assert future(seen(prefix), labels=labels.ravel()) == 0.0
    labels[:, :2] = 77
    assert future(seen(prefix), labels=labels.ravel(), ignored=77) == 0.0
    labels[:, 1:] = -100
    assert future(seen(ALL), labels=labels.ravel()) is None  # four labels are too few


def ids(*lengths):
    made = np.arange(1, 1 + len(lengths) * TOKENS).reshape(len(lengths), TOKENS)
    for row, length in enumerate(lengths):
        made[row, length:] = 0
    return made


def alone(keys, tokens):
    return attention_facts([seen(keys)], ROWS, TOKENS, tokens, None, None).get("padding_alone")


def test_the_mask_is_inverted_if_nothing_but_padding_is_seen():
    tokens = ids(2, 3, 6, 4)
    padding = np.broadcast_to((tokens == 0)[:, None], (ROWS, TOKENS, TOKENS))
    assert alone(padding, tokens) is True
    assert alone(~padding, tokens) is False
    assert alone(ALL, tokens) is False
    assert alone(padding, ids(6, 6, 6, 6)) is None
    assert alone(padding, ids(2, 6, 6, 6)) is None  # a single row may end like that


def test_padding_is_the_id_that_rows_end_with():
    assert padding_at_the_end(ids(6, 5, 6)) is None
    assert padding_at_the_end(ids(4, 5, 6)).sum(1).tolist() == [2, 1, 0]
    assert padding_at_the_end(np.array([[0, 3, 0, 0], [0, 0, 5, 6]])).tolist() == [
        [False, False, True, True],
        [False] * 4,
    ]
