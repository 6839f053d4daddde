"""What a run has logged to be looked at, as files for other tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from smdebug.exceptions import DamagedFile
from smdebug.sinks.records import FileRecord
from smdebug.trials.logged_reading import LoggedValue

_ENDS = {"image": "png", "audio": "wav", "text": "txt"}


def logged_files(values: Iterable[LoggedValue]) -> Iterator[FileRecord]:
    """Yield each value as a file: `logged/digits/step-000000000100-3.png`; a damaged one is left out."""
    for value in values:
        try:
            yield FileRecord(_path_of(value), _content_of(value))
        except DamagedFile:  # `smdebug verify` reports it
            continue


def _path_of(value: LoggedValue) -> str:
    name = re.sub(r"[^\w.-]+", "-", value.name, flags=re.ASCII).strip("-.")[:100] or "value"
    worker = "" if value.worker == "worker_0" else f"-{re.sub(r'[^0-9A-Za-z_]+', '-', value.worker)}"
    return f"logged/{name}/step-{value.step:012}-{value.number}{worker}.{_ENDS.get(value.kind, 'json')}"


def _content_of(value: LoggedValue) -> bytes:
    if value.kind in ("image", "audio"):
        return value.data()
    if value.kind == "text":
        return str(value.read()).encode("utf-8", "replace")
    return json.dumps(value.content(), ensure_ascii=False, indent=1).encode("utf-8", "replace")
