"""In front of moto: who calls, may they, and has somebody asked to be told of this call?"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from local_aws.calls import Asked, Request, asked_by
from local_aws.errors import Unsupported
from local_aws.permissions import Caller, Policies, Refused

OWNER = "local"  # the access key of whoever the account belongs to
Start = Callable[..., Any]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]


@dataclass(frozen=True)
class KnownKey:
    """Behind an access key: a role, and the environment of a function that was handed it."""

    caller: Caller
    on_trap: Callable[[], object] | None = None


class Gate:
    """A WSGI application around another one."""

    def __init__(
        self,
        behind: Application,
        policies: Policies,
        *,
        assumed: Callable[[str], Caller | None],
        control: Callable[[str, dict[str, Any]], Any],
    ):
        self._behind = behind
        self._policies = policies
        self._assumed = assumed
        self._control = control
        self._keys: dict[str, KnownKey] = {}
        self._traps: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self.refused: list[str] = []
        self.unsupported: list[str] = []

    def know(self, key: str, known: KnownKey) -> None:
        self._keys[key] = known

    def trap(self, role: str, action: str, times: int) -> None:
        """End the processes that make this call next, so many times, before the call is done."""
        with self._lock:
            others = [one for one in self._traps if one != (role, action)]
            self._traps = others + [(role, action)] * times

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path.startswith("/_local/"):
            return self._answer_control(path.removeprefix("/_local/"), environ, start)
        found = re.search(
            r"Credential=([^/]+)/\d+/[^/]+/([^/]+)/", environ.get("HTTP_AUTHORIZATION", "")
        )
        if found is None or found[1] == OWNER:
            return self._behind(environ, start)
        request = _request(environ, found[2])
        try:
            known = self._known(found[1])
            if known is None:
                return self._behind(environ, start)
            asked = asked_by(request)
            for one in asked:
                self._policies.check(known.caller, one)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return _denied(request.protocol, str(refusal), start)
        except Unsupported as problem:
            self.unsupported.append(str(problem))
            return _denied(request.protocol, str(problem), start)
        if self._traps and known.on_trap and self._is_trapped(known.caller.role, asked):
            known.on_trap()
            start("503 Service Unavailable", [("Content-Length", "0")])
            return []
        if asked[0].action == "s3:GetObject":
            return self._object(environ, start, known.caller, asked[0])
        return self._behind(environ, start)

    def _object(
        self, environ: dict[str, Any], start: Start, caller: Caller, asked: Asked
    ) -> Iterable[bytes]:
        """That an object is not there is told only to who may list the bucket."""
        told: list[Any] = []
        body = self._behind(environ, lambda *given: told.extend(given))
        if str(told[0]).startswith("404"):
            bucket, _, key = asked.resource.partition("/")
            try:
                self._policies.check(caller, Asked("s3:ListBucket", bucket, {"s3:prefix": key}))
            except Refused as refusal:
                self.refused.append(str(refusal))
                return _denied("rest-xml", str(refusal), start)
        start(*told)
        return body

    def _known(self, key: str) -> KnownKey | None:
        known = self._keys.get(key)
        if known is None and (caller := self._assumed(key)) is not None:
            known = self._keys[key] = KnownKey(caller)
        return known

    def _is_trapped(self, role: str, asked: Iterable[Asked]) -> bool:
        with self._lock:
            for one in asked:
                if (role, one.action) in self._traps:
                    self._traps.remove((role, one.action))
                    return True
        return False

    def _answer_control(self, name: str, environ: dict[str, Any], start: Start) -> list[bytes]:
        told = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        try:
            answer = {"answer": self._control(name, told)}
        except Exception as problem:  # noqa: BLE001 - it is told to who asked
            answer = {"error": type(problem).__name__, "message": str(problem)}
        body = json.dumps(answer, default=str).encode()
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def _request(environ: dict[str, Any], service: str) -> Request:
    """The request; its body is put back for who comes next."""
    body = b""
    # An object's content is nobody's business here, and may be large.
    if service != "s3":
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
    return Request(
        service,
        environ["REQUEST_METHOD"],
        environ.get("RAW_URI", environ.get("PATH_INFO", "")).partition("?")[0],
        environ.get("QUERY_STRING", ""),
        environ.get("HTTP_X_AMZ_TARGET", ""),
        body,
        environ.get("HTTP_X_AMZ_COPY_SOURCE", ""),
    )


def _denied(protocol: str, message: str, start: Start) -> list[bytes]:
    status, headers, body = _worded(protocol, message)
    told = body.encode()
    start(status, [*headers.items(), ("Content-Length", str(len(told)))])
    return [told]


def _worded(protocol: str, message: str) -> tuple[str, Mapping[str, str], str]:
    if protocol == "rest-xml":
        body = f"<Error><Code>AccessDenied</Code><Message>{escape(message)}</Message></Error>"
        return "403 Forbidden", {"Content-Type": "application/xml"}, body
    if protocol == "query":
        error = f"<Code>AccessDenied</Code><Message>{escape(message)}</Message>"
        body = f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error></ErrorResponse>"
        return "403 Forbidden", {"Content-Type": "text/xml"}, body
    kind = "AccessDeniedException"
    body = json.dumps({"__type": kind, "message": message, "Message": message})
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": kind}
    return "400 Bad Request", headers, body
