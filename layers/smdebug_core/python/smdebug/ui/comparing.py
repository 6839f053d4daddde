"""Several runs side by side: what was configured differently, where they diverge, and their verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smdebug.exceptions import SMDebugValueError
from smdebug.numbers.rows import COLUMN
from smdebug.plain_text import escaped
from smdebug.runs.origins import differing
from smdebug.ui.answers import rows_answer
from smdebug.ui.board import Board, Row
from smdebug.ui.glance import configuration_of
from smdebug.ui.reading import RunReader
from smdebug.ui.requests import opened
from smdebug.ui.summary import passed_of
from smdebug.ui.threads import in_thread
from smdebug.ui.verdict_answers import issue_answer

MOST_RUNS = 20
TOLERANCE = 1e-4
"""How much two statistics may differ, as a share of the larger."""
_KINDS = ("inputs", "outputs", "gradients", "updates", "parameters")  # as a step computes them
_COMPARED = tuple(COLUMN[name] for name in ("min", "max", "mean", "mean_abs", "rms"))


class Comparing:
    """The handler of comparisons."""

    def __init__(self, board: Board):
        self._board = board

    async def compare(self, request: Request) -> Response:
        """Compare runs with the first of them: configurations, first divergence, verdicts."""
        ids = [run_id for run_id in request.query_params.get("runs", "").split(",") if run_id]
        if not 2 <= len(ids) <= MOST_RUNS:
            raise SMDebugValueError(f"Choose 2 to {MOST_RUNS} runs to compare, not {len(ids)}")
        runs = [opened(self._board, run_id) for run_id in dict.fromkeys(ids)]
        return JSONResponse(await in_thread(lambda: comparison_of(runs)))


def comparison_of(runs: Sequence[tuple[Row, RunReader]]) -> dict[str, Any]:
    """Return the comparison of the runs with the first of them."""
    parts = [_part(row, reader) for row, reader in runs]
    first = runs[0][1]
    for part, (_, reader) in zip(parts[1:], runs[1:], strict=True):
        with first.lock, reader.lock:
            part["divergence"] = first_divergence(first, reader)
    return {
        "runs": parts,
        "configuration": configuration_differences([part["configuration"] for part in parts]),
        "series": sorted({name for part in parts for name in part["series"]}),
    }


def _part(row: Row, reader: RunReader) -> dict[str, Any]:
    with reader.lock:
        trial = reader.trial
        return {
            "id": row.id,
            "name": row.name,
            "ready": trial is not None and reader.steps_read >= len(reader.steps),
            "error": reader.error,
            "steps": len(reader.steps),
            "issues": [issue_answer(issue) for issue in reader.issues],
            "checked": reader.steps_checked,
            "passed": passed_of(reader),
            "series": [escaped(name) for name in reader.series],
            "configuration": {} if trial is None else configuration_of(trial),
            "divergence": None,
        }


def configuration_differences(configurations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parameters that are not the same in all runs."""
    return [
        {"name": name, "values": [configuration.get(name) for configuration in configurations]}
        for name in differing(configurations)
    ]


def first_divergence(base: RunReader, other: RunReader) -> dict[str, Any] | None:
    """Return the first step at which the statistics of a tensor differ, and its first such tensor."""
    best: tuple[int, int, int] | None = None
    found: dict[str, Any] | None = None
    for rank, kind in enumerate(_KINDS):
        if kind not in base.kinds or kind not in other.kinds:
            continue
        names, places = rows_answer(base, kind)
        hit = _first_difference(base, other, kind, places)
        if hit is None:
            continue
        step, place, a, b = hit
        key = (step, rank, place)
        if best is None or key < best:
            best = key
            found = {"step": step, "kind": kind, "tensor": names[place], "rms": [a, b]}
    return found


def _first_difference(
    base: RunReader, other: RunReader, kind: str, places: Sequence[int]
) -> tuple[int, int, float | None, float | None] | None:
    ours, theirs = base.kinds[kind], other.kinds[kind]
    of_theirs = {name: place for place, name in enumerate(theirs.names)}
    pairs = [(at, place, of_theirs.get(ours.names[place])) for at, place in enumerate(places)]
    common = [(at, place, match) for at, place, match in pairs if match is not None]
    first, a, b = ours.together_with(theirs)
    if not common or not len(first):
        return None
    mine = a[:, [place for _, place, _ in common]][:, :, _COMPARED]
    others = b[:, [match for _, _, match in common]][:, :, _COMPARED]
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.abs(mine), np.abs(others))
        differ = np.abs(mine - others) > TOLERANCE * size
    differ |= np.isnan(mine) != np.isnan(others)
    by_tensor = differ.any(axis=2)
    steps = np.flatnonzero(by_tensor.any(axis=1))
    if not len(steps):
        return None
    step = int(steps[0])
    column = int(np.flatnonzero(by_tensor[step])[0])
    rms = _COMPARED.index(COLUMN["rms"])
    numbers = [float(statistics[step, column, rms]) for statistics in (mine, others)]
    known = [value if np.isfinite(value) else None for value in numbers]
    return int(first[step]), common[column][0], known[0], known[1]
