"""How labels stand to the token ids and the mask beside them."""

import numpy as np
import pytest

from smdebug.numbers.tokens import MAX_TOKENS, token_facts

END = 1
LENGTHS = (12, 7, 9, 5, 12)
PLACES = np.arange(12)
MASK = (np.array(LENGTHS)[:, None] > PLACES).astype(np.int64)
IDS = np.random.default_rng(0).integers(2, 50, (5, 12))
IDS[np.array(LENGTHS)[:, None] - 1 <= PLACES] = END
NEXT = np.where(MASK == 1, IDS, -100)[:, 1:]
"""The right labels: the next token, without padding."""


def facts(labels, *inputs, ignored=-100):
    return token_facts(labels.reshape(-1), inputs or (IDS, MASK), ignored)


@pytest.mark.parametrize(
    ("labels", "offset"),
    [
        (IDS, 0),
        (NEXT, 1),
        (np.concatenate([NEXT, np.full((5, 1), -100)], 1), 1),
        (IDS[:, 2:], 2),
        (np.concatenate([IDS[:, 2:], np.full((5, 1), -100)], 1), 2),
    ],
)
def test_the_offset_at_which_all_labels_are_tokens_is_seen(labels, offset):
    equal = facts(labels)["equal"]
    assert equal[offset] == 1
    assert max(equal[:offset] + equal[offset + 1 :]) < 0.9


def test_the_input_that_labels_belong_to_may_come_second():
    source = np.random.default_rng(1).integers(2, 50, IDS.shape)
    assert facts(NEXT, source, IDS, MASK)["equal"][1] == 1


def test_labels_among_the_inputs_are_no_tokens():
    assert facts(NEXT, np.where(MASK == 1, IDS, -100)) is None


@pytest.mark.parametrize("inputs", [(IDS[:, :5],), (IDS.astype(np.float32),), (MASK,), (IDS[0],)])
def test_inputs_of_another_form_are_not_compared(inputs):
    assert facts(NEXT, *inputs) is None


def test_labels_that_do_not_count_are_not_compared():
    assert facts(np.full_like(NEXT, -100)) is None
    assert facts(IDS[:, 1:], ignored=END)["counted"] == int((IDS[:, 1:] != END).sum())


@pytest.mark.parametrize("mask", [MASK, MASK.astype(np.float32), (1 - MASK).astype(np.uint8)])
def test_padding_and_ends_that_are_learned_are_counted(mask):
    assert facts(NEXT, IDS, mask) == {
        "equal": facts(NEXT)["equal"],
        "counted": sum(LENGTHS) - 5,
        "padding": 0.0,
        "ends": 3,
        "ends_learned": 5,
    }


def test_padding_that_counts_after_padding_is_a_share_of_the_labels():
    assert facts(IDS[:, 1:])["padding"] == pytest.approx(12 / 55, abs=1e-6)


def test_ends_that_are_ignored_with_the_padding_are_none():
    found = facts(np.where(IDS == END, -100, IDS)[:, 1:])
    assert (found["padding"], found["ends"], found["ends_learned"]) == (0.0, 3, 0)


def test_texts_that_end_with_another_id_have_no_ends():
    padded = np.where(MASK == 1, IDS, 0)
    assert set(facts(NEXT, padded, MASK)) == {"equal", "counted", "padding"}


@pytest.mark.parametrize(
    "mask", [MASK * 2, MASK[:, ::-1], np.ones_like(MASK), MASK[:2], PLACES % 2 + 0 * MASK]
)
def test_a_mask_that_is_not_one_of_padding_says_nothing(mask):
    assert set(facts(NEXT, IDS, mask)) == {"equal", "counted"}


PADDED = np.where(MASK == 1, IDS, 0)


@pytest.mark.parametrize(("labels", "share"), [(PADDED[:, 1:], 12 / 55), (NEXT, 0.0)])
def test_padding_is_known_by_the_id_of_the_embedding(labels, share):
    found = token_facts(labels.reshape(-1), (PADDED,), -100, 0)
    assert found["padding"] == pytest.approx(share, abs=1e-6)
    assert found["padding_id"] == 0
    assert "ends" not in found


@pytest.mark.parametrize("ids", [IDS, np.where(PLACES == 3, 0, IDS), PADDED[:, ::-1].copy()])
def test_an_id_within_rows_is_no_padding(ids):
    assert set(token_facts(ids[:, 1:].reshape(-1), (ids,), -100, 0)) == {"equal", "counted"}


def test_a_mask_says_more_than_an_id():
    assert "padding_id" not in token_facts(NEXT.reshape(-1), (PADDED, MASK), -100, 0)


def test_of_many_tokens_the_first_rows_are_compared():
    ids = np.random.default_rng(2).integers(2, 50, (40, MAX_TOKENS // 16))
    assert facts(ids[:, 1:], ids)["counted"] == MAX_TOKENS - 16


WORDS = np.arange(2, 14).reshape(2, 6)


@pytest.mark.parametrize(
    ("ids", "columns", "is_compared"),
    [
        (np.arange(2, 18).reshape(4, 4), 4, True),
        (np.arange(2, 17).reshape(5, 3), 3, False),
        (WORDS, 6, True),
        (WORDS, 5, True),
        (WORDS, 4, True),
        (WORDS, 3, False),
        (WORDS, 7, False),
        (np.where(WORDS > 2, 0, 1), 6, False),
        (np.where(WORDS > 2, 0, 2), 6, True),
        (WORDS - 3, 6, False),
        (WORDS - 2, 6, True),
        (WORDS.astype(np.uint8), 6, True),
        (np.zeros((0, 6), int), 6, False),
        (WORDS[None], 6, False),
    ],
)
def test_ids_have_rows_of_four_tokens_and_labels_about_as_many(ids, columns, is_compared):
    labels = np.arange(max(1, len(ids)) * columns)
    assert (token_facts(labels, [ids], None) is not None) == is_compared


def test_labels_that_do_not_fill_the_rows_are_not_compared():
    assert token_facts(np.arange(11), [WORDS], None) is None


@pytest.mark.parametrize(("counted", "is_compared"), [(8, True), (7, False)])
def test_eight_labels_are_enough(counted, is_compared):
    labels = np.where(np.arange(12) < counted, WORDS.reshape(-1), -1)
    assert (token_facts(labels, [WORDS], None) is not None) == is_compared


def test_a_class_that_is_ignored_does_not_count_also_if_it_is_the_first():
    labels = np.arange(12)
    assert token_facts(labels, [WORDS], 0)["counted"] == 11
    assert token_facts(labels, [WORDS], 5)["counted"] == 11
    assert token_facts(labels, [WORDS], -1)["counted"] == 12
    assert token_facts(labels, [WORDS], None)["counted"] == 12


def test_shares_of_equal_tokens_are_of_the_labels_that_have_one():
    labels = WORDS.copy()
    labels[:, :2] = -1
    labels[0, 2] = 99
    assert token_facts(labels.reshape(-1), [WORDS], None) == {"equal": [0.875, 0.0, 0.0], "counted": 8}
    shifted = np.concatenate([WORDS[:, 1:], [[50], [51]]], axis=1)
    assert token_facts(shifted.reshape(-1), [WORDS], None)["equal"] == [0.0, 1.0, 0.0]
    third = np.where(np.arange(12) % 3 == 0, WORDS.reshape(-1), 99)
    assert token_facts(third, [WORDS], None)["equal"][0] == 0.333333


def test_the_input_whose_next_tokens_are_the_labels_comes_before_one_that_they_repeat():
    labels = np.concatenate([WORDS[:, 1:], [[50], [51]]], axis=1)
    for inputs in ([labels, WORDS], [WORDS, labels]):
        assert token_facts(labels.reshape(-1), inputs, None)["equal"] == [0.0, 1.0, 0.0]


def test_one_row_of_tokens_that_is_longer_than_the_limit_is_compared():
    ids = np.random.default_rng(3).integers(2, 50, (2, MAX_TOKENS + 1))
    assert facts(ids, ids)["counted"] == MAX_TOKENS + 1
    assert MAX_TOKENS == 4096


def texts(*lengths, end=0, columns=6):
    ids = np.arange(2, 2 + len(lengths) * columns).reshape(len(lengths), columns)
    mask = (np.array(lengths)[:, None] > np.arange(columns)).astype(int)
    ids[mask == 0] = end
    for row, length in enumerate(lengths):
        ids[row, length - 1] = end
    return ids, mask


@pytest.mark.parametrize(
    ("lengths", "ends"), [((3, 6), 1), ((2, 6), None), ((5, 4), 2), ((6, 5), 1), ((2, 3, 4), 2)]
)
def test_texts_of_three_tokens_that_end_before_their_row_have_ends(lengths, ends):
    ids, mask = texts(*lengths)
    assert facts(ids[:, 1:], ids, mask).get("ends") == ends


def test_padding_before_the_text_has_no_ends():
    ids, mask = texts(4, 5)
    found = facts(ids[:, ::-1][:, 1:], ids[:, ::-1].copy(), mask[:, ::-1].copy())
    assert set(found) == {"equal", "counted", "padding"}


@pytest.mark.parametrize(
    ("given", "is_mask"),
    [
        (MASK, True),
        (np.vstack([MASK, MASK]), True),
        (MASK[:4], False),
        (MASK[:, :11], False),
        (MASK[None], False),
        (np.where(MASK == 1, 1, -1), False),
        (np.zeros_like(MASK), False),
    ],
)
def test_a_mask_has_the_shape_of_the_tokens(given, is_mask):
    assert ("padding" in facts(NEXT, IDS, given)) == is_mask


def test_a_row_that_is_all_padding_is_one_of_padding():
    ids = np.concatenate([PADDED, np.zeros((1, 12), int)])
    found = token_facts(ids[:, 1:].reshape(-1), (ids,), None, 0)
    assert found["padding"] == pytest.approx((12 + 11) / 66, abs=1e-6)
    assert "padding_id" not in token_facts(ids[:, 1:].reshape(-1), (ids,), None, 77)


TAGGED = np.array([[5, 9, 4, 7, 0, 0, 0, 0], [3, 8, 6, 4, 5, 7, 0, 0]])
TAGS = np.where(TAGGED == 0, 0, 1 + TAGGED % 2)


def test_the_class_of_padding_is_known_where_it_is_one_of_its_own():
    facts = token_facts(TAGS.reshape(-1), [TAGGED], -100, padding_id=0)
    assert (facts["padding"], facts["padding_class"], facts["padding_id"]) == (0.375, 0, 0)
    by_mask = token_facts(TAGS.reshape(-1), [TAGGED, (TAGGED > 0).astype(np.uint8)], -100)
    assert (by_mask["padding"], by_mask["padding_class"]) == (0.375, 0)


@pytest.mark.parametrize(
    ("labels", "ignored"),
    [
        (TAGS, 0),  # ignored, as it should be
        (np.where(TAGS == 2, 0, TAGS), -100),  # tokens have this class, too
        (np.where(TAGGED == 0, np.arange(8) % 2, TAGS), -100),
        (TAGGED, -100),  # an autoencoder
        (np.where(TAGGED == 0, -100, TAGS), -100),
    ],
)
def test_padding_has_no_class_of_its_own_otherwise(labels, ignored):
    facts = token_facts(labels.reshape(-1), [TAGGED], ignored, padding_id=0)
    assert "padding_class" not in facts
    assert "padding" not in facts
