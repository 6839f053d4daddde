"""Requests that follow no other address: their headers, which may hold a token, are for one server alone."""

from __future__ import annotations

from typing import Any
from urllib.request import HTTPRedirectHandler


class NoRedirect(HTTPRedirectHandler):
    """Follows no redirection: the answer is an error with its status."""

    def redirect_request(self, *_: Any) -> None:
        return None
