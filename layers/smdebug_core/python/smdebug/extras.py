"""How to install what a part of the library needs: the command that works where this library came from.

Every module imports this one, and few call it: what it needs is imported in its functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAME = "smdebug-serverless"


def install_command(extra: str) -> str:
    """Return the command that installs an extra, such as `pip install 'smdebug-serverless[ui]'`.

    A library that was installed from a checkout, a wheel or a repository has its extras from there.
    """
    return f"pip install {_source(extra, _origin())}"


def _source(extra: str, origin: dict[str, Any]) -> str:
    import shlex
    from urllib.parse import unquote, urlsplit

    url = str(origin.get("url", ""))
    place = unquote(urlsplit(url).path) if url.startswith("file:") else ""
    if place and isinstance(folder := origin.get("dir_info"), dict):
        return ("-e " if folder.get("editable") else "") + shlex.quote(f"{place}[{extra}]")
    if url and isinstance(repository := origin.get("vcs_info"), dict):
        url = f"{repository.get('vcs', 'git')}+{url}"
        if commit := repository.get("commit_id"):
            url += f"@{commit}"
    return shlex.quote(f"{NAME}[{extra}] @ {url}" if url else f"{NAME}[{extra}]")


def _origin() -> dict[str, Any]:
    """Return where this library was installed from, as its installer has noted it; empty for an index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # it is on the path of modules
        noted = {}
    except (OSError, ValueError):
        return {}
    if isinstance(noted, dict) and noted:
        return noted
    checkout = Path(__file__).resolve().parents[4]
    if (checkout / "layers" / "smdebug_core").is_dir() and (checkout / "pyproject.toml").is_file():
        return {"url": checkout.as_uri(), "dir_info": {"editable": True}}
    return {}
