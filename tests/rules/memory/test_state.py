from __future__ import annotations

import contextlib
import io
import json
import math
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smdebug.exceptions import DamagedFile, SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.rules import Rule, RuleState, restore_state, save_state
from smdebug.rules.memory.state import BASE_ATTRIBUTES, read_state
from tests.rules.made_runs import made_run

TRIAL = made_run({0: {"loss": [1.0]}}).trial()


class Remembering(Rule):
    def __init__(self, base_trial, **attributes):
        super().__init__(base_trial)
        for name, value in attributes.items():
            setattr(self, name, value)

    def invoke_at_step(self, step):
        return False


def round_trip(value):
    fresh = Remembering(TRIAL)
    restore_state(fresh, bytes(save_state(Remembering(TRIAL, kept=value))))
    return fresh.kept


def same(value, other):
    """Return whether both are equal and of the same type, in every nested value."""
    if type(value) is not type(other):
        return False
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return value.shape == other.shape and all(map(same, value.ravel(), other.ravel()))
        return (
            value.dtype == other.dtype
            and value.shape == other.shape
            and np.ascontiguousarray(value).tobytes() == np.ascontiguousarray(other).tobytes()
        )
    if isinstance(value, np.generic):
        return value.dtype == other.dtype and value.tobytes() == other.tobytes()
    if isinstance(value, float):
        return (
            value == other and math.copysign(1, value) == math.copysign(1, other)
        ) or value != value != other
    if isinstance(value, (list, tuple, deque)):
        return len(value) == len(other) and all(map(same, value, other))
    if isinstance(value, dict):
        return len(value) == len(other) and all(
            same(a, b) and same(value[a], other[b]) for a, b in zip(value, other, strict=True)
        )
    return value == other


ARRAY_TYPES = st.one_of(
    arrays.scalar_dtypes().filter(lambda dtype: dtype.kind != "V"),
    arrays.byte_string_dtypes(),
    arrays.unicode_string_dtypes(),
)
ARRAYS = st.one_of(
    arrays.arrays(ARRAY_TYPES, arrays.array_shapes(min_dims=0, min_side=0, max_side=12)),
    arrays.arrays(np.float32, arrays.array_shapes(max_side=8)).map(
        lambda array: array.astype(ml_dtypes.bfloat16)
    ),
)
NUMPY_SCALARS = ARRAYS.filter(lambda array: array.size > 0).map(lambda array: array.ravel()[0])
NUMBERS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
SCALARS = NUMBERS | st.text(st.characters(exclude_categories=())) | st.binary()
KEYS = st.recursive(SCALARS | st.sampled_from(ModeKeys), lambda inner: st.lists(inner, max_size=3).map(tuple))


def containers(inner):
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.frozensets(KEYS, max_size=4),
        st.sets(KEYS, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4).map(OrderedDict),
        st.lists(inner, max_size=4).map(lambda values: deque(values, maxlen=5)),
        st.dictionaries(KEYS, st.integers(), max_size=4).map(Counter),
        st.dictionaries(KEYS, inner, max_size=4).map(lambda d: defaultdict(list, d)),
    )


VALUES = st.recursive(
    SCALARS | st.floats() | ARRAYS | NUMPY_SCALARS | st.sampled_from(ModeKeys),
    containers,
    max_leaves=12,
)


@given(VALUES)
@example(float("-inf"))
@example(-0.0)
@example(np.str_(""))
@example(np.array("x" * 300))
@example(np.array([["a", None], [1.5, [2]]], dtype=object))
@example({(1, "a", (2.5, None)): {"deep": np.arange(1000)}})
@example(10**5000)
def test_plain_data_comes_back_as_it_was(value):
    assert same(round_trip(value), value)


def test_a_restored_array_can_be_changed():
    for size in (3, 3000):
        restored = round_trip(np.zeros(size))
        restored += 1
        assert restored.sum() == size


def test_a_small_state_takes_few_bytes():
    state = save_state(Remembering(TRIAL, threshold=0.5, last={"loss": np.float32(1.25)}))
    assert len(state) < 150


def test_what_the_base_class_gives_is_not_part_of_the_state():
    rule = Remembering(TRIAL, mine=1)
    assert set(vars(rule)) - BASE_ATTRIBUTES == {"mine"}
    assert read_state(save_state(rule)) == {"mine": 1}


def test_an_attribute_that_is_not_plain_data_is_named_once_and_left_out(capsys):
    class Holding(Remembering):
        pass

    for _ in range(3):
        state = save_state(Holding(TRIAL, opened=io.BytesIO(), nested=[{"f": print}], kept=[1, 2]))
    assert state.left_out == ("opened", "nested")
    assert read_state(state) == {"kept": [1, 2]}
    output = capsys.readouterr().out
    assert output.count("attribute opened is not kept between steps: it holds a BytesIO, which") == 1
    assert output.count("attribute nested is not kept between steps") == 1


def test_a_trial_is_left_out_silently(capsys):
    rule = Remembering(TRIAL)
    rule.another_name = TRIAL
    assert save_state(rule).left_out == ()
    assert not capsys.readouterr().out


def test_something_that_contains_itself_is_left_out():
    loop: list = []
    loop.append(loop)
    deep: list = []
    for _ in range(500):
        deep = [deep]
    state = save_state(Remembering(TRIAL, loop=loop, deep=deep, kept=1))
    assert set(state.left_out) == {"loop", "deep"}


def test_a_state_above_64_mb_is_refused_with_a_word_what_to_do():
    rule = Remembering(TRIAL, everything=[np.zeros(1 << 20) for _ in range(9)])
    with pytest.raises(SMDebugValueError, match=r"Remembering exceeds 64 MB.*not the whole tensor"):
        save_state(rule)


def test_the_array_that_a_rule_continues_changing_is_kept_as_it_was():
    rule = Remembering(TRIAL, sums=np.zeros(1000))
    state = save_state(rule)
    rule.sums += 1
    assert read_state(state)["sums"].sum() == 0


def state_of(text: str, packed: bytes = b"") -> bytes:
    return b"smdebug-state 1 %010d\n" % len(text) + text.encode() + packed


def packed(**arrays_by_name) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays_by_name)
    return buffer.getvalue()


def zipped(content: bytes, compression=zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("a0.npy", content)
    return buffer.getvalue()


def npy(header: str) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


ONE_ARRAY = '{"x":{"a":[0,"<f8",[3]]}}'
HOSTILE = {
    "nothing": b"",
    "something else": b"PK\x03\x04 not a state",
    "a pickle": b"\x80\x04\x95.",
    "no length": b"smdebug-state 1 abcdefghij\n{}",
    "cut off": state_of('{"x":1}')[:-1],
    "no object": state_of("[1]"),
    "no JSON": state_of("{x}"),
    "no such type": state_of('{"x":{"run":"rm"}}'),
    "two types": state_of('{"x":{"t":[],"s":[]}}'),
    "a list as key": state_of('{"x":{"d":[[[1],2]]}}'),
    "a base attribute": state_of('{"base_trial":1}'),
    "a dunder": state_of('{"__class__":1}'),
    "an unknown factory": state_of('{"x":{"e":["eval",[]]}}'),
    "an unknown mode": state_of('{"x":{"mode":"SLEEP"}}'),
    "bad base64": state_of('{"x":{"b":"*"}}'),
    "objects by type": state_of('{"x":{"n":["|O8","AAAAAAAAAAA=",[1]]}}'),
    "a number of two": state_of('{"x":{"n":["<f4","AAAAAAAAAAA="]}}'),
    "a wrong shape": state_of('{"x":{"n":["<f4","AAAAAAAAAAA=",[3]]}}'),
    "a negative shape": state_of('{"x":{"n":["<f4","AAAAAAAAAAA=",[-1]]}}'),
    "an endless shape": state_of('{"x":{"n":["<U0","",[99999999999]]}}'),
    "deep nesting": state_of('{"x":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "a missing array": state_of(ONE_ARRAY),
    "another array": state_of(ONE_ARRAY, packed(a0=np.zeros(4))),
    "another type": state_of(ONE_ARRAY, packed(a0=np.zeros(3, np.int64))),
    "a negative array": state_of('{"x":{"a":[-1,"<f8",[3]]}}', packed(a0=np.zeros(3))),
    "no zip": state_of(ONE_ARRAY, b"zip"),
    "pickled objects": state_of(ONE_ARRAY, zipped(pickled())),
    "compressed": state_of(ONE_ARRAY, zipped(bytes(10_000_000), zipfile.ZIP_DEFLATED)),
    "a lying header": state_of(
        ONE_ARRAY, zipped(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999,), }"))
    ),
    "code as header": state_of(ONE_ARRAY, zipped(npy("__import__('os').system('false')"))),
    "no npy": state_of(ONE_ARRAY, zipped(b"abc")),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_bytes_that_are_not_state_are_refused_and_change_nothing(case):
    rule = Remembering(TRIAL, x="as it was")
    with pytest.raises(DamagedFile, match="the saved state of rule Remembering is damaged"):
        restore_state(rule, HOSTILE[case])
    assert rule.x == "as it was"
    assert rule.base_trial is TRIAL


@given(st.data())
def test_any_damage_gives_a_typed_error_or_plain_values(data):
    good = bytearray(
        bytes(save_state(Remembering(TRIAL, a={"b": (1, 2.5)}, c=np.arange(100), d=np.float32(1))))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    del good[data.draw(st.integers(1, len(good))) :]
    with contextlib.suppress(DamagedFile):
        read_state(bytes(good))


def test_a_state_is_bytes_that_name_their_format():
    state = save_state(Remembering(TRIAL, n=1))
    assert isinstance(state, RuleState)
    assert bytes(state).startswith(b"smdebug-state 1 ")
    assert json.loads(bytes(state)[27:]) == {"n": 1}
