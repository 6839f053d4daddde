from hypothesis import given
from hypothesis import strategies as st

from smdebug.files.checksum import CONSTANT_FOOTER, crc32c, masked


def test_the_checksum_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


@given(st.binary(), st.integers(0, 50), st.integers(0, 50))
def test_pieces_have_the_checksum_of_the_whole(whole, first, second):
    first, second = sorted((min(first, len(whole)), min(second, len(whole))))
    pieces = whole[:first], bytearray(whole[first:second]), memoryview(whole)[second:]
    assert crc32c(*pieces) == crc32c(whole)


def test_masking_is_tfrecords():
    assert masked(0) == 0xA282EAD8
    assert masked(0xFFFFFFFF) == 0xA282EAD7


def test_the_constant_footer_is_the_old_librarys():
    assert bytes.fromhex("b3c02d06") == CONSTANT_FOOTER


def test_the_packages_own_function_agrees():
    import crc32c as package

    assert package.crc32c(b"abc" * 999) == crc32c(b"abc" * 999)
