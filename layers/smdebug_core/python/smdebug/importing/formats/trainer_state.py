"""`trainer_state.json`, which the Trainer of transformers writes into checkpoints and its output folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from smdebug.exceptions import DamagedFile
from smdebug.importing.files_below import folders_below, name_below
from smdebug.importing.formats.json_files import read_json
from smdebug.importing.records import Details, Found, Point
from smdebug.importing.text_values import RowReader

_FILE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_SETTINGS = ("max_steps", "num_train_epochs", "train_batch_size", "logging_steps", "eval_steps", "save_steps")
_OF_TRAINER = ("args.json", "training_args.json", "all_args.json")


def runs_in(path: Path) -> Iterator[Found]:
    """Yield the trainings at that path: of each, its final state, or that of its last checkpoint."""
    if path.is_file():
        if path.name == _FILE or (path.suffix == ".json" and _is_state(path)):
            name = path.parent.resolve().name if path.name == _FILE else path.stem
            yield Found("trainer", path, name, partial(_read, path))
        return
    newest: dict[Path, tuple[int, Path]] = {}
    for folder, files in folders_below(path):
        if _FILE not in files:
            continue
        checkpoint = _CHECKPOINT.fullmatch(folder.name)
        training = folder.parent if checkpoint and folder != path else folder
        step = int(checkpoint[1]) if checkpoint else 1 << 62
        newest[training] = max(newest.get(training, (-1, folder)), (step, folder))
    for training, (_, folder) in sorted(newest.items()):
        yield Found("trainer", folder / _FILE, name_below(training, path), partial(_read, folder / _FILE))


def _is_state(path: Path) -> bool:
    try:
        return isinstance(_state(path), dict)
    except DamagedFile:
        return False


def _state(path: Path) -> dict[str, Any]:
    state = read_json(path)
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        raise DamagedFile(str(path), "it has no list log_history, as trainer_state.json has")
    return state


def _read(path: Path, details: Details) -> Iterator[Point]:
    state = _state(path)
    details.config.update({name: state[name] for name in _SETTINGS if state.get(name) is not None})
    for name in _OF_TRAINER:
        if (path.parent / name).is_file():
            _add_arguments(path.parent / name, details)
    reader = RowReader(details, {"step": None})
    for entry in state["log_history"]:
        if isinstance(entry, dict):
            yield from reader.points(entry)
        else:
            details.leave_out("entries of log_history that are not objects")


def _add_arguments(path: Path, details: Details) -> None:
    try:
        arguments = read_json(path)
    except DamagedFile as error:
        details.leave_out(f"{path.name}: {error.problem}")
        return
    if isinstance(arguments, dict):
        details.config.update(arguments)
