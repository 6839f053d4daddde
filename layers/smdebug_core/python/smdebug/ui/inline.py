"""The page inside a notebook."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

from smdebug.exceptions import SMDebugRuntimeError

_servers: dict[tuple[str, ...], Inline] = {}


class Inline:
    """A page on some runs, which a notebook shows below the cell. `stop` ends its server."""

    def __init__(self, paths: tuple[str, ...], height: int):
        try:
            from smdebug.ui.serving import UiServer
        except ImportError as error:
            raise SMDebugRuntimeError(MISSING) from error
        self._paths = paths
        self.height = height
        self._server = UiServer(paths, in_notebook=True)
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
        prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
        query = f"?token={self._server.token}&frame=1"
        port = self._server.port
        source = (
            f"{prefix.rstrip('/')}/proxy/{port}/{query}" if prefix else f"{self.address}&frame=1"
        )
        return (
            f'<iframe src="{escape(source)}" title="smdebug ui" width="100%" height="{self.height:d}" '
            'style="border:0"></iframe>'
        )


MISSING = "smdebug ui needs packages that are not installed: pip install 'smdebug-serverless[ui]'"


def show(paths: Sequence[str | os.PathLike[str]], height: int = 720) -> Inline:
    """Return the page on these runs, with one server for each choice of runs."""
    names = tuple(os.fspath(path) for path in paths) or (".",)
    known = _servers.get(names)
    if known is None:
        known = _servers[names] = Inline(names, height)
    known.height = height
    return known
