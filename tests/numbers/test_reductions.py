from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.numbers.reductions import (
    REDUCTION_NAMES,
    REDUCTIONS_PREFIX,
    compute_reduction,
    compute_reductions,
    get_numpy_reduction,
    get_reduction_tensor_name,
    reverse_reduction_tensor_name,
)
from tests.support.looking import each

GOLDEN = Path(__file__).parents[1] / "golden" / "runs"

BY_NUMPY = {
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
    "std": np.std,
    "variance": np.var,
    "sum": np.sum,
    "prod": np.prod,
    "median": np.median,
    "l1": lambda x: np.abs(x).sum(),
    "l2": lambda x: np.sqrt(np.square(np.abs(x)).sum()),
}

ALL_KINDS = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


def golden_reductions():
    """What the old library computed from raw values, where it computed the same thing as we do."""
    for path in sorted(GOLDEN.glob("*.expected.json")):
        for name, tensor in json.loads(path.read_text())["tensors"].items():
            for mode, in_mode in tensor["modes"].items():
                for step, at in in_mode["values"].items():
                    raw = at.get("default", {})
                    if "data" not in raw or raw["dtype"].startswith(("<U", "complex")):
                        continue
                    value = np.array(raw["data"], raw["dtype"]).reshape(raw["shape"])
                    for key, reduction, abs_ in (
                        ("reduction_value_mean", "mean", False),
                        ("reduction_value_l2_abs", "l2", True),
                    ):
                        # Its l2 of a matrix is the spectral norm; √Σx² is meant.
                        if "data" in at.get(key, {}) and (reduction == "mean" or value.ndim == 1):
                            expected = at[key]
                            expected = np.dtype(expected["dtype"]).type(expected["data"][0])
                            where = f"{path.name} {name} {mode} {step}"
                            yield where, value, reduction, abs_, expected


def test_small_arrays_reduce_to_what_the_old_library_computed_bit_by_bit():
    cases = list(golden_reductions())
    assert len(cases) > 400
    for where, value, reduction, abs_, expected in cases:
        ours = compute_reduction(reduction, value, abs_)
        assert ours.dtype == expected.dtype, where
        assert ours == expected or np.isnan([ours, expected]).all(), (where, ours, expected)


@pytest.mark.parametrize("size", [1, 2, 1000, 32768, 100_001])
@pytest.mark.parametrize("reduction", REDUCTION_NAMES)
@pytest.mark.parametrize("abs_", [False, True])
def test_float32_agrees_with_float64_to_a_millionth(reduction, abs_, size):
    rng = np.random.default_rng(size)
    value = (rng.normal(size=size) + 3).astype(np.float32)
    if reduction == "prod":
        value = (1 + rng.normal(size=size) / size).astype(np.float32)
    wide = value.astype(np.float64)
    exact = BY_NUMPY[reduction](np.abs(wide) if abs_ else wide)
    ours = compute_reduction(reduction, value, abs_)
    assert ours.dtype == np.float32
    assert float(ours) == pytest.approx(float(exact), rel=1e-6)


def test_a_small_spread_around_a_large_mean_is_not_lost():
    value = (1000 + np.linspace(-1e-2, 1e-2, 200_000)).astype(np.float32)
    exact = value.astype(np.float64).std()
    assert compute_reduction("std", value) == pytest.approx(exact, rel=1e-6)


def test_the_mean_magnitude_of_bfloat16_is_right():
    value = np.random.default_rng(0).normal(size=1_000_000).astype(ml_dtypes.bfloat16)
    exact = np.abs(value.astype(np.float64)).mean()
    assert compute_reduction("mean", value, abs=True) == pytest.approx(exact, rel=1e-6)
    assert compute_reduction("mean", value, abs=True).dtype == np.float32


@pytest.mark.parametrize("foreign", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("reduction", REDUCTION_NAMES)
def test_every_reduction_works_on_types_that_numpy_does_not_know(reduction, foreign):
    value = np.array([[1, -2, 0.5], [3, 0, -1]]).astype(foreign)
    exact = BY_NUMPY[reduction](value.astype(np.float64))
    assert compute_reduction(reduction, value) == pytest.approx(float(exact), rel=1e-6, abs=1e-12)


def test_a_sum_that_float16_cannot_hold_comes_in_float32():
    ones = np.ones(200_000, np.float16)
    assert compute_reduction("sum", ones) == 200_000
    assert compute_reduction("sum", ones).dtype == np.float32
    assert compute_reduction("mean", ones) == 1
    assert compute_reduction("l2", np.full(4, 60_000, np.float16)) == 120_000


def test_a_norm_of_very_large_or_very_small_values_is_not_lost():
    assert compute_reduction("l2", np.full(4, 1e200)) == pytest.approx(2e200)
    assert compute_reduction("l2", np.full(4, 1e-200)) == pytest.approx(2e-200)
    assert compute_reduction("l2", np.full(4, 1e-30, np.float32)) == pytest.approx(2e-30, rel=1e-6)
    assert compute_reduction("l2", np.full(4, 1e30, np.float32)) == pytest.approx(2e30, rel=1e-6)
    assert compute_reduction("l2", np.zeros(4)) == 0


def test_a_spread_of_very_large_or_very_small_values_is_not_lost():
    assert compute_reduction("std", np.array([1e200, 3e200])) == pytest.approx(1e200)
    assert compute_reduction("std", np.array([1e-200, 3e-200])) == pytest.approx(1e-200)
    assert compute_reduction("std", np.full(4, 1e200)) == 0
    assert compute_reduction("std", np.zeros(4)) == 0


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 3, 4), (2, 1, 3, 4)])
def test_norms_are_those_of_all_values_at_any_rank(shape):
    value = np.arange(-3, np.prod(shape, dtype=int) - 3, dtype=np.float64).reshape(shape)
    assert compute_reduction("l1", value) == np.abs(value).sum()
    assert compute_reduction("l2", value) == pytest.approx(np.sqrt((value**2).sum()))


def test_the_order_of_the_values_in_memory_does_not_matter():
    value = np.random.default_rng(1).normal(size=(300, 400)).astype(np.float32)
    for view in (value.T, value[::2, ::3], np.asfortranarray(value)):
        for reduction in each(REDUCTION_NAMES, at_least=10):
            expected = compute_reduction(reduction, np.ascontiguousarray(view))
            assert compute_reduction(reduction, view) == pytest.approx(expected, rel=1e-6)


@given(
    arrays.arrays(
        st.sampled_from(ALL_KINDS),
        arrays.array_shapes(min_dims=0, max_dims=3, max_side=5),
        elements={"allow_nan": True, "allow_infinity": True},
    ),
    st.sampled_from([name for name in REDUCTION_NAMES if name not in ("prod", "sum")]),
    st.booleans(),
)
def test_a_reduction_agrees_with_numpy_in_float64(value, reduction, abs_):
    with np.errstate(all="ignore"):
        wide = value.astype(np.longdouble)
        # Beyond, squares and sums leave float64, as they do in numpy.
        assume(not (np.abs(wide[np.isfinite(wide)]) > 1e150).any())
        exact = BY_NUMPY[reduction](np.abs(wide) if abs_ else wide)
        ours = compute_reduction(reduction, value, abs_)
        tolerance = 2e-3 if value.dtype == np.float16 else 1e-6
        spread = 1e-5 * float(np.nanmax(np.abs(wide), initial=0.0)) if np.isfinite(wide).all() else 0
        if reduction in ("std", "variance"):  # of huge values: 1e-6 of those
            spread = np.square(np.longdouble(spread)) if reduction == "variance" else spread
        smallest = np.finfo(ours.dtype).smallest_subnormal if ours.dtype.kind == "f" else 0
        assert np.isclose(
            np.longdouble(ours), exact, rtol=tolerance, atol=max(spread, smallest), equal_nan=True
        )


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_magnitude_of_the_smallest_integer_is_positive(dtype):
    lowest = np.iinfo(dtype).min
    value = np.array([lowest, 0], dtype)
    assert int(compute_reduction("max", value, abs=True)) == -lowest
    assert int(compute_reduction("sum", value, abs=True)) == -lowest


def test_sums_and_products_of_integers_do_not_wrap_around():
    assert compute_reduction("sum", np.full(4, 2**62, np.int64)) == 2.0**64
    assert compute_reduction("prod", np.full(70, 2, np.int64)) == 2.0**70
    assert compute_reduction("sum", np.full(300, 255, np.uint8)) == 76_500


RESULT_TYPES = {
    "float32": dict.fromkeys(REDUCTION_NAMES, "float32"),
    "float16": dict.fromkeys(REDUCTION_NAMES, "float16"),
    "int32": {
        "min": "int32", "max": "int32", "mean": "float64", "std": "float64", "variance": "float64",
        "sum": "int64", "prod": "int64", "l1": "float64", "l2": "float64", "median": "float64",
    },
    "bool": {"min": "bool", "max": "bool", "mean": "float64", "sum": "int64", "l2": "float64"},
    "uint8": {"min": "uint8", "sum": "uint64", "prod": "uint64", "std": "float64"},
    "complex64": {"mean": "complex64", "sum": "complex64", "std": "float32", "l2": "float32"},
}  # fmt: skip


@pytest.mark.parametrize("dtype", RESULT_TYPES)
def test_the_type_of_a_result_is_the_old_librarys(dtype):
    value = np.array([1, 0, 1, 1]).astype(dtype)
    for reduction, expected in each(RESULT_TYPES[dtype].items(), at_least=4):
        assert compute_reduction(reduction, value).dtype == expected, reduction


def test_complex_numbers_are_reduced_by_their_magnitudes_where_asked():
    value = np.array([3 + 4j, 0, -6j], np.complex64)
    assert compute_reduction("mean", value) == pytest.approx((3 - 2j) / 3)
    assert compute_reduction("mean", value, abs=True) == pytest.approx(11 / 3)
    assert compute_reduction("l1", value) == pytest.approx(11)
    assert compute_reduction("l2", value) == pytest.approx(np.sqrt(61))
    assert compute_reduction("std", value) == pytest.approx(np.std(value), rel=1e-6)


@pytest.mark.parametrize("reduction", REDUCTION_NAMES)
def test_nan_is_not_hidden(reduction):
    value = np.ones(70_000, np.float32)
    value[-1] = np.nan
    assert np.isnan(compute_reduction(reduction, value))


def test_several_reductions_in_one_pass_are_the_same_as_one_by_one():
    value = np.random.default_rng(2).normal(size=100_000).astype(np.float32)
    wanted = [(name, abs_) for name in REDUCTION_NAMES for abs_ in (False, True)]
    together = compute_reductions(value, wanted)
    assert list(together) == wanted
    assert together == {key: compute_reduction(*key[:1], value, key[1]) for key in wanted}


@pytest.mark.parametrize("reduction", REDUCTION_NAMES)
def test_an_empty_tensor_has_no_reductions_and_the_error_says_so(reduction):
    with pytest.raises(SMDebugValueError, match=r"empty tensor \(shape \(0, 3\)\)"):
        compute_reduction(reduction, np.zeros((0, 3)))


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([b"a"]), np.array([{}])])
def test_text_has_no_reductions(value):
    with pytest.raises(SMDebugTypeError, match="no mean of"):
        compute_reduction("mean", value)


def test_an_unknown_reduction_is_named_together_with_those_there_are():
    with pytest.raises(SMDebugValueError, match=r"'average'.*min, max, mean"):
        get_numpy_reduction("average", np.ones(1))


@pytest.mark.parametrize(
    ("tensor", "abs_", "remove", "saved"),
    [
        ("w:0", False, True, "smdebug/reductions/mean/w"),
        ("w:0", True, False, "smdebug/reductions/abs_mean/w:0"),
        ("a:b:2", False, True, "smdebug/reductions/mean/a:b"),
        ("relu:10/x", False, True, "smdebug/reductions/mean/relu/x"),
        ("dense/kernel", True, True, "smdebug/reductions/abs_mean/dense/kernel"),
    ],
)
def test_a_reduction_is_saved_under_the_old_librarys_name(tensor, abs_, remove, saved):
    assert get_reduction_tensor_name(tensor, "mean", abs_, remove_colon_index=remove) == saved


@given(st.text(), st.sampled_from(REDUCTION_NAMES), st.booleans())
def test_the_name_of_a_reduction_can_be_read_back(tensor, reduction, abs_):
    saved = get_reduction_tensor_name(tensor, reduction, abs_, remove_colon_index=False)
    assert saved.startswith(REDUCTIONS_PREFIX)
    assert reverse_reduction_tensor_name(saved) == (tensor, reduction, abs_)


@pytest.mark.parametrize("name", ["w", "smdebug/reductions/mean", "xsmdebug/reductions/mean/w", ""])
def test_a_name_that_is_no_reductions_is_refused(name):
    with pytest.raises(SMDebugValueError, match="not the name of a saved reduction"):
        reverse_reduction_tensor_name(name)


def test_the_old_address_has_the_same_functions():
    from smdebug.core import reductions as old

    assert old.get_numpy_reduction is get_numpy_reduction
    assert old.get_reduction_tensor_name is get_reduction_tensor_name
    assert old.reverse_reduction_tensor_name is reverse_reduction_tensor_name
    assert old.REDUCTIONS_PREFIX == "smdebug/reductions/"
