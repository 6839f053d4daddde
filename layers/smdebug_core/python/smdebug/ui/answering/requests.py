"""The checked values of a request: numbers, names and runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.requests import ClientDisconnect, Request

from smdebug.exceptions import SMDebugValueError
from smdebug.plain_text import escaped
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.board import Board, Row

MOST_POINTS = 20_000
_LONGEST_BODY = 1 << 20


class NotFound(Exception):
    """There is no such run, series or tensor."""


def run_of(board: Board, request: Request) -> tuple[Row, RunReader]:
    """Return the run that the address names; one that was not found in the given places does not exist."""
    return opened(board, request.path_params["id"])


def opened(board: Board, run_id: str) -> tuple[Row, RunReader]:
    """Return the run of that id, and what reads it."""
    row, reader = board.row(run_id), board.reader(run_id)
    if row is None or reader is None:
        raise NotFound("There is no such run here: it is in none of the places that were given.")
    return row, reader


def whole_number(request: Request, name: str, default: int | None = None) -> int | None:
    """Return a number from the query."""
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 62:
        raise SMDebugValueError(f"{name} must be a whole number of at least 0, not {text[:40]!r}")
    return number


def points(request: Request, default: int = 2000) -> int:
    """Return how many points the screen has room for."""
    return min(MOST_POINTS, max(1, whole_number(request, "points", default) or default))


def named(request: Request, name: str, known: Iterable[str], what: str) -> str:
    """Return the known name that the query gives, as it is or as the page shows it."""
    given = request.query_params.get(name, "")
    names = list(known)
    if given in names:
        return given
    found = next((candidate for candidate in names if escaped(candidate) == given), None)
    if found is None:
        raise NotFound(f"This run has no {what} {given[:100]!r}.")
    return found


async def body_of(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; `SMDebugValueError` if it is something else."""
    import json

    data = bytearray()
    try:
        async for piece in request.stream():
            data += piece
            if len(data) > _LONGEST_BODY:
                raise SMDebugValueError(f"The request has more than {_LONGEST_BODY:,} bytes")
    except ClientDisconnect as error:
        raise SMDebugValueError("The connection ended before the whole request was sent") from error
    try:
        content = json.loads(bytes(data) or b"{}")
    except (ValueError, RecursionError) as error:
        raise SMDebugValueError(f"The request is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise SMDebugValueError("The request must be a JSON object")
    return content
