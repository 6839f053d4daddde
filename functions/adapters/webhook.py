"""Secrets of AWS, and posts over HTTPS."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from functions.adapters.asking import Client, ask
from functions.decisions.posting.posts import Answer
from functions.ports import NotDone
from smdebug.service.webhook_secrets import IN_SSM
from smdebug.sinks.requests import NoRedirect

_KEPT_FOR = 300.0  # seconds: a replaced secret is used after that, or at the first refusal
_SECONDS = 10.0  # for an answer


class SecretsOfAws:
    """Secrets Manager, and SecureStrings of Systems Manager; values are kept for a few minutes."""

    def __init__(self, manager: Client, ssm: Client, now: Callable[[], float] = time.monotonic) -> None:
        self._manager = manager
        self._ssm = ssm
        self._now = now
        self._kept: dict[str, tuple[float, str]] = {}

    def read(self, name: str, *, again: bool = False) -> str:
        kept = self._kept.get(name)
        if kept and not again and self._now() - kept[0] < _KEPT_FOR:
            return kept[1]
        value = self._read(name)
        self._kept[name] = (self._now(), value)
        return value

    def _read(self, name: str) -> str:
        if not name.startswith(IN_SSM):
            answer = ask(self._manager, "get_secret_value", SecretId=name)
            if "SecretString" not in answer:
                raise NotDone(f"The secret {name} is binary: store text in it")
            return str(answer["SecretString"])
        place = name.removeprefix(IN_SSM)
        parameter = ask(self._ssm, "get_parameter", Name=place, WithDecryption=True)["Parameter"]
        if parameter["Type"] != "SecureString":
            raise NotDone(f"The parameter {place} is not encrypted: create it as a SecureString")
        return str(parameter["Value"])


class Posts:
    """Posts of JSON. Redirects are not followed: they would take the token and the event elsewhere."""

    def __init__(self) -> None:
        self._opener = urllib.request.build_opener(NoRedirect)

    def post(self, url: str, body: bytes, *, headers: Mapping[str, str]) -> Answer:
        ours = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "smdebug"}
        request = urllib.request.Request(url, body, {**headers, **ours}, method="POST")  # noqa: S310 - checked
        try:
            with self._opener.open(request, timeout=_SECONDS) as response:
                return Answer(status=int(response.status))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers.get("Retry-After") or "")
        # The texts of these errors may contain the URL.
        except urllib.error.URLError as error:
            return Answer(problem=type(error.reason).__name__)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Answer(problem=type(error).__name__)
