"""What a training has logged to be looked at, as the page and reports show it; needs no server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.plain_text import escaped
from smdebug.storage.base import Storage
from smdebug.trials.logged_reading import LoggedValue, left_out_of, read_logged
from smdebug.ui.answer_types import LoggedAnswer, LoggedValueAnswer

MOST_EMBEDDED = 6 << 20
"""How many bytes of logged values a report holds."""
PNG, WAV, JSON = "image/png", "audio/wav", "application/json"
_SIGNATURES = {PNG: b"\x89PNG\r\n\x1a\n", WAV: b"RIFF"}


def logged_answer(storage: Storage) -> LoggedAnswer:
    """Return the list of what was logged, and how much was left out."""
    try:
        values, left_out = read_logged(storage), left_out_of(storage)
    except DamagedFile as damaged:
        return {"values": [], "left_out": {}, "omitted": 0, "problem": escaped(str(damaged))}
    return {
        "values": [_described(value) for value in values],
        "left_out": {escaped(why): count for why, count in left_out.items()},
        "omitted": 0,
        "problem": "",
    }


def embedded(storage: Storage) -> tuple[LoggedAnswer, dict[str, Any]]:
    """Return the list of what a report shows, and each value, by worker and number: the last ones first."""
    answer = logged_answer(storage)
    if answer["problem"] or not answer["values"]:
        return answer, {}
    room, kept = MOST_EMBEDDED, {}
    for value, key, content in _contents(reversed(read_logged(storage))):
        room -= len(content["data"]) if "data" in content else value.bytes
        if room < 0:
            break
        kept[key] = content
    shown = [each for each in answer["values"] if f"{each['worker']}/{each['number']}" in kept]
    return {**answer, "values": shown, "omitted": len(answer["values"]) - len(shown)}, kept


def _contents(values: Iterable[LoggedValue]) -> Iterator[tuple[LoggedValue, str, dict[str, Any]]]:
    for value in values:
        try:
            data = file_of(value)
        except DamagedFile:
            continue
        is_json = value.media_type not in _SIGNATURES
        content = json.loads(data) if is_json else {"data": base64.b64encode(data).decode()}
        yield value, f"{value.worker}/{value.number}", {**content, "type": value.media_type}


def file_of(value: LoggedValue) -> bytes:
    """Return the file, if it is what its media type says."""
    signature = _SIGNATURES.get(value.media_type)
    if signature is None:
        return json.dumps(_shown(value.content())).encode()
    data = value.data()
    if not data.startswith(signature):
        raise DamagedFile(value.place, f"it is no {value.kind}")
    return data


def _shown(content: Any) -> Any:
    """Return JSON with control characters escaped, except ends of lines and tabs."""
    if isinstance(content, str):
        return escaped(content, keep="\n\t")
    if isinstance(content, list):
        return [_shown(each) for each in content]
    if isinstance(content, dict):
        return {name: _shown(each) for name, each in content.items()}
    return content


def _described(value: LoggedValue) -> LoggedValueAnswer:
    return {
        "worker": value.worker,
        "number": value.number,
        "name": escaped(value.name),
        "kind": value.kind,
        "step": value.step,
        "mode": escaped(value.mode),
        "bytes": value.bytes,
        "caption": escaped(value.caption, keep="\n"),
        "note": escaped(value.note),
        "shape": list(value.shape),
    }
