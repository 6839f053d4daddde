"""Requests to a tool's server: its answer, or the error that says what to correct or to try again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from smdebug.exceptions import SinkError, SinkRefused, SinkUnavailable

SECONDS = 10.0
_MOST = 1 << 16
_TOO_MANY = 429


@dataclass(frozen=True)
class Refusals:
    """What is to be corrected if a server refuses, in words."""

    credentials: str
    """The environment variable that has them."""
    no_server_of_it: str
    """Something else than the tool answers."""
    statuses: Mapping[int, str] = field(default_factory=dict)
    otherwise: str = ""
    """What any other status means; "" if it is only said."""

    def error_of(self, place: str, status: int) -> SinkError:
        """Return the error of a status."""
        if status in (401, 403):
            return SinkRefused(place, f"it refuses the credentials ({status}): set {self.credentials}")
        if status == _TOO_MANY or status >= 500:
            return SinkUnavailable(place, f"it answers with status {status}")
        said = self.statuses.get(status) or self.otherwise or f"it answers with status {status}"
        return SinkRefused(place, said)


def answer_to(request: Request, place: str, refusals: Refusals) -> bytes:
    """Return the beginning of the answer. Headers may hold a token: no redirection is followed."""
    try:
        with build_opener(NoRedirect).open(request, timeout=SECONDS) as answer:
            content: bytes = answer.read(_MOST)
            return content
    except HTTPError as error:
        error.close()
        raise refusals.error_of(place, error.code) from error
    except (HTTPException, ValueError) as error:  # an address, too, may be none
        raise SinkRefused(place, refusals.no_server_of_it) from error
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        is_slow = isinstance(reason, TimeoutError)
        problem = "it answers too slowly" if is_slow else "it cannot be reached"
        raise SinkUnavailable(place, problem) from error


class NoRedirect(HTTPRedirectHandler):
    """The answer that redirects is an error with its status."""

    def redirect_request(self, *_: Any) -> None:
        return None
