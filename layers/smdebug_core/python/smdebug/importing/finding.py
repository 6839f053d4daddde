"""Finds the runs below a path, and recognises their formats by their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from smdebug.amounts import counted
from smdebug.exceptions import SMDebugValueError
from smdebug.importing.formats import (
    csv_logs,
    json_lines,
    mlflow_runs,
    neptune_tables,
    tensorboard_logs,
    trainer_state,
    wandb_runs,
)
from smdebug.importing.records import Found

#: In the order in which they are recognised: a folder of Lightning's may have event files beside its csv.
FORMATS: Mapping[str, Callable[[Path], Iterator[Found]]] = {
    "wandb": wandb_runs.runs_in,
    "mlflow": mlflow_runs.runs_in,
    "trainer": trainer_state.runs_in,
    "tensorboard": tensorboard_logs.runs_in,
    "csv": csv_logs.runs_in,
    "neptune": neptune_tables.runs_in,
    "jsonl": json_lines.runs_in,
}


def find_runs(source: str | Path, format: str | None = None) -> list[Found]:
    """Return the runs at that path: those of the format, or else of the first format that has any."""
    path = Path(source).expanduser()
    if format is not None and format not in FORMATS:
        raise SMDebugValueError(f"There is no format {format}: they are {', '.join(FORMATS)}")
    if not path.exists():
        raise SMDebugValueError(f"There is no file or folder {source}")
    for name in FORMATS if format is None else (format,):
        found = _with_own_names(FORMATS[name](path))
        if found:
            return found
    if format is not None:
        raise SMDebugValueError(f"{source} holds no run of {format}")
    kind = "folder" if path.is_dir() else "file"
    raise SMDebugValueError(
        f"{source} is a {kind} without a known log: {counted(len(FORMATS), 'format')} can be read "
        f"({', '.join(FORMATS)}). Name the format with --from if the file has another ending"
    )


def _with_own_names(runs: Iterator[Found]) -> list[Found]:
    """Return the runs, those of equal names with numbers: the names are those of folders."""
    taken: set[str] = set()
    found = []
    for run in runs:
        plain = "".join(each if each.isalnum() or each in "-_." else "-" for each in run.name).strip(".-")
        name = unique = plain[:100] or "run"
        number = 2
        while unique.lower() in taken:
            unique, number = f"{name}-{number}", number + 1
        taken.add(unique.lower())
        found.append(Found(run.format, run.place, unique, run.read))
    return found
