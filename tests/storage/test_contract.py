"""The contract that memory, a local folder and S3 share."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smdebug.exceptions import (
    ObjectMissing,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.storage import ByteSpan, Storage, open_storage
from smdebug.storage.folder import WORTH_MAPPING
from tests.support.looking import each

KEY = "events/000000000000/000000000000_worker_0.tfevents"
AWKWARD_KEYS = [
    "index/a b.json",
    "index/50%.json",
    "index/%41.json",
    "index/1+1=2&3.json",
    "index/größe–日本🙂.json",
    "index/~'\"!*();:@,?#[]{}^`|<>.json",
    "index/...json",
    "index/.hidden",
    "index/x./y.json",
]
KEYS_THAT_LEAD_ASTRAY = [
    "",
    "/",
    "/etc/passwd",
    "..",
    ".",
    "../other/file",
    "events/../../other",
    "events/..",
    "events/./x",
    "./x",
    "events//x",
    "events/",
    "a\0b",
    "a\\b",
    "..\\other",
    "\ud800",
    "events/half.tmp",
]


def test_it_is_a_storage(storage):
    assert isinstance(storage, Storage)
    assert open_storage(storage) is storage
    assert storage.concurrency >= 1


def test_what_was_written_is_read(storage):
    storage.write(KEY, b"abcdef")
    assert storage.read(KEY) == b"abcdef"
    assert bytes(storage.view(KEY)) == b"abcdef"
    assert storage.size(KEY) == 6
    assert storage.exists(KEY)


def test_an_empty_object_is_an_object(storage):
    storage.write("training_job_end.ts", b"")
    assert storage.exists("training_job_end.ts")
    assert storage.size("training_job_end.ts") == 0
    assert storage.read("training_job_end.ts") == b""
    assert bytes(storage.view("training_job_end.ts")) == b""
    assert storage.read("training_job_end.ts", ByteSpan(0, 4)) == b""
    assert bytes(storage.view("training_job_end.ts", ByteSpan(3, 4))) == b""
    assert list(storage.list("")) == ["training_job_end.ts"]


def test_reading_a_span_returns_just_those_bytes(storage):
    storage.write(KEY, b"abcdef")
    assert storage.read(KEY, ByteSpan(2, 4)) == b"cd"
    assert bytes(storage.view(KEY, ByteSpan(2, 4))) == b"cd"


@pytest.mark.parametrize(
    ("span", "there"),
    [
        (ByteSpan(4, 100), b"ef"),
        (ByteSpan(6, 100), b""),
        (ByteSpan(2**40, 2**70), b""),
        (ByteSpan(0, 0), b""),
        (ByteSpan(3, 3), b""),
        (ByteSpan(6, 6), b""),
    ],
)
def test_a_span_past_the_end_gives_what_is_there(storage, span, there):
    storage.write(KEY, b"abcdef")
    assert storage.read(KEY, span) == there
    assert bytes(storage.view(KEY, span)) == there


@pytest.mark.parametrize("span", [ByteSpan(-1, 3), ByteSpan(4, 2), ByteSpan(-4, -2)])
def test_a_span_that_goes_backwards_is_refused(storage, span):
    storage.write(KEY, b"abcdef")
    with pytest.raises(SMDebugValueError, match="span"):
        storage.read(KEY, span)
    with pytest.raises(SMDebugValueError, match="span"):
        storage.view(KEY, span)


@pytest.mark.parametrize("size", [10, WORTH_MAPPING, 3 * WORTH_MAPPING + 5])
@pytest.mark.parametrize("start", [0, 1, 4095, 4097])
def test_a_view_is_writable_and_private(storage, size, start):
    data = bytes(range(256)) * (size // 256 + 20)
    storage.write(KEY, data)
    view = storage.view(KEY, ByteSpan(start, start + size))
    assert bytes(view) == data[start : start + size]
    view[0] = view[0] ^ 255
    assert storage.read(KEY) == data


def test_a_view_outlives_the_object(storage):
    storage.write(KEY, b"x" * 2 * WORTH_MAPPING)
    view = storage.view(KEY)
    storage.delete(KEY)
    assert bytes(view) == b"x" * 2 * WORTH_MAPPING


def test_what_is_missing_is_reported_with_its_place(storage):
    storage.write("events/there", b"x")
    for ask in (storage.read, storage.view, storage.size):
        for key in ("events/not there", "nowhere", "events", "events/there/below"):
            with pytest.raises(ObjectMissing, match=key) as raised:
                ask(key)
            assert raised.value.place.startswith(storage.location)
    for span in (ByteSpan(0, 1), ByteSpan(0, 0)):
        with pytest.raises(ObjectMissing):
            storage.read("nowhere", span)
    assert not storage.exists("nowhere")
    assert not storage.exists("events")
    assert not storage.exists("events/there/below")


def test_nothing_is_there_before_the_first_write(storage):
    assert list(storage.list("")) == []
    assert list(storage.list("index/")) == []
    assert not storage.exists(KEY)
    storage.delete(KEY)
    with pytest.raises(ObjectMissing):
        storage.read(KEY)


@pytest.fixture
def keys_in_order(storage):
    """Keys that the storage holds, in the order of their bytes."""
    keys = ["B", "a!", "a.json", "a/b.x", "a/b/c.json", "a/c/d", "a0", "b", "é", "ｚ", "🙂"]
    if not storage.location.startswith("/"):  # a folder cannot be a file as well
        keys += ["a", "a/b"]
    for key in keys:
        storage.write(key, b"")
    return sorted(keys, key=str.encode)


def test_keys_are_listed_in_the_order_of_their_bytes(storage, keys_in_order):
    assert list(storage.list("")) == keys_in_order


def test_the_keys_after_a_key_are_listed_without_it(storage, keys_in_order):
    listed = {key: list(storage.list("", start_after=key)) for key in keys_in_order}
    assert listed == {key: keys_in_order[number:] for number, key in enumerate(keys_in_order, start=1)}


def test_the_keys_that_begin_with_a_text_are_listed(storage, keys_in_order):
    for prefix in each(keys_in_order, at_least=10):
        begin_with_it = [key for key in keys_in_order if key.startswith(prefix)]
        assert list(storage.list(prefix)) == begin_with_it


def test_a_prefix_may_end_in_the_middle_of_a_name(storage):
    for key in ("index/1_a", "index/1_b", "index/2_a", "index_v2/1_a", "index/1/x"):
        storage.write(key, b"")
    assert list(storage.list("index/1")) == ["index/1/x", "index/1_a", "index/1_b"]
    assert list(storage.list("index")) == [
        "index/1/x",
        "index/1_a",
        "index/1_b",
        "index/2_a",
        "index_v2/1_a",
    ]
    assert list(storage.list("index/1_", start_after="index/1_a")) == ["index/1_b"]
    assert list(storage.list("index/", start_after="index/1_zzz")) == ["index/2_a"]
    assert list(storage.list("index/", start_after="zzz")) == []
    assert list(storage.list("index/", start_after="")) == list(storage.list("index/"))
    assert list(storage.list("nowhere/", start_after="a")) == []
    assert list(storage.list("index/1_a/deeper")) == []


def test_listing_continues_after_a_thousand_keys(storage):
    keys = [f"index/{step // 1000:09}/{step:012}_worker_0.json" for step in range(950, 2050)]
    for key in reversed(keys):
        storage.write(key, b"{}")
    assert list(storage.list("index/")) == keys
    assert list(storage.list("index/", start_after=keys[20])) == keys[21:]
    assert list(storage.list("index/", start_after="index/000000001/")) == keys[50:]


@pytest.mark.parametrize("key", AWKWARD_KEYS)
def test_names_may_hold_what_a_url_would_mangle(storage, key):
    storage.write(key, b"1")
    with_sink = storage.create(key + "2")
    with_sink.write([b"2"])
    with_sink.commit()
    assert storage.read(key) == b"1"
    assert list(storage.list("index/")) == sorted([key, key + "2"])
    assert list(storage.list("index/", start_after=key)) == [key + "2"]
    storage.delete(key)
    assert not storage.exists(key)


@pytest.mark.parametrize("key", KEYS_THAT_LEAD_ASTRAY)
def test_a_key_that_could_lead_elsewhere_is_refused_everywhere(storage, key):
    storage.write("events/x", b"")
    asks = [
        storage.read,
        storage.view,
        storage.size,
        storage.exists,
        storage.create,
        storage.claim,
        storage.delete,
        lambda key: storage.write(key, b"!"),
    ]
    for ask in asks:
        with pytest.raises(SMDebugValueError, match="cannot be the key"):
            ask(key)
    assert list(storage.list("")) == ["events/x"]


@pytest.mark.parametrize("prefix", ["/", "/etc", "../", "a/../b", "a//b", "./a", "a\0", "a\\", "\udfff"])
def test_a_prefix_that_could_lead_elsewhere_is_refused(storage, prefix):
    with pytest.raises(SMDebugValueError, match="the prefix of keys"):
        storage.list(prefix)


def test_start_after_that_is_not_text_of_a_key_is_refused(storage):
    with pytest.raises(SMDebugValueError, match="listed from"):
        storage.list("", start_after="\ud800")


def test_a_key_is_text(storage):
    with pytest.raises(SMDebugTypeError):
        storage.read(b"events/x")


examples = itertools.count()


@given(key=st.text(alphabet=st.sampled_from("ab./\\\0 é\ud800"), max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_a_key_is_either_refused_or_kept_as_it_is(storage, key):
    if key and key[-1] != "/":
        key += str(next(examples))  # an example before may have left a folder of that name
    try:
        storage.write(key, key.encode("utf-8", "replace"))
    except SMDebugValueError:
        return
    assert storage.read(key) == key.encode()
    assert key in list(storage.list(""))
    storage.delete(key)


def test_writing_replaces_what_was_there(storage):
    storage.write(KEY, b"a long first version")
    storage.write(KEY, b"second")
    assert storage.read(KEY) == b"second"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_written(storage, kind):
    storage.write(KEY, kind(b"abc"))
    assert storage.read(KEY) == b"abc"


def test_an_object_becomes_visible_when_it_is_committed(storage):
    sink = storage.create(KEY)
    sink.write([b"ab", bytearray(b"cd")])
    assert not storage.exists(KEY)
    assert list(storage.list("")) == []
    sink.write([memoryview(b"ef"), b"", memoryview(bytearray(8)).cast("d")])
    sink.write([])
    assert not storage.exists(KEY)
    sink.commit()
    assert storage.read(KEY) == b"abcdef" + bytes(8)


def test_pieces_may_change_after_they_were_written(storage):
    piece = bytearray(b"before")
    sink = storage.create(KEY)
    sink.write([piece])
    piece[:] = b"after!"
    sink.commit()
    assert storage.read(KEY) == b"before"


def test_an_aborted_object_leaves_no_trace_and_what_was_there_stays(storage):
    storage.write(KEY, b"first")
    sink = storage.create(KEY)
    sink.write([b"second"])
    sink.abort()
    sink.abort()
    assert storage.read(KEY) == b"first"
    other = storage.create("events/other")
    other.abort()
    assert list(storage.list("")) == [KEY]


def test_a_finished_object_takes_no_more(storage):
    committed = storage.create(KEY)
    committed.commit()
    committed.abort()
    assert storage.read(KEY) == b""
    aborted = storage.create("events/other")
    aborted.abort()
    for sink in (committed, aborted):
        with pytest.raises(SMDebugRuntimeError, match="create a new object"):
            sink.write([b"more"])
        with pytest.raises(SMDebugRuntimeError, match="create a new object"):
            sink.commit()


def test_many_small_pieces_at_once(storage):
    pieces = [str(number).encode() for number in range(5000)]
    sink = storage.create(KEY)
    sink.write(pieces)
    sink.commit()
    assert storage.read(KEY) == b"".join(pieces)


def test_two_writers_of_one_key_both_succeed_and_one_of_them_wins(storage):
    first, second = storage.create(KEY), storage.create(KEY)
    first.write([b"1" * 1000])
    second.write([b"2" * 500])
    first.write([b"1" * 1000])
    second.commit()
    assert storage.read(KEY) == b"2" * 500
    first.commit()
    assert storage.read(KEY) == b"1" * 2000
    assert list(storage.list("")) == [KEY]


# Not at moto, which loses objects when threads replace one; that S3 does not is Amazon's promise.
@pytest.mark.parametrize("storage", ["memory", "folder"], indirect=True)
def test_writers_on_many_threads_never_tear_an_object(storage):
    def write(number: int) -> None:
        for _ in range(20):
            storage.write(KEY, bytes([number]) * (1000 + number))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    data = storage.read(KEY)
    assert data == bytes([data[0]]) * (1000 + data[0])
    assert list(storage.list("")) == [KEY]


def test_the_first_to_claim_wins(storage):
    assert storage.claim("claim.smd")
    if not storage.location.startswith("s3://"):  # there every process writes, as it always did
        assert not storage.claim("claim.smd")
        assert storage.read("claim.smd") == b""
        storage.delete("claim.smd")
        assert storage.claim("claim.smd")


def test_deleting_twice_is_deleting(storage):
    storage.write(KEY, b"x")
    storage.delete(KEY)
    storage.delete(KEY)
    assert not storage.exists(KEY)


def test_a_copy_sent_to_another_process_reads_the_same(storage):
    storage.write(KEY, b"abc")
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.location == storage.location
    assert copy.read(KEY) == b"abc"
    assert copy.claim("other")


def test_an_object_is_replaced_if_it_is_still_the_one_that_was_read(storage):
    assert storage.replace(KEY, None, b"first")
    assert not storage.replace(KEY, None, b"second")
    assert not storage.replace(KEY, b"other", b"second")
    assert storage.read(KEY) == b"first"
    assert storage.replace(KEY, b"first", b"second")
    assert storage.read(KEY) == b"second"
    storage.delete(KEY)
    assert not storage.replace(KEY, b"second", b"third")
    assert not storage.exists(KEY)
