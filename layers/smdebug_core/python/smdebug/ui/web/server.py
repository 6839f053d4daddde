"""The server as an ASGI application."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from smdebug.ui.answering.actions import Actions
from smdebug.ui.answering.comparing import Comparing
from smdebug.ui.answering.exports import Exports
from smdebug.ui.answering.logged import Logged
from smdebug.ui.watching.audience import Audience
from smdebug.ui.watching.board import Board
from smdebug.ui.web.access import Access
from smdebug.ui.web.openapi import Endpoint, described
from smdebug.ui.web.routes import PAGE, Routes, answered, problem


def endpoints_of(board: Board, audience: Audience) -> list[Endpoint]:
    """Return every address of the server's API."""
    routes = Routes(board, audience)
    logged = Logged(board)
    actions, exports, comparing = Actions(board), Exports(board), Comparing(board)
    return [
        Endpoint("/api/runs", routes.runs, answer="Runs"),
        Endpoint("/api/events", routes.events, ("runs?",), media="text/event-stream"),
        Endpoint("/api/compare", comparing.compare, ("runs",), answer="ComparisonAnswer"),
        Endpoint("/api/run/{id}", routes.run, answer="RunAnswer"),
        Endpoint(
            "/api/run/{id}/series",
            routes.series,
            ("name", "first?", "last?", "points?"),
            answer="SeriesAnswer",
        ),
        Endpoint("/api/run/{id}/rows", routes.rows, ("kind",), answer="RowsAnswer"),
        Endpoint(
            "/api/run/{id}/members",
            routes.members,
            ("kind", "name", "first?"),
            answer="MembersAnswer",
        ),
        Endpoint(
            "/api/run/{id}/matrix",
            routes.matrix,
            ("kind", "statistic", "first?", "last?", "points?"),
            media="application/octet-stream",
        ),
        Endpoint("/api/run/{id}/tensor", routes.tensor, ("kind", "name"), answer="HistoryAnswer"),
        Endpoint(
            "/api/run/{id}/at",
            routes.at_step,
            ("kind", "name", "step?"),
            answer="AtStepAnswer",
        ),
        Endpoint("/api/run/{id}/numbers", routes.numbers, ("kind",), answer="NumbersAnswer"),
        Endpoint("/api/run/{id}/about", routes.about, answer="AboutAnswer"),
        Endpoint("/api/run/{id}/facts", routes.facts, answer="FactsAnswer"),
        Endpoint("/api/run/{id}/log", routes.log, answer="LogAnswer"),
        Endpoint("/api/run/{id}/logged", logged.logged, answer="LoggedAnswer"),
        Endpoint(
            "/api/run/{id}/logged/value", logged.value, ("worker", "number"), answer="LoggedContentAnswer"
        ),
        Endpoint("/api/run/{id}/logged/image", logged.image, ("worker", "number"), media="image/png"),
        Endpoint("/api/run/{id}/logged/sound", logged.sound, ("worker", "number"), media="audio/wav"),
        Endpoint("/api/run/{id}/ranks", exports.ranks, answer="RanksAnswer"),
        Endpoint("/api/run/{id}/export.csv", exports.csv, ("name",), media="text/csv"),
        Endpoint("/api/run/{id}/report.html", exports.report, media="text/html"),
        Endpoint("/api/run/{id}/rules", actions.rules, answer="RulesAnswer"),
        Endpoint("/api/run/{id}/zoom", actions.zoom, method="POST", answer="ZoomAnswer", body="ZoomBody"),
        Endpoint("/api/run/{id}/stop", actions.stop, method="POST", answer="StopAnswer", body="StopBody"),
        Endpoint("/api/run/{id}/annotations", actions.annotations, answer="AnnotationsAnswer"),
        Endpoint(
            "/api/run/{id}/annotate",
            actions.annotate,
            method="POST",
            answer="AnnotationsAnswer",
            body="AnnotateBody",
        ),
        Endpoint(
            "/api/run/{id}/attach",
            actions.attach,
            method="POST",
            answer="AttachedAnswer",
            body="AttachBody",
        ),
        Endpoint(
            "/api/run/{id}/detach",
            actions.detach,
            method="POST",
            answer="AttachedAnswer",
            body="DetachBody",
        ),
        Endpoint(
            "/api/run/{id}/evaluate",
            actions.evaluate,
            method="POST",
            answer="EvaluatedAnswer",
            body="EvaluateBody",
        ),
    ]


def application(
    board: Board,
    audience: Audience,
    token: str,
    hosts: Iterable[str],
    *,
    cookie: str = "smdebug-ui",
    frame_ancestors: str = "'none'",
    any_host: bool = False,
) -> ASGIApp:
    """Return the whole application: the page, its API, and the checks in front of both."""
    endpoints = endpoints_of(board, audience)
    description = described(endpoints)

    async def openapi(request: Request) -> Response:
        return JSONResponse(description)

    async def index(request: Request) -> Response:
        return Response((PAGE / "index.html").read_bytes(), media_type="text/html")

    async def unknown(request: Request, error: Exception) -> Response:
        return problem("There is nothing at this address.", 404)

    async def wrong_method(request: Request, error: Exception) -> Response:
        answer = problem(f"This address does not answer {request.method} requests.", 405)
        # `Allow` names the methods that it does answer.
        answer.headers.update(getattr(error, "headers", None) or {})
        return answer

    routes: list[Route | Mount] = [
        Route("/", index),
        Route("/api/openapi.json", openapi),
        *(
            Route(
                endpoint.path,
                answered(endpoint.handler),
                methods=[endpoint.method],
                name=endpoint.path,
            )
            for endpoint in endpoints
        ),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]
    app = Starlette(routes=routes, exception_handlers={404: unknown, 405: wrong_method})
    return Access(app, token, hosts, cookie=cookie, frame_ancestors=frame_ancestors, any_host=any_host)
