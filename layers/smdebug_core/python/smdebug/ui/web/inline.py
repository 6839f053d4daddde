"""The page inside a notebook."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from smdebug.exceptions import SMDebugRuntimeError
from smdebug.extras import install_command

_servers: dict[tuple[str, ...], Inline] = {}


class Inline:
    """A page on some runs, which a notebook shows below the cell. `stop` ends its server."""

    def __init__(self, paths: tuple[str, ...], height: int):
        try:
            from smdebug.ui.web.serving import UiServer
        except ImportError as error:
            raise SMDebugRuntimeError(missing_packages()) from error
        self._paths = paths
        self.height = height
        self._prefix = hub_prefix()
        self._server = UiServer(paths, in_notebook=True, behind_hub=bool(self._prefix))
        self._server.start()

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return self._server.address

    def stop(self) -> None:
        """End the server."""
        _servers.pop(self._paths, None)
        self._server.stop()

    def __repr__(self) -> str:
        return f"smdebug ui at {self.address}"

    def _repr_html_(self) -> str:
        # Where a hub serves the notebook, its proxy reaches the port of this machine by a relative address.
        prefix = self._prefix
        query = f"?token={self._server.token}&frame=1"
        port = self._server.port
        source = f"{prefix.rstrip('/')}/proxy/{port}/{query}" if prefix else f"{self.address}&frame=1"
        return (
            f'<iframe src="{escape(source)}" title="smdebug ui" width="100%" height="{self.height:d}" '
            'style="border:0"></iframe>'
        )


def hub_prefix(environ: Mapping[str, str] | None = None) -> str:
    """Return the path below which a hub of notebooks serves this one; "" if the browser reaches this machine.

    JupyterHub names it. SageMaker Studio, and any Jupyter server with a base URL, does in the file about the
    server that this kernel belongs to.
    """
    environ = os.environ if environ is None else environ
    named = environ.get("JUPYTERHUB_SERVICE_PREFIX", "")
    parent = environ.get("JPY_PARENT_PID", "")
    if named or not parent.isdigit():
        return named
    data = environ.get("JUPYTER_DATA_DIR") or str(Path.home() / ".local" / "share" / "jupyter")
    folder = Path(environ.get("JUPYTER_RUNTIME_DIR") or Path(data) / "runtime")
    try:
        found = json.loads((folder / f"jpserver-{parent}.json").read_bytes())
        base = str(found.get("base_url") or "")
    except (OSError, ValueError, AttributeError):
        return ""
    return "" if base == "/" else base


def missing_packages() -> str:
    """Return the message for an installation that lacks what the page's server needs."""
    return f"smdebug ui needs packages that are not installed: {install_command('ui')}"


def show(paths: Sequence[str | os.PathLike[str]], height: int = 720) -> Inline:
    """Return the page on these runs, with one server for each choice of runs."""
    names = tuple(os.fspath(path) for path in paths) or (".",)
    known = _servers.get(names)
    if known is None:
        known = _servers[names] = Inline(names, height)
    known.height = height
    return known
