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


def facts(*found, rows=ROWS, tokens=TOKENS, ids=None, labels=LABELS, **options):
    return attention_facts(found, rows, tokens, ids, labels, None, **options)


def test_attentions_are_counted_with_their_lengths():
    assert facts(seen(ALL), seen(CAUSAL), Seen(9), Seen(3)) == {
        "lengths": [3, 6, 9],
        "count": 4,
        "rows": 4,
        "tokens": 6,
        "future": 0.0,
    }
    assert facts(Seen(9), over_queries=1)["over_queries"] == 1
    assert "over_queries" not in facts(Seen(9))
    assert facts() == {"lengths": [], "count": 0, "rows": 4, "tokens": 6}


def test_as_many_rows_as_tokens_are_told_apart_by_nothing():
    square = Seen(6, queries=np.arange(6), keys=np.broadcast_to(ALL, (6, 6, 6)))
    assert facts(square, rows=6, labels=np.arange(36))["future"] == 1.0


def test_the_share_has_four_digits():
    keys = np.broadcast_to(CAUSAL, (ROWS, TOKENS, TOKENS)).copy()
    keys[0, 0, 1] = True
    assert facts(Seen(TOKENS, queries=np.arange(TOKENS), keys=keys), labels=None)["future"] == 0.05
    keys = keys[:3]
    assert facts(Seen(TOKENS, queries=np.arange(TOKENS), keys=keys), labels=None)["future"] == 0.0667


@pytest.mark.parametrize(("counted", "share"), [(8, 1.0), (7, None)])
def test_eight_labels_say_whether_the_future_is_seen(counted, share):
    labels = np.full((ROWS, TOKENS), -1)
    labels[:, :2] = 5
    labels[0, 0] = 5 if counted == 8 else -1
    assert future(seen(ALL), labels=labels.ravel()) == share


def test_the_first_class_is_ignored_where_the_criterion_does_so():
    labels = np.ones((ROWS, TOKENS), int)
    labels[:, 1:] = 0
    assert future(seen(ALL), labels=labels.ravel(), ignored=0) is None
    assert future(seen(ALL), labels=labels.ravel(), ignored=None) == 1.0


def test_labels_that_are_not_one_per_token_do_not_count():
    for labels in (np.full(ROWS, -1), np.full(ROWS * TOKENS + 1, -1)):
        assert future(seen(ALL), labels=labels) == 1.0


def test_queries_beyond_the_labels_do_not_count():
    labels = np.zeros((ROWS, TOKENS - 2), int)
    keys = CAUSAL.copy()
    keys[TOKENS - 2] = True
    assert future(seen(keys), labels=labels.ravel()) == 0.0
    labels[:, 0] = -1
    assert future(seen(keys | (np.arange(TOKENS)[:, None] == 0)), labels=labels.ravel()) == 0.0


def test_some_of_the_queries_suffice():
    queries = np.array([0, 2, 5])
    keys = np.broadcast_to(np.array([[True] * 6, [True] * 3 + [False] * 3, [True] * 6]), (ROWS, 3, TOKENS))
    assert future(Seen(TOKENS, queries=queries, keys=keys)) == 0.5


def test_an_attention_without_queries_is_unknown():
    assert future(Seen(TOKENS, keys=np.ones((ROWS, TOKENS, TOKENS), bool))) is None
    assert future(Seen(TOKENS, queries=np.arange(TOKENS))) is None


SHORT = ids(2, 3, 6, 4)
ON_PADDING = np.broadcast_to((SHORT == 0)[:, None], (ROWS, TOKENS, TOKENS))


@pytest.mark.parametrize(
    ("found", "is_alone"),
    [
        ([seen(ON_PADDING)], True),
        ([seen(ON_PADDING), seen(ON_PADDING)], True),
        ([seen(ON_PADDING), seen(ALL)], False),
        ([seen(ON_PADDING), Seen(TOKENS)], None),
        ([Seen(TOKENS, is_causal=True)], False),
        ([Seen(TOKENS, sees_all=True)], False),
        ([Seen(TOKENS)], None),
        ([], None),
        ([Seen(9, is_causal=True)], None),
    ],
)
def test_padding_alone_is_seen_if_all_attentions_see_it(found, is_alone):
    assert facts(*found, ids=SHORT, labels=None).get("padding_alone") is is_alone


@pytest.mark.parametrize(
    ("lengths", "rows", "is_alone"),
    [((2, 3, 6, 6), 4, True), ((2, 6, 6, 0), 4, None), ((2, 6, 3, 4), 2, None), ((2, 6, 3, 4), 3, True)],
)
def test_two_rows_with_padding_and_tokens_say_what_is_seen(lengths, rows, is_alone):
    tokens = ids(*lengths)
    keys = np.broadcast_to((tokens == 0)[:rows, None], (rows, TOKENS, TOKENS))
    assert facts(Seen(TOKENS, keys=keys), ids=tokens, labels=None).get("padding_alone") is is_alone


def test_a_row_that_sees_nothing_is_not_one_that_sees_padding():
    keys = ON_PADDING.copy()
    keys[0] = False
    assert facts(Seen(TOKENS, keys=keys), ids=SHORT, labels=None)["padding_alone"] is False
