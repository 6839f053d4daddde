"""The secret of a webhook: the address to post to, which no text may show."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from smdebug.exceptions import SMDebugValueError

IN_SSM = "ssm:"  # before the name of a parameter; other names are of Secrets Manager
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class BadSecret(SMDebugValueError):
    """The secret holds no endpoint: write `{"url": "https://…", "token": "…"}` into it."""


@dataclass(frozen=True)
class Endpoint:
    """Where to post to. Neither value appears in a text, so that no log or error has them."""

    url: str = field(repr=False)
    token: str = field(default="", repr=False)


def endpoint_in(secret: str, name: str) -> Endpoint:
    """Return the endpoint in a secret; `BadSecret` names the secret and nothing of its content."""
    try:
        payload = json.loads(secret)
        endpoint = Endpoint(str(payload["url"]), str(payload.get("token") or ""))
        parts = urlsplit(endpoint.url)
        host, _ = parts.hostname or "", parts.port
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadSecret(
            f'The secret {name} is not of the form {{"url": "https://…", "token": "…"}}.'
        ) from None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and host in _THIS_MACHINE)
    if not host or not is_safe:
        raise BadSecret(f"The url in the secret {name} does not begin with https://.")
    texts = (endpoint.url, endpoint.token)
    if not all(text.isascii() and text.isprintable() and " " not in text for text in texts):
        raise BadSecret(f"The url or token in the secret {name} has characters that HTTP refuses.")
    return endpoint
