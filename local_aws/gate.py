"""A gate in front of moto: identifies the caller, checks its permissions, and can trap a call."""

from __future__ import annotations

import io
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from local_aws.errors import Unsupported
from local_aws.limits import BeyondLimit, Limits
from local_aws.limits.concurrency import THROTTLED, Concurrency
from local_aws.limits.lineage import Lineages
from local_aws.limits.requests import CHECKED, check_request
from local_aws.permissions.calls import Permission, Request, permissions_for
from local_aws.permissions.policies import Caller, Policies, Refused

OWNER = "local"  # the access key of the account's owner
Start = Callable[..., Any]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]


@dataclass(frozen=True)
class KnownKey:
    """The role behind an access key, and what kills the process that has the key."""

    caller: Caller
    on_trap: Callable[[], object] | None = None
    environment: str = ""  # of a function


class Gate:
    """A WSGI application around another one."""

    def __init__(
        self,
        behind: Application,
        policies: Policies,
        *,
        assumed: Callable[[str], Caller | None],
        control: Callable[[str, dict[str, Any]], Any],
        limits: Limits,
        concurrency: Concurrency,
        lineages: Lineages,
    ):
        self._behind = behind
        self._policies = policies
        self._assumed = assumed
        self._control = control
        self._limits = limits
        self._concurrency = concurrency
        self._lineages = lineages
        self._keys: dict[str, KnownKey] = {}
        self._traps: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self.refused: list[str] = []
        self.unsupported: list[str] = []

    def register(self, key: str, known: KnownKey) -> None:
        self._keys[key] = known

    def trap(self, role: str, action: str, times: int) -> None:
        """Kill the processes that make this call the next `times` times, before it takes effect."""
        with self._lock:
            others = [trap for trap in self._traps if trap != (role, action)]
            self._traps = others + [(role, action)] * times

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path.startswith("/_local/"):
            return self._answer_control(path.removeprefix("/_local/"), environ, start)
        credential = re.search(
            r"Credential=([^/]+)/\d+/[^/]+/([^/]+)/", environ.get("HTTP_AUTHORIZATION", "")
        )
        if credential is None:
            return self._behind(environ, start)
        try:
            return self._limited(environ, start, credential[1], credential[2])
        except BeyondLimit as limit:
            protocol = _request(environ, credential[2]).protocol
            return _refused(protocol, limit.kind, str(limit.message), start)

    def _limited(self, environ: dict[str, Any], start: Start, key: str, service: str) -> Iterable[bytes]:
        """Handle the request of this key within the limits of AWS."""
        known = None if key == OWNER else self._known(key)
        if known is None and service not in CHECKED:
            return self._behind(environ, start)
        request = _request(environ, service)
        check_request(request, self._limits)
        if request.is_invocation:
            with self._concurrency.slot(request.called.rpartition(":function:")[2].partition(":")[0]):
                return self._checked(environ, start, known, request)
        if known is not None and known.environment:
            with self._lineages.request_of(known.environment):
                return self._checked(environ, start, known, request)
        return self._checked(environ, start, known, request)

    def _checked(
        self, environ: dict[str, Any], start: Start, known: KnownKey | None, request: Request
    ) -> Iterable[bytes]:
        """Pass the request on if the policies allow it."""
        if known is None:
            return self._behind(environ, start)
        try:
            permissions = permissions_for(request)
            for permission in permissions:
                self._policies.check(known.caller, permission)
        except Refused as refusal:
            self.refused.append(str(refusal))
            return _denied(request.protocol, str(refusal), start)
        except Unsupported as problem:
            self.unsupported.append(str(problem))
            return _denied(request.protocol, str(problem), start)
        if self._traps and known.on_trap and self._is_trapped(known.caller.role, permissions):
            known.on_trap()
            start("503 Service Unavailable", [("Content-Length", "0")])
            return []
        if permissions[0].action == "s3:GetObject":
            return self._object(environ, start, known.caller, permissions[0])
        return self._behind(environ, start)

    def _object(
        self, environ: dict[str, Any], start: Start, caller: Caller, permission: Permission
    ) -> Iterable[bytes]:
        """Missing keys return 404 only to callers with ListBucket."""
        response: list[Any] = []
        body = self._behind(environ, lambda *head: response.extend(head))
        if str(response[0]).startswith("404"):
            bucket, _, key = permission.resource.partition("/")
            listing = Permission("s3:ListBucket", bucket, {"s3:prefix": key})
            try:
                self._policies.check(caller, listing)
            except Refused as refusal:
                self.refused.append(str(refusal))
                return _denied("rest-xml", str(refusal), start)
        start(*response)
        return body

    def _known(self, key: str) -> KnownKey | None:
        known = self._keys.get(key)
        if known is None and (caller := self._assumed(key)) is not None:
            known = self._keys[key] = KnownKey(caller)
        return known

    def _is_trapped(self, role: str, permissions: Iterable[Permission]) -> bool:
        with self._lock:
            for permission in permissions:
                if (role, permission.action) in self._traps:
                    self._traps.remove((role, permission.action))
                    return True
        return False

    def _answer_control(self, name: str, environ: dict[str, Any], start: Start) -> list[bytes]:
        arguments = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        try:
            answer = {"answer": self._control(name, arguments)}
        except Exception as problem:  # noqa: BLE001 - the caller raises it
            answer = {"error": type(problem).__name__, "message": str(problem)}
        body = json.dumps(answer, default=str).encode()
        start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def _request(environ: dict[str, Any], service: str) -> Request:
    """Return the request; its body is put back for the application behind."""
    body = b""
    # The content of an object does not matter here, and may be large.
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
        environ.get("HTTP_X_AMZ_INVOCATION_TYPE", "") == "Event",
    )


def _denied(protocol: str, message: str, start: Start) -> list[bytes]:
    kind = "AccessDenied" if protocol in ("rest-xml", "query") else "AccessDeniedException"
    return _refused(protocol, kind, message, start)


def _refused(protocol: str, kind: str, message: str, start: Start) -> list[bytes]:
    status, headers, text = _error(protocol, kind, message)
    body, request = text.encode(), str(uuid.uuid4())
    # The tasks of moto's workflows expect the id in the answer; without it nothing is retried.
    ids = [("x-amzn-RequestId", request), ("x-amz-request-id", request)]
    start(status, [*headers.items(), *ids, ("Content-Length", str(len(body)))])
    return [body]


def _error(protocol: str, kind: str, message: str) -> tuple[str, Mapping[str, str], str]:
    """The status, headers and body of an error in this protocol."""
    if protocol == "rest-xml":
        body = f"<Error><Code>{kind}</Code><Message>{escape(message)}</Message></Error>"
        return "403 Forbidden", {"Content-Type": "application/xml"}, body
    if protocol == "query":
        error = f"<Code>{kind}</Code><Message>{escape(message)}</Message>"
        request = f"<RequestId>{uuid.uuid4()}</RequestId>"
        body = f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error>{request}</ErrorResponse>"
        return "403 Forbidden", {"Content-Type": "text/xml"}, body
    body = json.dumps({"__type": kind, "message": message, "Message": message})
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": kind}
    return "429 Too Many Requests" if kind == THROTTLED else "400 Bad Request", headers, body
