"""Access to the server: only for pages that it served itself, opened with the token in the address.

- The `Host` header must be one of the names of this server, so that a foreign name that is made to point
  here (DNS rebinding) gets nothing.
- A request that names an `Origin` must come from a page of this server.
- Data needs the token: in a cookie that scripts cannot read, or in a header, which only a page of this
  server can set. Programs such as agents send it as `Authorization: Bearer`. Pages and scripts hold no data,
  and need none.
- A request that changes something needs the header `X-Smdebug` as well, which no form can send, unless it
  has the token in `Authorization`, which none can send either.

Behind the proxy of a hub of notebooks neither name nor origin are known. `any_host` leaves their check out
where the header has the token, which no page of another origin knows.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-smdebug-token"  # noqa: S105 - the name of a header
ACTION_HEADER = "x-smdebug"
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_LONGEST_TOKEN = 200


class Access:
    """ASGI middleware that refuses requests from elsewhere, and adds headers that confine the page."""

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        hosts: Iterable[str],
        *,
        cookie: str = "smdebug-ui",
        frame_ancestors: str = "'none'",
        any_host: bool = False,
    ):
        self._app = app
        self._token = token
        self._hosts = frozenset(host.lower() for host in hosts)
        self._cookie = cookie
        self._any_host = any_host
        self._policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
            "media-src blob:; "
            "connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; "
            f"frame-ancestors {frame_ancestors}"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        absolute = _ABSOLUTE.fullmatch(scope["path"])
        if absolute:
            prefix, path = absolute.groups()
            if not path:  # addresses of the page are relative to the folder
                query = scope["query_string"].decode("latin-1")
                moved = RedirectResponse(f"{prefix}/{'?' if query else ''}{query}", status_code=307)
                await moved(scope, receive, self._confined(send))
                return
            scope = {**scope, "path": path, "raw_path": path.encode()}
        headers = Headers(scope=scope)
        problem = self._problem(scope, headers)
        if problem:
            answer = JSONResponse({"error": problem}, status_code=403)
            await answer(scope, receive, self._confined(send))
            return
        token = token_in(scope["query_string"])
        if token and scope["path"] in ("", "/") and self._is_token(token):
            where = "./?frame=1" if b"frame=1" in scope["query_string"] else "./"
            moved = RedirectResponse(where, status_code=303)
            moved.set_cookie(
                self._cookie,
                self._token,
                httponly=True,
                samesite="strict",
                path=f"{absolute[1]}/" if absolute else prefix_in(headers),
            )
            if "frame" not in where:  # a frame in a page of another site gets no such cookie
                await moved(scope, receive, self._confined(send))
                return
        await self._app(scope, receive, self._confined(send))

    def _problem(self, scope: Scope, headers: Headers) -> str:
        """Return why the request is refused; "" if it is not."""
        host = headers.get("host", "").lower()
        is_proxied = self._any_host and self._is_known(scope, headers)
        if name_in(host) not in self._hosts and not is_proxied:
            return (
                f"This server does not answer to the name {name_in(host)[:100]!r}. Open the address that "
                "smdebug ui printed, or start it with --allow-host and this name."
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host) and not is_proxied:
            return "Requests from pages of another origin are refused."
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] not in _SAFE_METHODS:
            return "Requests from pages of another site are refused."
        path = scope["path"]
        if not path.startswith("/api/"):
            return ""
        if not self._has_token(headers):
            return "The token is missing or wrong. Open the address that smdebug ui printed when it started."
        if (
            scope["method"] not in _SAFE_METHODS
            and ACTION_HEADER not in headers
            and bearer_in(headers) is None
        ):
            return f"A request that changes something needs the header {ACTION_HEADER}."
        return ""

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        """Return whether the request has the token in its header, or asks for a page, which has no data."""
        if scope["path"].startswith("/api/"):
            return TOKEN_HEADER in headers and self._has_token(headers)
        return scope["method"] in _SAFE_METHODS

    def _is_own(self, origin: str, host: str) -> bool:
        """Return whether the origin is this server, under the requested name or another of its own."""
        if origin == "null":
            return False
        try:
            netloc = urlsplit(origin).netloc.lower()
        except ValueError:  # such as http://[
            return False
        return netloc == host or (
            name_in(netloc) in self._hosts and name_in(netloc) not in _LOCAL and bool(netloc)
        )

    def _has_token(self, headers: Headers) -> bool:
        given = headers.get(TOKEN_HEADER, bearer_in(headers))
        if given is not None:
            return self._is_token(given)
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self._cookie)
        return found is not None and self._is_token(found.value)

    def _is_token(self, given: str) -> bool:
        return len(given) <= _LONGEST_TOKEN and hmac.compare_digest(
            given.encode("utf-8", "replace"), self._token.encode()
        )

    def _confined(self, send: Send) -> Send:
        async def confined(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = self._policy
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers["cross-origin-resource-policy"] = "same-origin"
                headers.setdefault("cache-control", "no-store")
            await send(message)

        return confined


_PREFIX_HEADERS = ("x-forwarded-prefix", "x-forwarded-context", "x-proxycontextpath")
_PLAIN_PATH = re.compile(r"/[\w./~@%-]{0,500}", re.ASCII)
# Below this path jupyter-server-proxy passes the whole path on; below `proxy/PORT` it strips its own part.
_ABSOLUTE = re.compile(r"((?:/[\w.~@%-]{1,100}){0,20}/proxy/absolute/\d{1,5})(/.*)?", re.ASCII)
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def bearer_in(headers: Headers) -> str | None:
    """Return the token in the header `Authorization`; None without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def name_in(host: str) -> str:
    """Return the name in a Host header, without the port; all of it if it has not the form of one."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        return name if bracket and (not port or port.startswith(":")) else host
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def prefix_in(headers: Headers) -> str:
    """Return the path below which a proxy has this server: other paths of its host get no cookie."""
    for name in _PREFIX_HEADERS:
        given = headers.get(name, "")
        if _PLAIN_PATH.fullmatch(given):
            return f"{given.rstrip('/')}/"
    return "/"


def token_in(query: bytes) -> str:
    """Return the token in the query of an address; "" without one."""
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]
