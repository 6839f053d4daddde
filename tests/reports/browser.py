"""A real headless Chromium: what it makes of a page, and what it complains about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# It asks nobody for anything: no updates, no names, no network at all.
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"),
)


class Page(NamedTuple):
    """A page after its scripts have run."""

    html: str
    complaints: list[str]


def browser() -> str:
    """Where Chromium is; `.ci/run` installs it, and `make test` leaves these tests out without it."""
    named = os.environ.get("SMDEBUG_BROWSER")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, (
        "These tests need Chromium: install Debian's chromium, or name another in SMDEBUG_BROWSER"
    )
    return found


def visit(file: Path, *options: str, width: int = 1250, height: int = 1200) -> Page:
    """Open the page with everything drawn, and take what it has become."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [
                *(
                    browser(),
                    *_QUIET,
                    f"--user-data-dir={profile}",
                    f"--window-size={width},{height}",
                ),
                *("--virtual-time-budget=10000", "--enable-logging=stderr", *options),
                *("--dump-dom", f"{file.as_uri()}#all"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    complaints = [line for line in done.stderr.splitlines() if re.search(r"CONSOLE", line)]
    return Page(done.stdout, complaints)
