"""Index files: what one worker saved at one step, and where in the event file each tensor is.

    {"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "events/…"},
     "tensor_payload": [{"tensorname": "loss", "start_idx": 0, "length": 148}],
     "shape_payload": [{"tensorname": "loss", "originalname": "loss", "shape": []}]}

Ours add `crc32c`, `dtype` and `shape` to a tensor's entry and further keys to `meta`, the last of them a
checksum of the file (`files.file_checksum`); readers ignore keys they do not know. Where tensors were chosen,
`observed_payload` in `meta` lists what observes them (`files.observations`), with entries like theirs. A file
is checked here, once, so that no reader has to check again whether an offset is a number or a path leaves the
run.

It is long because each entry is checked here, and every problem is named with its place.

Where JSON gives a key twice, the last one counts. Where two entries name the same tensor, both are kept
in order, and a lookup of a name takes the last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from json.encoder import encode_basestring_ascii as quoted
from operator import itemgetter
from typing import Any, Final, NamedTuple

from smdebug.exceptions import IndexReaderException, SMDebugValueError
from smdebug.files.dtypes import least_bytes
from smdebug.files.file_checksum import CHECKSUM_KEY, ChangedFile, with_checksum, without_checksum
from smdebug.files.names import step_file
from smdebug.files.wrong_content import WrongContent, check_size, kind_of, shown
from smdebug.mode_keys import ModeKeys

BESIDE: Final = "observed_payload"
"""The key in `meta` of the tensors that observe those in `tensor_payload`, with entries like theirs."""
_LARGEST_OFFSET: Final = (1 << 63) - 1
_LARGEST_CRC: Final = (1 << 32) - 1
_MODES: Final = {mode.name: mode for mode in ModeKeys}


class IndexMeta(NamedTuple):
    """The mode and mode step of an index file, and the event file that holds its tensors."""

    mode: ModeKeys
    mode_step: int
    event_file_name: str | None = None
    extras: Mapping[str, Any] = {}


class TensorEntry(NamedTuple):
    """The place of a tensor's record in the event file, from its length word to its footer."""

    name: str
    start: int
    length: int
    crc32c: int | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None


class ShapeRecord(NamedTuple):
    """The shape of a tensor that may have been saved without its value."""

    name: str
    original_name: str
    shape: tuple[int, ...]


class IndexFile(NamedTuple):
    """One index file in columns: the i-th value of each belongs to the i-th tensor, in the file's order.

    A column is None if no entry has that key, and a value is None if its entry lacks the key.
    """

    meta: IndexMeta
    names: tuple[str, ...]
    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    crcs: tuple[int | None, ...] | None
    dtypes: tuple[str | None, ...] | None
    shapes: tuple[tuple[int, ...] | None, ...] | None
    shape_records: tuple[ShapeRecord, ...]
    beside: int = 0
    """How many of the tensors, the last ones, observe the others and are not listed among them."""


def encode_index(
    meta: IndexMeta,
    tensors: Sequence[TensorEntry],
    shapes: Sequence[ShapeRecord] = (),
    *,
    beside: Sequence[TensorEntry] = (),
    checksum: bool = False,
) -> bytes:
    """Return the index file as the old library writes it, with the additional keys.

    Entries `beside` the others go into `meta`, where the old library's reader does not see them. If there are
    no others, it does not count the worker at that step.

    With `checksum`, the file carries its own, which every reader of ours checks.
    """
    if not (tensors or shapes or beside):
        raise SMDebugValueError(
            "An index file needs a tensor or a shape: readers do not count a step that has neither"
        )
    head: dict[str, Any] = {"mode": meta.mode.name, "mode_step": meta.mode_step}
    if meta.event_file_name is not None:
        head["event_file_name"] = meta.event_file_name
    head |= meta.extras
    payloads = {
        "tensor_payload": [],
        "shape_payload": [
            {"tensorname": name, "originalname": original_name, "shape": shape}
            for name, original_name, shape in shapes
        ],
    }
    before, after = json.dumps({"meta": head, **payloads}).rsplit('}, "tensor_payload": []', 1)
    if beside:
        before += f', "{BESIDE}": [{", ".join(_written(beside))}]'
    head_part = before.encode("ascii")
    tail = f'}}, "tensor_payload": [{", ".join(_written(tensors))}]{after}'.encode("ascii")
    return with_checksum(head_part, tail) if checksum else head_part + tail


def _written(tensors: Sequence[TensorEntry]) -> Iterator[str]:
    """Yield the JSON of each entry, by hand: `json` took half the time of saving a small tensor."""
    for name, start, length, crc, dtype, shape in tensors:
        end = _end_of_entry(dtype, shape)
        checksum = "" if crc is None else f', "crc32c": {crc:d}'
        yield f'{{"tensorname": {quoted(name)}, "start_idx": {start:d}, "length": {length:d}{checksum}{end}'


@lru_cache(maxsize=1024)
def _end_of_entry(dtype: str | None, shape: tuple[int, ...] | None) -> str:
    """The end of an entry, which few tensors differ in, and steps hardly."""
    end = "}"
    if shape is not None:
        end = f', "shape": {json.dumps(shape)}{end}'
    if dtype is not None:
        end = f', "dtype": {quoted(dtype)}{end}'
    return end


def parse_index(data: bytes, *, file: str) -> IndexFile:
    """Return the checked content of an index file; `IndexReaderException` names the file and the problem."""
    try:
        return _parse(data, file)
    except (WrongContent, ChangedFile) as error:
        kind = "damaged" if isinstance(error, ChangedFile) else "not an index file"
        raise IndexReaderException(
            f"{file} is {kind}: {error}. Restore the file, or "
            "remove it to read the run without this worker's step."
        ) from error


def parse_meta(head: bytes, *, file: str) -> IndexMeta | None:
    """Return the checked `meta` of a head that names an event file and holds nothing else.

    None for any other head, which `parse_index` has to read with the rest of its file.
    """
    try:
        check_size(head)
        index = json.loads(head.decode())
        if type(index) is not dict or list(index) != ["meta"]:
            return None
        meta = _meta(index["meta"], file)
    except (ValueError, RecursionError, WrongContent):
        return None
    has_checksum = CHECKSUM_KEY in index["meta"]  # a second one: the file has to be checked
    is_whole = not has_checksum and BESIDE not in index["meta"]
    return meta if is_whole and meta.event_file_name is not None else None


def _parse(data: bytes, file: str) -> IndexFile:
    check_size(data)
    data = without_checksum(data)
    try:
        index = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise WrongContent(f"it is not JSON ({error})") from error
    if type(index) is not dict:
        raise WrongContent(f"it holds {kind_of(index)} instead of an object")
    tensors, shapes = index.get("tensor_payload", _ABSENT), index.get("shape_payload", _ABSENT)
    if tensors is _ABSENT and shapes is _ABSENT:
        raise WrongContent("it has neither tensor_payload nor shape_payload")
    meta = _meta(index.get("meta"), file)
    beside = index["meta"].get(BESIDE, _ABSENT)
    for key, payload in (("tensor_payload", tensors), ("shape_payload", shapes), (BESIDE, beside)):
        if type(payload) is not list and payload is not _ABSENT:
            raise WrongContent(f"{key} is {kind_of(payload)} instead of a list")
    listed = len(tensors)
    if beside:
        tensors = tensors + beside
    columns = _tensor_columns(tensors, listed) if tensors else _NO_TENSORS
    # Some tests of the old library wrote "": only values need the event file.
    if (
        columns is not _NO_TENSORS
        and meta.event_file_name is None
        and index["meta"].get("event_file_name") != ""
    ):
        raise WrongContent("it lists tensors, and its meta names no event_file_name to find them in")
    return IndexFile(meta, *columns, _shape_records(shapes) if shapes else (), len(beside))


_ABSENT: Final[list[Any]] = []

_Columns = tuple[
    tuple[str, ...],
    tuple[int, ...],
    tuple[int, ...],
    tuple[int | None, ...] | None,
    tuple[str | None, ...] | None,
    tuple[tuple[int, ...] | None, ...] | None,
]
_NO_TENSORS: Final[_Columns] = ((), (), (), None, None, None)


def _meta(meta: Any, file: str) -> IndexMeta:
    if type(meta) is not dict or not meta:
        raise WrongContent(f"its meta is {kind_of(meta) if meta != {} else 'empty'}")
    extras = dict(meta)
    extras.pop(CHECKSUM_KEY, None)  # of a file that was laid out again, which has none to check
    extras.pop(BESIDE, None)
    mode_name = extras.pop("mode", None)
    mode = _MODES.get(mode_name) if type(mode_name) is str else None
    if mode is None:
        raise WrongContent(f"meta.mode is {shown(mode_name)} instead of {', '.join(_MODES)}")
    mode_step = extras.pop("mode_step", None)
    if mode_step is None:  # as the old library writes it for a shape without a value
        named = step_file(file)
        mode_step = named.step if named else None
    if type(mode_step) is not int or not -_LARGEST_OFFSET <= mode_step <= _LARGEST_OFFSET:
        raise WrongContent(f"meta.mode_step is {shown(mode_step)} instead of a step")
    event_file = extras.pop("event_file_name", None)
    if event_file == "":
        event_file = None
    if event_file is not None:
        _check_inside(event_file)
        named, pointed = step_file(file), step_file(event_file)
        is_ours = "previous_step" in extras  # tests of the old library let several steps share a file
        if is_ours and named is not None and pointed is not None and named != pointed:
            raise WrongContent(
                f"meta.event_file_name is {shown(event_file)}, which belongs to step {pointed.step} of "
                f"{pointed.worker[:80]}: the index file was copied from there"
            )
    return IndexMeta(mode, mode_step, event_file, extras)


def _check_inside(event_file: Any) -> None:
    """Raise unless this is the key of a file of the run, on any storage."""
    if type(event_file) is not str:
        raise WrongContent(f"meta.event_file_name is {kind_of(event_file)} instead of a string")
    if "\\" in event_file or not _OUTSIDE.isdisjoint(event_file.split("/")) or not _is_text(event_file):
        raise WrongContent(
            f"meta.event_file_name is {shown(event_file)}, which is not a plain path inside the run"
        )


_OUTSIDE: Final = frozenset({"", ".", ".."})


def _tensor_columns(entries: list[Any], listed: int) -> _Columns:
    """Return the entries' keys as columns, each checked as a whole; `_wrong_entry` finds the wrong entry.

    Those behind the first `listed` ones observe the others.
    """
    try:
        names = tuple(map(_TENSORNAME, entries))
        starts = tuple(map(_START_IDX, entries))
        lengths = tuple(map(_LENGTH, entries))
        crcs = dtypes = raw_shapes = None
        if sum(map(len, entries)) > 3 * len(entries):
            crcs = _column(entries, "crc32c")
            dtypes = _column(entries, "dtype")
            raw_shapes = _column(entries, "shape")
    except (KeyError, TypeError, AttributeError, IndexError):
        raise _wrong_entry(entries, listed) from None
    if not (
        set(map(type, names)) == _STR
        and set(map(type, starts)) == _INT
        and set(map(type, lengths)) == _INT
        and min(starts) >= 0
        and max(starts) <= _LARGEST_OFFSET
        and min(lengths) >= 1
        and max(lengths) <= _LARGEST_OFFSET
        and all(names)
        and _is_text("".join(names))
        and (crcs is None or _are_crcs(crcs))
        and (dtypes is None or set(map(type, dtypes)) <= _STR_OR_NONE)
        and (raw_shapes is None or _are_shapes(raw_shapes))
    ):
        raise _wrong_entry(entries, listed)
    shapes: tuple[tuple[int, ...] | None, ...] | None = None
    if raw_shapes is not None:
        if None in raw_shapes:
            shapes = tuple([shape if shape is None else tuple(shape) for shape in raw_shapes])
        else:
            shapes = tuple(map(tuple, raw_shapes))
        _check_sizes(names, lengths, dtypes, shapes)
    return names, starts, lengths, crcs, dtypes, shapes


def _check_sizes(
    names: Sequence[str],
    lengths: Sequence[int],
    dtypes: Sequence[str | None] | None,
    shapes: Sequence[tuple[int, ...] | None],
) -> None:
    """Raise if a shape needs more bytes than its record has."""
    for at, (length, shape) in enumerate(zip(lengths, shapes, strict=True)):
        if shape is not None and least_bytes(dtypes[at] if dtypes else None, shape) > length:
            raise WrongContent(
                f"{ascii(names[at])[:80]} has the shape {_in_words(shape)}, which does not fit "
                f"into its record of {length} bytes"
            )


def _in_words(shape: tuple[int, ...]) -> str:
    return str(shape) if len(shape) <= 8 else f"({', '.join(map(str, shape[:8]))}, …)"


_TENSORNAME: Final = itemgetter("tensorname")
_START_IDX: Final = itemgetter("start_idx")
_LENGTH: Final = itemgetter("length")


def _column(entries: list[dict[str, Any]], key: str) -> tuple[Any, ...] | None:
    if key not in entries[0] and not any(key in entry for entry in entries):
        return None
    try:
        return tuple(map(itemgetter(key), entries))
    except KeyError:
        return tuple([entry.get(key) for entry in entries])


_STR: Final = frozenset({str})
_STR_OR_NONE: Final = frozenset({str, type(None)})
_INT: Final = frozenset({int})
_INT_OR_NONE: Final = frozenset({int, type(None)})
_LIST_OR_NONE: Final = frozenset({list, type(None)})


def _is_text(name: str) -> bool:
    """Whether an event file can hold the name: UTF-8 without NUL."""
    if "\0" in name:
        return False
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _are_crcs(crcs: Sequence[Any]) -> bool:
    kinds = set(map(type, crcs))
    if kinds != _INT:
        if not kinds <= _INT_OR_NONE:
            return False
        crcs = [0, *(crc for crc in crcs if crc is not None)]
    return bool(min(crcs) >= 0 and max(crcs) <= _LARGEST_CRC)


def _are_shapes(shapes: Sequence[Any]) -> bool:
    if not set(map(type, shapes)) <= _LIST_OR_NONE:
        return False
    sizes = list(chain.from_iterable(filter(None, shapes)))
    return not sizes or (set(map(type, sizes)) == _INT and min(sizes) >= 0 and max(sizes) <= _LARGEST_OFFSET)


def _wrong_entry(entries: list[Any], listed: int) -> WrongContent:
    """Return the problem of the first invalid entry. Slow: called only if there is one."""
    for at, entry in enumerate(entries):
        where = f"tensor_payload[{at}]" if at < listed else f"{BESIDE}[{at - listed}]"
        if type(entry) is not dict:
            return WrongContent(f"{where} is {kind_of(entry)} instead of an object")
        try:
            _name(entry.get("tensorname"), f"{where}.tensorname")
        except WrongContent as wrong:
            return wrong
        for key, least in (("start_idx", 0), ("length", 1)):
            number = entry.get(key)
            if type(number) is not int or not least <= number <= _LARGEST_OFFSET:
                return WrongContent(
                    f"{where}.{key} is {shown(number)} instead of a number of bytes, {least} or more"
                )
        if not _are_crcs([entry.get("crc32c")]):
            return WrongContent(f"{where}.crc32c is {shown(entry['crc32c'])} instead of a CRC32C")
        if type(entry.get("dtype")) not in _STR_OR_NONE:
            return WrongContent(f"{where}.dtype is {kind_of(entry['dtype'])} instead of a string")
        if not _are_shapes([entry.get("shape")]):
            return WrongContent(f"{where}.shape is {shown(entry['shape'])} instead of a list of sizes")
    return WrongContent("its tensor_payload is not a list of tensors")


def _shape_records(entries: list[Any]) -> tuple[ShapeRecord, ...]:
    records = []
    for at, entry in enumerate(entries):
        where = f"shape_payload[{at}]"
        if type(entry) is not dict:
            raise WrongContent(f"{where} is {kind_of(entry)} instead of an object")
        name = _name(entry.get("tensorname"), f"{where}.tensorname")
        original_name = entry.get("originalname")
        original_name = name if original_name is None else _name(original_name, f"{where}.originalname")
        shape = entry.get("shape")
        if shape is None or not _are_shapes([shape]):
            raise WrongContent(f"{where}.shape is {shown(shape)} instead of a list of sizes")
        records.append(ShapeRecord(name, original_name, tuple(shape)))
    return tuple(records)


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise WrongContent(f"{where} is {kind_of(name)} instead of a string")
    if not name or not _is_text(name):
        raise WrongContent(f"{where} is {shown(name)}, which cannot be the name of a tensor")
    return name
