"""Collections files: which tensors belong together, and how many workers save them.

    {"collections": {"losses": {"name": "losses", "include_regex": ["loss"], "tensor_names": [],
                                "reduction_config": null, "save_config": null, "save_histogram": true}},
     "_meta": {"num_workers": 1, "closed": true, "last_step": 50, "steps_written": 6,
               "lost_steps": {"count": 2, "first": 30, "last": 40, "reason": "No space left on device"},
               "file_crc32c": 3735928559}}

From `closed` on, the keys are the closing note of the file's worker. An index file names `lost_steps`, too.

Regular expressions are only checked to be strings here: what they match does not matter to the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from smdebug.exceptions import DamagedFile, SMDebugTypeError
from smdebug.files.file_checksum import ChangedFile, with_checksum, without_checksum
from smdebug.files.names import LAST_STEP
from smdebug.files.wrong_content import KINDS, WrongContent, check_size, shown
from smdebug.mode_keys import ModeKeys

MOST_WORKERS: Final = 100_000
_LONGEST_NAME: Final = 1024  # characters, as many as a key of S3 has at most
_COUNTED: Final = ("training_run", "resumed_at", "last_step")
_MODES: Final = frozenset(mode.name for mode in ModeKeys)
CLOSED: Final = "closed"
_LAST_STEP, _STEPS_WRITTEN, _FAILED_AT = "last_step", "steps_written", "failed_at"
_LOST_STEPS: Final = "lost_steps"
_LONGEST_REASON: Final = 500  # characters
_LONGEST_CHECKED: Final = 5_000
_LATEST: Final = 1e11  # seconds: the year 5138


@dataclass(frozen=True)
class LostSteps:
    """The steps that a worker wanted to save so far and could not write."""

    count: int
    """How many; at least so many where `last` is None."""
    first: int | None
    last: int | None
    """None if nothing was saved from `first` on."""
    reason: str

    def to_meta(self) -> dict[str, Any]:
        """Return the entry of `meta`; none if nothing was lost."""
        if not self.count:
            return {}
        return {_LOST_STEPS: {**vars(self), "reason": _shown(self.reason)}}

    @classmethod
    def named_in(cls, meta: Mapping[str, Any]) -> LostSteps | None:
        """Return what an index file or a collections file says was lost; None if nothing."""
        lost = meta.get(_LOST_STEPS)
        if type(lost) is not dict or not (count := whole_number(lost.get("count"))):
            return None
        reason = lost.get("reason")
        first, last = whole_number(lost.get("first")), whole_number(lost.get("last"))
        return cls(count, first, last, _shown(reason) if type(reason) is str else "")


def _shown(reason: str) -> str:
    """Return the reason without secrets: an error of a storage may quote a request."""
    from smdebug.secrets.texts import redacted  # few runs lose a step

    return redacted(reason[:_LONGEST_CHECKED])[:_LONGEST_REASON]


class ClosingNote(NamedTuple):
    """What a worker says of its steps when its hook is closed."""

    last_step: int | None
    """The last step whose files it has written; None if there is none."""
    steps_written: int | None
    """How many steps it has written in this attempt; None in notes that do not say it."""
    lost: LostSteps | None = None
    failed_at: float | None = None
    """When a training that raised or was terminated closed it; None if the training came to its end."""

    def to_meta(self) -> dict[str, Any]:
        """Return the entries of `_meta`."""
        lost = {} if self.lost is None else self.lost.to_meta()
        failed = {} if self.failed_at is None else {_FAILED_AT: round(self.failed_at, 3)}
        return {
            CLOSED: True,
            _LAST_STEP: self.last_step,
            _STEPS_WRITTEN: self.steps_written,
            **failed,
            **lost,
        }

    @classmethod
    def named_in(cls, meta: Mapping[str, Any]) -> ClosingNote | None:
        """Return the note in the `_meta` of a collections file; None if its worker has not closed."""
        last = meta.get(_LAST_STEP)
        if meta.get(CLOSED) is not True or _LAST_STEP not in meta:
            return None
        if last is not None and whole_number(last) is None:
            return None
        return cls(
            last,
            whole_number(meta.get(_STEPS_WRITTEN)),
            LostSteps.named_in(meta),
            _time(meta.get(_FAILED_AT)),
        )


def whole_number(value: object) -> int | None:
    """Return a step or a number of steps; None if `value` is neither."""
    return value if type(value) is int and 0 <= value <= LAST_STEP else None


def _time(value: object) -> float | None:
    """Return a time in seconds; None if `value` is none."""
    is_number = type(value) in (int, float)
    return float(value) if is_number and 0 <= value < _LATEST else None  # type: ignore[operator, arg-type]


def encode_collections(collections: Mapping[str, Any], *, checksum: bool = False) -> bytes:
    """Return the collections file: JSON with Python's default separators, in the given order.

    With `checksum`, the file carries its own, at the end of `_meta`, which must be its last key.
    """
    try:
        data = json.dumps(collections).encode("ascii")
        return with_checksum(data[:-2], data[-2:]) if checksum else data
    except (TypeError, ValueError) as error:
        raise SMDebugTypeError(f"A collections file holds plain data only: {error}") from error


def parse_collections(data: bytes, *, file: str) -> dict[str, Any]:
    """Return the checked content of a collections file; `DamagedFile` names the problem and its place.

    Keys that are not known inside a collection or `_meta` are kept; at the top there are none.
    """
    try:
        return _parse(data)
    except WrongContent as error:
        raise DamagedFile(file, str(error)) from error


def _parse(data: bytes) -> dict[str, Any]:
    check_size(data)
    try:
        content = json.loads(without_checksum(data).decode())
    except ChangedFile as error:
        raise WrongContent(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise WrongContent(f"it is not JSON ({error})") from error
    _is(content, dict, "the file")
    strange = sorted(content.keys() - {"collections", "_meta"})
    if strange:
        raise WrongContent(f"{ascii(strange[0])[:80]} is not allowed beside collections and _meta")
    collections = _is(content.get("collections"), dict, "collections")
    for name, collection in collections.items():
        _check_collection(collection, f"collections[{ascii(name)[:80]}]", name)
    meta = _is(content.get("_meta", {}), dict, "_meta")
    workers = meta.get("num_workers", 1)
    if type(workers) is not int or workers < 1:
        raise WrongContent(f"_meta.num_workers is {shown(workers)} instead of 1 or more")
    if workers > MOST_WORKERS:
        raise WrongContent(
            f"_meta.num_workers is {shown(workers)}, and at most {MOST_WORKERS} can save a run"
        )
    _check_attempt(meta)
    return {**content, "_meta": {**meta, "num_workers": workers}}


def _check_attempt(meta: dict[str, Any]) -> None:
    """Raise if a name or number of the attempt is too large; one of another type counts as absent."""
    replicas = meta.get("replicas")
    named = {"run_id": meta.get("run_id")}
    if type(replicas) is dict:
        named["replicas.chief"] = replicas.get("chief")
    for key, name in named.items():
        if type(name) is str and len(name) > _LONGEST_NAME:
            raise WrongContent(
                f"_meta.{key} has {len(name)} characters, and at most {_LONGEST_NAME} are allowed"
            )
    for key in _COUNTED:
        number = meta.get(key)
        if type(number) is int and abs(number) > LAST_STEP:
            raise WrongContent(f"_meta.{key} is {shown(number)}, and must be below {LAST_STEP + 1}")


def _check_collection(collection: Any, where: str, name: str) -> None:
    _is(collection, dict, where)
    if collection.get("name", name) != name:
        raise WrongContent(f"{where} has the name {shown(collection['name'])}")
    for key in ("include_regex", "tensor_names"):
        _check_all(collection.get(key, []), str, f"{where}.{key}")
    if type(collection.get("save_histogram", True)) is not bool:
        raise WrongContent(f"{where}.save_histogram is {shown(collection['save_histogram'])}, not a boolean")
    reduction_config = collection.get("reduction_config")
    if reduction_config is not None:
        _check_reduction_config(reduction_config, f"{where}.reduction_config")
    save_config = collection.get("save_config")
    if save_config is not None:
        _check_save_config(save_config, f"{where}.save_config")


def _check_reduction_config(config: Any, where: str) -> None:
    _is(config, dict, where)
    _is(config.get("reductions", ""), str, f"{where}.reductions")
    for key in ("save_raw_tensor", "save_shape"):
        _is(config.get(key, False), bool, f"{where}.{key}")


def _check_save_config(config: Any, where: str) -> None:
    for mode, mode_config in _is(config, dict, where).items():
        if mode not in _MODES:
            raise WrongContent(f"{where} has a mode {ascii(mode)[:80]}, which does not exist")
        if mode_config is None:
            continue
        here = f"{where}.{mode}"
        _is(mode_config, dict, here)
        for key in ("save_interval", "start_step", "end_step"):
            number = mode_config.get(key)
            if number is not None:
                _is(number, int, f"{here}.{key}")
        steps = mode_config.get("save_steps")
        if steps is not None:
            _check_all(steps, int, f"{here}.save_steps")


def _check_all(values: Any, kind: type, where: str) -> None:
    """Raise for what is no list of values of this type; the place of a value is named only then."""
    if set(map(type, _is(values, list, where))) <= {kind}:
        return
    for at, value in enumerate(values):
        _is(value, kind, f"{where}[{at}]")


def _is(value: Any, kind: type, where: str) -> Any:
    if type(value) is not kind:
        raise WrongContent(f"{where} is {shown(value)} instead of {KINDS.get(kind, 'a whole number')}")
    return value
