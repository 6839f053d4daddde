"""Whether a server of trackio takes a run. trackio itself would wait for a minute and keep the rows here."""

from __future__ import annotations

import json
import os
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlsplit, urlunsplit
from urllib.request import Request, build_opener

from smdebug.exceptions import SinkRefused, SinkUnavailable
from smdebug.secrets.texts import redacted
from smdebug.sinks.no_redirect import NoRedirect

SECONDS = 10.0
_NO_SERVER = "it is no server of trackio, or one that is too old: upgrade it to 0.43"
_NO_TOKEN = "the server needs a token: set TRACKIO_WRITE_TOKEN"  # noqa: S105 - a sentence


def check_server(address: str) -> None:
    """Return if the server is there and takes the token; raise what is wrong else."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise SinkRefused(
            f"trackio at {redacted(address)}", "TRACKIO_SERVER_URL begins with http:// or https://"
        )
    token = parse_qs(parts.query).get("write_token", [""])[0] or os.environ.get("TRACKIO_WRITE_TOKEN", "")
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    place = f"trackio at {redacted(base)}"
    if not token:
        raise SinkRefused(place, _NO_TOKEN)
    if not _takes(base, token, place):
        raise SinkRefused(place, "it refuses the credentials: set TRACKIO_WRITE_TOKEN")


def _takes(base: str, token: str, place: str) -> bool:
    """Ask the server whether the token may change runs."""
    request = Request(  # noqa: S310 - its scheme was checked
        f"{base}/api/get_run_mutation_status",
        b'{"args": [], "kwargs": {}}',
        {"Content-Type": "application/json", "X-Trackio-Write-Token": token},
    )
    try:
        with build_opener(NoRedirect).open(request, timeout=SECONDS) as answer:
            return json.loads(answer.read(1 << 16))["data"]["allowed"] is not False
    except HTTPError as error:
        error.close()
        raise _error_of(place, error.code) from error
    except (HTTPException, ValueError, KeyError, TypeError) as error:
        raise SinkRefused(place, _NO_SERVER) from error
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        slow = isinstance(reason, TimeoutError)
        raise SinkUnavailable(place, "it answers too slowly" if slow else "it cannot be reached") from error


def _error_of(place: str, status: int) -> SinkRefused | SinkUnavailable:
    if status in (401, 403):
        return SinkRefused(place, f"it refuses the credentials ({status}): set TRACKIO_WRITE_TOKEN")
    if status == 429 or status >= 500:
        return SinkUnavailable(place, f"it answers with status {status}")
    return SinkRefused(place, _NO_SERVER)
