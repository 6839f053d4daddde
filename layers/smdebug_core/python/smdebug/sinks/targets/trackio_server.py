"""Whether a server of trackio takes a run. trackio itself would wait for a minute and keep the rows here."""

from __future__ import annotations

import json
import os
from urllib.parse import parse_qs, urlsplit, urlunsplit
from urllib.request import Request

from smdebug.exceptions import SinkRefused
from smdebug.secrets.texts import redacted
from smdebug.sinks.requests import Refusals, answer_to

_NO_SERVER = "it is no server of trackio, or one that is too old: upgrade it to 0.43"
_REFUSALS = Refusals("TRACKIO_WRITE_TOKEN", _NO_SERVER, otherwise=_NO_SERVER)
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
    answer = answer_to(request, place, _REFUSALS)
    try:
        return json.loads(answer)["data"]["allowed"] is not False
    except (ValueError, KeyError, TypeError) as error:
        raise SinkRefused(place, _NO_SERVER) from error
