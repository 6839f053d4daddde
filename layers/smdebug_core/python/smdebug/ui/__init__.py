"""`smdebug ui`: a page that shows runs while they train, in the browser or in a notebook.

    import smdebug
    smdebug.ui("./runs")

The module can be called, so that the line above works beside `import smdebug.ui.web.serving`.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smdebug.ui.web.inline import Inline


class _CallableModule(ModuleType):
    def __call__(self, *paths: str | os.PathLike[str], height: int = 720) -> Inline:
        """Show runs below the cell of a notebook."""
        from smdebug.ui.web.inline import show

        return show(paths, height=height)


sys.modules[__name__].__class__ = _CallableModule
