"""Exports of a run: numbers as CSV, the report, and which workers differ."""

from __future__ import annotations

import csv
import io
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smdebug.mode_keys import ModeKeys
from smdebug.plain_text import escaped
from smdebug.runs.overview import thinned
from smdebug.trials import Trial
from smdebug.ui.board import Board
from smdebug.ui.reading import RunReader
from smdebug.ui.requests import named, run_of
from smdebug.ui.threads import in_thread

MOST_STEPS = 2000  # of workers that are compared
SAME, DIFFERENT, ABSENT = 0, 1, 2
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Exports:
    """The handlers of exports."""

    def __init__(self, board: Board):
        self._board = board

    async def csv(self, request: Request) -> Response:
        """Return every value of a scalar as CSV."""
        row, reader = run_of(self._board, request)
        name = named(request, "name", reader.series, "series")

        def written() -> str:
            with reader.lock:
                pyramid = reader.series[name]
                steps, values = pyramid.steps.tolist(), pyramid.values.tolist()
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow(["step", _as_text(name)])
            writer.writerows(zip(steps, values, strict=True))
            return text.getvalue()

        return Response(
            await in_thread(written),
            media_type="text/csv",
            headers={"content-disposition": f'attachment; filename="{row.id}.csv"'},
        )

    async def report(self, request: Request) -> Response:
        """Return the run's report, one file of HTML."""
        row, _ = run_of(self._board, request)

        def written() -> bytes:
            from smdebug.reports import write_report

            with tempfile.TemporaryDirectory(prefix="smdebug-ui-") as folder:
                file = Path(folder) / "report.html"
                write_report(row.path, file, rules=self._board.rules, jobs=1)
                return file.read_bytes()

        return Response(
            await in_thread(written),
            media_type="text/html",
            headers={"content-disposition": f'attachment; filename="{row.id}-report.html"'},
        )

    async def ranks(self, request: Request) -> Response:
        """Return which workers' copies of the model differ at each step."""
        _, reader = run_of(self._board, request)

        def found() -> dict[str, Any]:
            with reader.lock:
                return ranks_of(reader)

        return JSONResponse(await in_thread(found))


def ranks_of(reader: RunReader) -> dict[str, Any]:
    """Return the state of each worker at each step: 0 as most workers, 1 different, 2 absent."""
    trial = reader.trial
    if trial is None:
        return {"workers": [], "steps": [], "state": []}
    return differences(trial)


def differences(trial: Trial) -> dict[str, Any]:
    """Compare the digests of all workers with those that most of them have."""
    observed = trial.observations
    steps = thinned(observed.replica_steps(), MOST_STEPS) if trial.steps() else []
    roots = {step: observed.roots(step, ModeKeys.GLOBAL) for step in steps}
    workers = sorted({worker for step_roots in roots.values() for worker in step_roots})
    columns = []
    for step in steps:
        of_worker = {
            worker: digests["parameters"]
            for worker, digests in roots[step].items()
            if "parameters" in digests  # inputs of workers differ by design
        }
        usual = Counter(of_worker.values()).most_common(1)
        columns.append(
            [
                ABSENT
                if worker not in of_worker
                else SAME
                if of_worker[worker] == usual[0][0]
                else DIFFERENT
                for worker in workers
            ]
        )
    state = [list(row) for row in zip(*columns, strict=True)] if columns else []
    return {"workers": [escaped(worker) for worker in workers], "steps": steps, "state": state}


def _as_text(name: str) -> str:
    """Return a name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name.startswith(_FORMULA) else name
