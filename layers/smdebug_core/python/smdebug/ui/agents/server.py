"""The tools behind the Model Context Protocol, on stdin and stdout or over HTTP on this machine."""

from __future__ import annotations

import secrets
import socket
from typing import Any

import anyio
import uvicorn
from anyio import to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp

import smdebug
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.ui.agents.answers import error_answer
from smdebug.ui.agents.bounding import text_of
from smdebug.ui.agents.catalog import INSTRUCTIONS, ToolEntry, offered
from smdebug.ui.agents.tools import Answer, Tools, answered
from smdebug.ui.web.access import Access

HOST = "127.0.0.1"
PATH = "/api/mcp"
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")


def server_of(tools: Tools) -> Server[Any]:
    """Return a server of the protocol that offers the tools."""
    entries = offered(allow_stop=tools.allow_stop)
    one_at_a_time = anyio.Lock()

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(entry) for entry in entries.values()])

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        async with one_at_a_time:
            answer, failed = await to_thread.run_sync(
                lambda: _called(tools, entries, parameters.name, parameters.arguments or {})
            )
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=text_of(answer))]
        return types.CallToolResult(content=content, is_error=failed)

    return Server(
        "smdebug",
        title="smdebug",
        version=smdebug.__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _described(entry: ToolEntry) -> types.Tool:
    return types.Tool(
        name=entry.name,
        title=entry.title,
        description=entry.description,
        input_schema=entry.input_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=not entry.changes, destructive_hint=entry.needs_stop, open_world_hint=False
        ),
    )


def _called(
    tools: Tools, entries: dict[str, ToolEntry], name: str, arguments: dict[str, Any]
) -> tuple[Answer, bool]:
    entry = entries.get(name)
    if entry is None:
        return error_answer(f"There is no tool {name[:40]}. Tools: {', '.join(entries)}"), True
    try:
        checked = entry.checked(arguments)
    except SMDebugValueError as error:
        return error_answer(str(error)), True
    return answered(getattr(tools, entry.name), checked)


def serve_stdio(tools: Tools) -> None:
    """Serve one agent on stdin and stdout until it closes them. What rules print goes to stderr."""

    async def serve() -> None:
        server = server_of(tools)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


class HttpServer:
    """A server for agents on this machine that have the token."""

    def __init__(self, tools: Tools, *, port: int = 0, token: str | None = None):
        self.token = token or secrets.token_urlsafe(24)
        self._tools = tools
        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])

    @property
    def address(self) -> str:
        """The address for the configuration of an agent; the token goes into a header."""
        return f"http://{HOST}:{self.port}{PATH}"

    def run(self) -> None:
        """Serve until Ctrl-C."""
        server = uvicorn.Server(
            uvicorn.Config(
                http_application(self._tools, self.token),
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        server.run(sockets=[self._socket])


def http_application(tools: Tools, token: str) -> ASGIApp:
    """Return the server as an ASGI application, behind the checks of the page."""
    app = server_of(tools).streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True
    )
    return Access(app, token, LOCAL_NAMES)


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(16)
    except OSError as error:
        listening.close()
        raise SMDebugRuntimeError(
            f"Port {port} of {HOST} cannot be used: {error.strerror or error}. "
            "Leave out --port to use a free one."
        ) from error
    return listening
