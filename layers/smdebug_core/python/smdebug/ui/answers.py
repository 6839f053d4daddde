"""The answers of the server, as plain data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdebug.amounts import as_json_number
from smdebug.numbers.rows import COLUMNS
from smdebug.plain_text import escaped
from smdebug.service.run_status import RunSnapshot
from smdebug.ui.answer_types import (
    RowAnswer,
    RunAnswer,
    Runs,
    SeriesAnswer,
)
from smdebug.ui.board import Board, Row
from smdebug.ui.costs import Estimate, estimate
from smdebug.ui.deployed import in_full, in_list
from smdebug.ui.glance import Glance, configuration_of, state_of, timed
from smdebug.ui.matrices import Window
from smdebug.ui.pyramid import Stretches
from smdebug.ui.reading import RunReader
from smdebug.ui.verdict_answers import issue_answer, verdict_of


def runs_answer(board: Board) -> Runs:
    """Return the list of runs."""
    return {
        "version": board.version,
        "looking": board.is_looking,
        "places": [escaped(place) for place in board.listing.names],
        "runs": [row_answer(board, row) for row in board.rows],
        "errors": list(board.errors.values()),
    }


def row_answer(board: Board, row: Row) -> RowAnswer:
    """Return one run of the list."""
    glance = row.glance
    snapshot = snapshot_of(board, row)
    cost = cost_of(row)
    return {
        "id": row.id,
        "name": row.name,
        "path": escaped(row.path),
        "state": glance.state,
        "error": glance.error,
        "note": glance.note,
        "steps": glance.steps,
        "last_step": glance.last_step,
        "first_saved": glance.first_saved,
        "last_saved": glance.last_saved,
        "duration": glance.duration,
        "workers": glance.workers,
        "loss_name": glance.loss_name,
        "loss": glance.loss,
        "curve": list(glance.curve),
        "issues": glance.issues,
        "issue": glance.issue,
        "since": glance.since,
        "checked": glance.checked,
        "passed": glance.passed,
        "check": board.check_of(row),
        "configuration": dict(glance.configuration),
        "cost": cost.dollars,
        "cost_title": cost.title,
        "deployed": None if snapshot is None else in_list(snapshot),
    }


def snapshot_of(board: Board, row: Row) -> RunSnapshot | None:
    """Return what the table of a deployed debugger has about the run; None without one."""
    return None if board.deployed is None else board.deployed.snapshot(row.path)


def cost_of(row: Row) -> Estimate:
    """Return what the run has cost so far."""
    glance = row.glance
    return estimate(
        glance.steps, glance.workers, is_remote=row.is_remote, is_deployed=row.is_deployed
    )


def run_answer(board: Board, row: Row, reader: RunReader) -> RunAnswer:
    """Return everything but the charts of a run."""
    snapshot, cost = snapshot_of(board, row), cost_of(row)
    glance = row.glance
    if reader.trial is not None:
        glance = timed(Glance(), reader.trial, reader.steps)
    trial, steps, verdict = reader.trial, reader.steps, verdict_of(reader)
    state = "ended" if reader.has_ended else "training" if steps else "waiting"
    if trial is not None:
        state = state_of(trial, steps, ended=reader.has_ended)
    if trial is None and reader.kept is None:
        state = "unreadable" if reader.error else "reading"
    if row.glance.state == "gone":
        state = "gone"
    return {
        "id": row.id,
        "name": row.name,
        "path": escaped(row.path),
        "version": reader.version,
        "state": state,
        "error": reader.error,
        "notes": [*([glance.note] if glance.note else []), *reader.notes.values()],
        "steps": len(steps),
        "listing": reader.is_listing,
        "steps_read": reader.steps_read,
        "steps_checked": reader.steps_checked,
        "first_step": steps[0] if steps else None,
        "last_step": steps[-1] if steps else None,
        "first_saved": glance.first_saved,
        "last_saved": glance.last_saved,
        "duration": glance.duration,
        "workers": reader.workers,
        "issues": [issue_answer(issue) for issue in reader.issues],
        "rules": verdict["rules"],
        "not_checked": verdict["not_checked"],
        "series": [
            {"name": escaped(name), "count": len(series)}
            for name, series in sorted(reader.series.items())
        ],
        "kinds": [
            {
                "name": kind,
                "tensors": len(statistics.names),
                "joined": statistics.steps_in_a_stretch,
            }
            for kind, statistics in reader.kinds.items()
        ],
        "statistics": list(COLUMNS),
        "modes": [list(stretch) for stretch in reader.charts.modes[:1000]],
        "damaged": [[escaped(a), escaped(b)] for a, b in list(reader.damaged.items())[:100]],
        "configuration": dict(glance.configuration) if trial is None else configuration_of(trial),
        "cost": cost.dollars,
        "cost_title": cost.title,
        "deployed": None if snapshot is None else in_full(snapshot),
    }


def series_answer(name: str, total: int, found: Stretches) -> SeriesAnswer:
    """Return a window of a scalar."""
    return {
        "name": name,
        "first": found.first.tolist(),
        "last": found.last.tolist(),
        "low": numbers(found.low),
        "high": numbers(found.high),
        "not_finite": found.not_finite.tolist(),
        "exact": found.is_exact,
        "total": total,
    }


def rows_answer(reader: RunReader, kind: str) -> tuple[list[str], list[int]]:
    """Return the names of a kind's tensors in the order of the network, and their places."""
    names, places = reader.kinds[kind].names, reader.order(kind)
    return [escaped(names[place]) for place in places], places


def matrix_bytes(window: Window, places: list[int]) -> bytes:
    """Return a window as bytes: a header of JSON, then float32 numbers, row by row.

    4 bytes    length of the header
    header     {"rows", "columns", "exact", "first": […], "last": […]}, padded with blanks
    low        float32, little endian
    high       the same, unless `exact`
    """
    header = json.dumps(
        {
            "rows": len(places),
            "columns": len(window.first),
            "exact": window.is_exact,
            "first": window.first.tolist(),
            "last": window.last.tolist(),
        }
    ).encode()
    header += b" " * (-len(header) % 4)
    pieces = [len(header).to_bytes(4, "little"), header]
    matrices = (window.low,) if window.is_exact else (window.low, window.high)
    for matrix in matrices:
        whole = np.full((len(places), matrix.shape[1]), np.nan, "<f4")
        known = [place for place in places if place < len(matrix)]
        whole[: len(known)] = matrix[known]
        pieces.append(whole.tobytes())
    return b"".join(pieces)


def numbers(values: NDArray[Any]) -> list[float | None]:
    """Return numbers as JSON can hold them."""
    return list(map(as_json_number, np.asarray(values).tolist()))
