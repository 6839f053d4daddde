import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.numbers.digests import WORDS_IN_A_BLOCK, block_weight, content_digest, finished, weights


def test_equal_bytes_have_equal_digests_whatever_the_layout_in_memory():
    matrix = np.arange(35, dtype=np.float32).reshape(5, 7)
    assert content_digest(matrix) == content_digest(matrix.copy())
    assert content_digest(np.asfortranarray(matrix)) == content_digest(matrix)
    assert content_digest(matrix[:, ::2]) == content_digest(matrix[:, ::2].copy())


@given(st.binary(min_size=1, max_size=200), st.data())
def test_one_flipped_bit_always_shows(content, data):
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    before = np.frombuffer(content, np.uint8)
    assert content_digest(before) != content_digest(np.frombuffer(bytes(changed), np.uint8))


@given(st.binary(max_size=40), st.integers(1, 9))
def test_zeros_at_the_end_count(content, zeros):
    before = np.frombuffer(content, np.uint8)
    longer = np.frombuffer(content + bytes(zeros), np.uint8)
    assert content_digest(before) != content_digest(longer)


@pytest.mark.parametrize("place", [0, 1, 2 * WORDS_IN_A_BLOCK - 1, 2 * WORDS_IN_A_BLOCK, -1])
def test_a_change_in_any_block_shows(place):
    array = np.ones(5 * WORDS_IN_A_BLOCK, np.int64)
    before = content_digest(array)
    array[place] += 1
    assert content_digest(array) != before


def test_values_that_change_places_show_within_a_block_and_across_blocks():
    array = np.arange(6 * WORDS_IN_A_BLOCK, dtype=np.int64)
    before = content_digest(array)
    for other in (2, 2 * WORDS_IN_A_BLOCK):
        swapped = array.copy()
        swapped[[0, other]] = swapped[[other, 0]]
        assert content_digest(swapped) != before


def test_the_digest_is_the_same_in_every_version_of_this_library():
    """It lies in files, and ranks of different machines compare theirs."""
    assert content_digest(np.arange(5, dtype="<f4")) == GOLDEN
    assert content_digest(np.array([], np.float32)) == EMPTY


GOLDEN = (-8843583762296730894, -2188758020921545911)
EMPTY = (0, 6238072747940578789)


def test_the_digest_of_several_blocks_is_the_same_in_every_version_too():
    assert content_digest(np.arange(5 * WORDS_IN_A_BLOCK + 3, dtype="<u4")) == GOLDEN_OF_BLOCKS
    assert content_digest(np.arange(11, dtype=np.uint8)) == GOLDEN_OF_BYTES


GOLDEN_OF_BLOCKS = (-1703874318692186789, 2939108701067015767)
GOLDEN_OF_BYTES = (8447078421050908269, 6871224506081856468)


def test_weights_and_sums_are_the_same_on_every_device():
    """A GPU multiplies with copies of them."""
    assert weights(2).tolist() == [16294208416658607535, 7960286522194355701]
    assert weights(WORDS_IN_A_BLOCK)[-1] == 1391038490065136735
    assert (block_weight(0), block_weight(3)) == (15172350692208530253, 837255238660285985)
    assert finished(2**64 - 5, 7) == 1346066267577507599
    assert content_digest(np.full(6 * WORDS_IN_A_BLOCK, -1)) == GOLDEN_OF_ONES


GOLDEN_OF_ONES = (-6640446310923750362, 359114319684937115)
