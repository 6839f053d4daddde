"""The handler of comparisons."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smdebug.exceptions import SMDebugValueError
from smdebug.ui.answering.requests import opened
from smdebug.ui.answering.threads import in_thread
from smdebug.ui.comparisons import Part, comparison_of
from smdebug.ui.watching.board import Board

MOST_RUNS = 100


class Comparing:
    """Compares the runs of a board."""

    def __init__(self, board: Board):
        self._board = board

    async def compare(self, request: Request) -> Response:
        """Compare runs with the first of them: configurations, first divergence, verdicts."""
        ids = [run_id for run_id in request.query_params.get("runs", "").split(",") if run_id]
        if not 2 <= len(ids) <= MOST_RUNS:
            raise SMDebugValueError(f"Choose 2 to {MOST_RUNS} runs to compare, not {len(ids)}")
        runs = [opened(self._board, run_id) for run_id in dict.fromkeys(ids)]
        parts = [Part(row.id, row.name, reader, row.glance.configuration) for row, reader in runs]
        return JSONResponse(await in_thread(lambda: comparison_of(parts)))
