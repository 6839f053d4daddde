"""Alerts to chat, mail or an address on the web, through apprise."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from smdebug.secrets.texts import redacted

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class Alerts:
    """Sends messages to each address. Addresses hold secrets, so no message names more than their scheme."""

    def __init__(self, addresses: Sequence[str], report: Callable[[str], None]):
        self._report = report
        self._targets: list[tuple[str, Any]] = []
        for address in addresses:
            self._add(address)

    def send(self, title: str, body: str) -> None:
        """Send to each address, without secrets; one that fails is reported and does not stop the others."""
        title, body = redacted(title), redacted(body)
        for scheme, target in self._targets:
            try:
                is_sent = target.notify(title=title, body=body)
            except Exception as error:  # noqa: BLE001 - a service may fail in any way
                self._report(f"smdebug: an alert to {scheme}:// failed: {type(error).__name__}")
                continue
            if not is_sent:
                self._report(
                    f"smdebug: an alert to {scheme}:// was not accepted. Check its address and token"
                )

    def _add(self, address: str) -> None:
        import logging

        import apprise

        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its messages hold addresses
        scheme = address.partition("://")[0]
        filled, missing = with_environment(address)
        if missing:
            self._report(f"smdebug: no alerts to {scheme}://: the environment has no {', '.join(missing)}")
            return
        target = apprise.Apprise()
        if target.add(filled):
            self._targets.append((scheme, target))
        else:
            self._report(
                f"smdebug: no alerts to {scheme}://: apprise cannot read the address. "
                "https://github.com/caronc/apprise/wiki has its form"
            )


def with_environment(address: str) -> tuple[str, list[str]]:
    """Return the address with `$NAME` and `${NAME}` filled in, and the names that are missing."""
    missing: list[str] = []

    def fill(found: re.Match[str]) -> str:
        name = found.group(1) or found.group(2)
        value = os.environ.get(name)
        if value is None:
            missing.append(name)
            return ""
        return value

    return _VARIABLE.sub(fill, address), missing
