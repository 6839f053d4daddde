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
    """Where to post to. No value appears in a text, so that no log or error has them."""

    url: str = field(repr=False)
    token: str = field(default="", repr=False)
    authorization: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """Who posts, in the headers that the secret asks for."""
        known = {"x-smdebug-token": self.token, "Authorization": self.authorization}
        return {name: value for name, value in known.items() if value}


def endpoint_in(secret: str, name: str) -> Endpoint:
    """Return the endpoint in a secret; `BadSecret` names the secret and nothing of its content."""
    try:
        payload = json.loads(secret)
        texts = (payload.get(name) for name in ("token", "authorization"))
        endpoint = Endpoint(str(payload["url"]), *(str(text or "") for text in texts))
        parts = urlsplit(endpoint.url)
        host, _ = parts.hostname or "", parts.port
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BadSecret(
            f'The secret {name} is not of the form {{"url": "https://…", "token": "…"}}.'
        ) from None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and host in _THIS_MACHINE)
    if not host or not is_safe:
        raise BadSecret(f"The url in the secret {name} does not begin with https://.")
    scheme, _, credentials = endpoint.authorization.partition(" ")  # as in `Bearer …`
    for text in (endpoint.url, endpoint.token, scheme, credentials):
        if not (text.isascii() and text.isprintable() and " " not in text):
            raise BadSecret(
                f"The url, token or authorization in the secret {name} has characters that HTTP refuses."
            )
    return endpoint
