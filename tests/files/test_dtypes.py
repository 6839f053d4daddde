import builtins

import numpy as np
import pytest

from smdebug.exceptions import SMDebugTypeError
from smdebug.files import dtypes
from smdebug.files.dtypes import dtype_number, dtype_of, stored_size, view_as

TENSORFLOW = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "str": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}


@pytest.mark.parametrize(("name", "number"), TENSORFLOW.items())
def test_numbers_are_tensorflows_and_lead_back(name, number):
    assert dtype_number(np.dtype(name)) == number
    assert dtype_of(number) == np.dtype(name)
    assert dtype_of(number).isnative


def test_byte_order_does_not_matter():
    assert dtype_number(np.dtype(">f4")) == dtype_number(np.dtype("<f4")) == 1


def test_strings_bytes_and_objects_are_saved_as_strings():
    assert {dtype_number(np.dtype(name)) for name in ("U5", "S5", "O")} == {7}


@pytest.mark.parametrize("name", ["datetime64[s]", "timedelta64[s]", "V4", "longdouble"])
def test_what_cannot_be_saved_says_so_and_what_can(name):
    with pytest.raises(SMDebugTypeError, match=r"cannot be saved.*float32"):
        dtype_number(np.dtype(name))


def test_a_number_that_no_dtype_has_is_a_key_error():
    for unknown in (0, 11, 15, 24, 101):
        with pytest.raises(KeyError):
            stored_size(unknown)
        with pytest.raises(KeyError):
            dtype_of(unknown)


def test_bfloat16_is_itself_where_ml_dtypes_is_installed():
    import ml_dtypes

    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    assert dtype_number(bfloat16) == 14
    assert dtype_of(14) == bfloat16
    assert view_as(14, (1,), b"\x80\x3f") == ml_dtypes.bfloat16(1)


def test_bfloat16_is_read_as_float32_without_ml_dtypes(monkeypatch):
    import ml_dtypes

    values = np.array([[1.5, -0.0, 3.3895e38], [np.inf, -np.inf, 1e-40]], ml_dtypes.bfloat16)
    real_import = builtins.__import__

    def without_ml_dtypes(name, *rest):
        if name == "ml_dtypes":
            raise ImportError(name)
        return real_import(name, *rest)

    dtypes._bfloat16.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_ml_dtypes)
    try:
        assert dtype_of(14) == np.float32
        read = view_as(14, (2, 3), b"xx" + values.tobytes(), 2)
    finally:
        dtypes._bfloat16.cache_clear()
    assert read.dtype == np.float32
    assert read.tobytes() == values.astype(np.float32).tobytes()


def test_a_view_shares_the_buffers_memory():
    buffer = bytearray(12)
    view = view_as(1, (2,), buffer, 4)
    view[1] = 1
    assert buffer[8:] == np.float32(1).tobytes()
