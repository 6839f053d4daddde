"""The addresses of the server, and what each answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from smdebug.exceptions import SMDebugError, SMDebugRuntimeError
from smdebug.plain_text import escaped
from smdebug.secrets.texts import redacted
from smdebug.ui.about.answer import about
from smdebug.ui.about.last_numbers import last_numbers
from smdebug.ui.answer_types import (
    AboutAnswer,
    AtStepAnswer,
    HistoryAnswer,
    MembersAnswer,
    NumbersAnswer,
    RowsAnswer,
    SeriesAnswer,
)
from smdebug.ui.answering import answers, tensors
from smdebug.ui.answering.curves import series_of
from smdebug.ui.answering.requests import (
    NotFound,
    named,
    opened,
    points,
    run_of,
    whole_number,
)
from smdebug.ui.answering.threads import in_thread
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.audience import Audience
from smdebug.ui.watching.board import Board

PAGE = Path(__file__).parents[1] / "page"
MOST_SHOWN = 20  # runs in one page
MOST_MEMBERS = 1000  # tensors of a row in one answer
_CHECK_EVERY = 0.1
_SAY_ALIVE_EVERY = 15.0

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def answered(handler: Handler) -> Handler:
    """Answer errors in words, as JSON."""

    async def answering(request: Request) -> Response:
        try:
            return await handler(request)
        except NotFound as error:
            return problem(str(error), 404)
        except ValueError as error:  # SMDebugValueError among them
            return problem(str(error), 400)
        except SMDebugError as error:
            return problem(str(error), 409)

    answering.__name__ = handler.__name__
    answering.__doc__ = handler.__doc__
    return answering


def problem(text: str, status: int) -> Response:
    """Return an error in words."""
    return JSONResponse({"error": escaped(redacted(" ".join(text.split())))}, status_code=status)


class Routes:
    """The handlers of requests that read."""

    def __init__(self, board: Board, audience: Audience):
        self.board = board
        self._audience = audience

    async def runs(self, request: Request) -> Response:
        """List the runs."""
        return JSONResponse(await in_thread(lambda: answers.runs_answer(self.board)))

    async def run(self, request: Request) -> Response:
        """Describe one run: its progress, its diagnosis, and what it holds."""
        row, reader = run_of(self.board, request)
        return JSONResponse(await _locked(reader, lambda: answers.run_answer(self.board, row, reader)))

    async def series(self, request: Request) -> Response:
        """Return a scalar over a window of steps, at the resolution of the screen."""
        _, reader = run_of(self.board, request)
        first, last = whole_number(request, "first"), whole_number(request, "last")

        def found() -> SeriesAnswer:
            name = named(request, "name", reader.series, "series")
            mode = request.query_params.get("mode", "")
            if mode and mode not in reader.charts.modes_of(name):
                raise NotFound(f"The series {escaped(name)} has no values of mode {escaped(mode)}.")
            return series_of(reader, name, mode, first, last, points(request))

        return JSONResponse(await _locked(reader, found))

    async def rows(self, request: Request) -> Response:
        """List the tensors of a kind, in the order of the network."""
        _, reader = run_of(self.board, request)

        def found() -> RowsAnswer:
            kind = named(request, "kind", reader.kinds, "kind of tensors")
            return answers.rows_of(reader, kind)

        return JSONResponse(await _locked(reader, found))

    async def members(self, request: Request) -> Response:
        """List the tensors that share a row, a page of them."""
        _, reader = run_of(self.board, request)
        first = whole_number(request, "first", 0) or 0

        def found() -> MembersAnswer:
            kind = named(request, "kind", reader.kinds, "kind of tensors")
            row = named(request, "name", reader.kinds[kind].names, "row")
            folded = reader.charts.folded.get(kind)
            names = [row] if folded is None else folded.members(row)
            page = names[first : first + MOST_MEMBERS]
            return {"names": [escaped(name) for name in page], "total": len(names)}

        return JSONResponse(await _locked(reader, found))

    async def matrix(self, request: Request) -> Response:
        """Return a statistic of every tensor of a kind over a window of steps, as float32 numbers."""
        _, reader = run_of(self.board, request)
        first, last = whole_number(request, "first"), whole_number(request, "last")
        statistic = request.query_params.get("statistic", "rms")

        def found() -> bytes:
            kind = named(request, "kind", reader.kinds, "kind of tensors")
            window = reader.kinds[kind].window(statistic, first, last, points(request), mark_odd=True)
            return answers.matrix_bytes(window, answers.rows_answer(reader, kind)[1])

        data = await _locked(reader, found)
        return Response(data, media_type="application/octet-stream")

    async def tensor(self, request: Request) -> Response:
        """Return every statistic of one tensor over the steps."""
        _, reader = run_of(self.board, request)

        def found() -> HistoryAnswer:
            kind, name = _tensor_of(request, reader)
            if name not in reader.kinds[kind].names:
                return tensors.history_of_member(reader, kind, name)
            return tensors.history_of(reader, kind, name)

        return JSONResponse(await _locked(reader, found))

    async def at_step(self, request: Request) -> Response:
        """Return what a step has of a tensor, without one the last that has it: a row per worker, values."""
        _, reader = run_of(self.board, request)
        step = whole_number(request, "step")

        def found() -> AtStepAnswer:
            kind, name = _tensor_of(request, reader)
            trial = reader.trial
            if trial is None:  # its charts were kept, and it is opened
                raise SMDebugRuntimeError("The list of steps is being read. Try again in a moment.")
            at = tensors.last_step_of(reader, kind, name) if step is None else step
            return tensors.at_step(trial, kind, name, _nearest(reader.steps, at))

        return JSONResponse(await _locked(reader, found))

    async def facts(self, request: Request) -> Response:
        """List the changes of what was true of the steps."""
        _, reader = run_of(self.board, request)

        def found() -> list[list[Any]]:
            return [[step, name, value] for step, name, value in reader.charts.facts]

        return JSONResponse({"changes": await _locked(reader, found)})

    async def numbers(self, request: Request) -> Response:
        """Return every statistic of a kind's tensors where each was measured last."""
        _, reader = run_of(self.board, request)

        def found() -> NumbersAnswer:
            return last_numbers(reader, named(request, "kind", reader.kinds, "kind of tensors"))

        return JSONResponse(await _locked(reader, found))

    async def about(self, request: Request) -> Response:
        """Return what the whole run tells: its size and origin, inputs in findings, workers, cost."""
        _, reader = run_of(self.board, request)

        def found() -> AboutAnswer:
            trial = reader.trial
            if trial is None:
                raise SMDebugRuntimeError("The list of steps is being read. Try again in a moment.")
            with trial.refreshing(False):
                return about(reader, trial)

        return JSONResponse(await in_thread(found))

    async def log(self, request: Request) -> Response:
        """List what the rules reported, in the order of steps."""
        _, reader = run_of(self.board, request)
        return JSONResponse(await _locked(reader, lambda: reader.verdict["log"]))

    async def events(self, request: Request) -> Response:
        """Send an event whenever the list or one of the shown runs has changed."""
        wanted = [run_id for run_id in request.query_params.get("runs", "").split(",") if run_id]
        for run_id in wanted[:MOST_SHOWN]:
            opened(self.board, run_id)
        shown = tuple(wanted[:MOST_SHOWN]) or (Audience.LIST,)
        return StreamingResponse(
            self._news(request, shown),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},
        )

    async def _news(self, request: Request, shown: tuple[str, ...]) -> AsyncIterator[bytes]:
        known: dict[str, Any] = {}
        silent = 0.0
        with self._audience.page(shown):
            while not (self._audience.is_over or await request.is_disconnected()):
                now = self._versions(shown)
                if now != known:
                    known, silent = now, 0.0
                    yield f"data: {json.dumps(now)}\n\n".encode()
                elif silent >= _SAY_ALIVE_EVERY:
                    silent = 0.0
                    yield b": alive\n\n"
                await asyncio.sleep(_CHECK_EVERY)
                silent += _CHECK_EVERY

    def _versions(self, shown: tuple[str, ...]) -> dict[str, Any]:
        if shown == (Audience.LIST,):
            return {"list": self.board.version}
        versions = {}
        for run_id in shown:
            reader = self.board.reader(run_id)
            versions[run_id] = -1 if reader is None else reader.version
        return {"runs": versions}


def _tensor_of(request: Request, reader: RunReader) -> tuple[str, str]:
    kind = named(request, "kind", reader.kinds, "kind of tensors")
    folded = reader.charts.folded.get(kind)
    names = reader.kinds[kind].names
    return kind, named(request, "name", names if folded is None else [*names, *folded.tensors], "tensor")


def _nearest(steps: list[int], step: int) -> int:
    return min(steps, key=lambda known: abs(known - step)) if steps else step


async def _locked(reader: RunReader, query: Callable[[], T]) -> T:
    """Run a query of what was read, while nothing is added to it."""

    def locked() -> T:
        with reader.lock:
            return query()

    return await in_thread(locked)
