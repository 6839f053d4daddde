"""The handlers of exports: numbers as CSV, the report, and which workers differ."""

from __future__ import annotations

import csv
import io

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smdebug.ui.answer_types import RanksAnswer
from smdebug.ui.answering.requests import named, run_of
from smdebug.ui.answering.threads import in_thread
from smdebug.ui.embedding import content_of, page_of
from smdebug.ui.replicas import differences
from smdebug.ui.watching.board import Board

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
        """Return the run's report as far as it was read, one file of HTML."""
        row, reader = run_of(self._board, request)

        def written() -> str:
            with reader.lock:
                return page_of(content_of(row.name, reader, deployed=row.is_deployed))

        return Response(
            await in_thread(written),
            media_type="text/html",
            headers={"content-disposition": f'attachment; filename="{row.id}-report.html"'},
        )

    async def ranks(self, request: Request) -> Response:
        """Return which workers' copies of the model differ at each step."""
        _, reader = run_of(self._board, request)

        def found() -> RanksAnswer:
            with reader.lock:
                if reader.trial is None:
                    return {"workers": [], "steps": [], "state": []}
                return differences(reader.trial)

        return JSONResponse(await in_thread(found))


def _as_text(name: str) -> str:
    """Return a name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name.startswith(_FORMULA) else name
