"""The command line as in the tests of the commands, and a server as in those of the page."""

from tests.cli.conftest import ask
from tests.ui.conftest import chromium, serve

__all__ = ["ask", "chromium", "serve"]
