"""The answers of the server, as plain data."""

from __future__ import annotations

import json

import numpy as np

from smdebug.files.names import EPOCHS, FIRST_LEARNING_RATE, LEARNING_RATES
from smdebug.numbers.rows import COLUMNS
from smdebug.plain_text import escaped
from smdebug.runs.metrics import unlike_configured
from smdebug.service.run_status import RunSnapshot
from smdebug.trials.kinds import in_kind_order
from smdebug.ui.about.named_tensors import named_tensors
from smdebug.ui.answer_types import (
    RowAnswer,
    RowsAnswer,
    RunAnswer,
    Runs,
    SeriesName,
)
from smdebug.ui.answering.costs import IN_FOLDER, Estimate, estimate
from smdebug.ui.answering.curves import axes_of
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.drawing.matrices import Window
from smdebug.ui.drawing.saved_values import MOST_BYTES
from smdebug.ui.finding.glance import Glance, configuration_of, state_of, timed
from smdebug.ui.following.reading import RunReader
from smdebug.ui.following.verdict_answers import issue_answer
from smdebug.ui.read_run import ReadRun
from smdebug.ui.watching.board import Board, Row
from smdebug.ui.watching.deployed import in_full, in_list

NOTHING = Glance()


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
        "training_step": glance.training_step,
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
        "missing": glance.missing,
        "check": board.check_of(row),
        "configuration": dict(glance.configuration),
        "metrics": dict(glance.metrics),
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
    return estimate(glance.steps, glance.workers, is_remote=row.is_remote, is_deployed=row.is_deployed)


def run_answer(board: Board, row: Row, reader: RunReader) -> RunAnswer:
    """Return everything but the charts of a run of the list."""
    answer = described(row.id, row.name, reader, row.glance, cost_of(row))
    snapshot = snapshot_of(board, row)
    if snapshot is not None:
        answer["deployed"] = in_full(snapshot)
    return answer


def described(
    run_id: str, name: str, run: ReadRun, known: Glance = NOTHING, cost: Estimate = IN_FOLDER
) -> RunAnswer:
    """Return everything but the charts of a run; `known` is what the list shows of it."""
    trial, steps, verdict = run.trial, run.steps, run.verdict
    glance = known if trial is None else timed(NOTHING, trial, steps)
    state = "ended" if run.has_ended else "training" if steps else "waiting"
    differs = ""
    if trial is not None:
        differs = escaped(unlike_configured(trial))
        state = state_of(trial, steps, ended=run.has_ended)
    if not run.is_known:
        state = "unreadable" if run.error else "reading"
    if known.state == "gone":
        state = "gone"
    return {
        "id": run_id,
        "name": name,
        "path": escaped(run.path),
        "version": run.version,
        "state": state,
        "error": run.error,
        "notes": [*filter(None, (glance.note, cut_of(run.charts), differs)), *run.notes.values()],
        "steps": len(steps),
        "listing": run.is_listing,
        "steps_read": run.steps_read,
        "steps_checked": run.steps_checked,
        "first_step": steps[0] if steps else None,
        "last_step": steps[-1] if steps else None,
        "first_saved": glance.first_saved,
        "last_saved": glance.last_saved,
        "duration": glance.duration,
        "workers": run.workers,
        "issues": [issue_answer(issue) for issue in run.issues],
        "rules": verdict["rules"],
        "series": series_names(run),
        **axes_of(run),
        "kinds": [
            {
                "name": kind,
                "tensors": len(run.kinds[kind].names),
                "joined": run.kinds[kind].steps_in_a_stretch,
            }
            for kind in in_kind_order(run.kinds)
        ],
        "statistics": list(COLUMNS),
        "missing": run.missing,
        "modes": [list(stretch) for stretch in run.charts.modes[:1000]],
        "damaged": [[escaped(a), escaped(b)] for a, b in list(run.damaged.items())[:100]],
        "configuration": dict(glance.configuration) if trial is None else configuration_of(trial),
        "cost": cost.dollars,
        "cost_title": cost.title,
        "named": named_tensors(run, verdict["rules"]),
        "deployed": None,
    }


def cut_of(charts: Charts) -> str:
    """Say from which step on saved values are left out of the heat maps; "" if none are."""
    step = charts.values_left_out_from
    if step is None:
        return ""
    return (
        f"Some saved values are left out of the heat maps, from step {step} on: "
        f"the page reads at most {MOST_BYTES >> 30} GB of them."
    )


def rows_of(run: ReadRun, kind: str) -> RowsAnswer:
    """Return the rows of a kind's heat map."""
    folded = run.charts.folded.get(kind)
    names = rows_answer(run, kind)[0]
    tensors = len(names) if folded is None else len(folded.tensors)
    return {"names": names, "tensors": tensors, "folded": folded is not None}


def series_names(run: ReadRun) -> list[SeriesName]:
    """Return the scalars of a run, with the modes in which it has them.

    A learning rate that is the same as the first one at every step is not named again.
    """
    tensors = {name for statistics in run.kinds.values() for name in statistics.names}
    return [
        {
            "name": escaped(name),
            "count": len(series),
            "modes": run.charts.modes_of(name),
            "is_tensor": name in tensors,
        }
        for name, series in sorted(run.series.items())
        if name != EPOCHS and not _is_first_rate_again(run, name)
    ]


def _is_first_rate_again(run: ReadRun, name: str) -> bool:
    first, series = run.series.get(FIRST_LEARNING_RATE), run.series[name]
    if first is None or first is series or not name.startswith(LEARNING_RATES) or len(first) != len(series):
        return False
    return np.array_equal(first.values, series.values) and np.array_equal(first.steps, series.steps)


def rows_answer(reader: ReadRun, kind: str) -> tuple[list[str], list[int]]:
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
