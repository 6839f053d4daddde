"""The handlers of what a training has logged to be looked at."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from smdebug.storage import open_storage
from smdebug.storage.base import Storage
from smdebug.trials.logged_reading import read_logged
from smdebug.ui.about.logged_values import JSON, PNG, WAV, file_of, logged_answer
from smdebug.ui.answering.requests import NotFound, run_of, whole_number
from smdebug.ui.answering.threads import in_thread
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.board import Board


class Logged:
    """The handlers of what was logged."""

    def __init__(self, board: Board):
        self._board = board

    async def logged(self, request: Request) -> Response:
        """List the images, texts, tables and sounds that the training has logged."""
        _, reader = run_of(self._board, request)
        return JSONResponse(await in_thread(lambda: logged_answer(_storage_of(reader))))

    async def value(self, request: Request) -> Response:
        """Return a logged text, table, matrix or histogram."""
        return await self._file(request, JSON)

    async def image(self, request: Request) -> Response:
        """Return a logged image."""
        return await self._file(request, PNG)

    async def sound(self, request: Request) -> Response:
        """Return a logged sound."""
        return await self._file(request, WAV)

    async def _file(self, request: Request, media_type: str) -> Response:
        _, reader = run_of(self._board, request)
        worker, number = request.query_params.get("worker", ""), whole_number(request, "number")

        def found() -> bytes:
            for value in read_logged(_storage_of(reader)):
                if (value.worker, value.number, value.media_type) == (worker, number, media_type):
                    return file_of(value)
            raise NotFound("This run has not logged that value.")

        return Response(await in_thread(found), media_type=media_type)


def _storage_of(reader: RunReader) -> Storage:
    return open_storage(reader.path) if reader.trial is None else reader.trial.storage
