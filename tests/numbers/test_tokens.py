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
