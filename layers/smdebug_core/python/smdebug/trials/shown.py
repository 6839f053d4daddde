"""What trials and tensors offer to notebooks.

`smdebug.notebook`, which reads trials, makes the pages; it is imported by name, so that a reader of tensors
does not load it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class ShownRun:
    """A run in a notebook."""

    def _repr_html_(self) -> str:
        return str(import_module("smdebug.notebook").run_html(self))

    def report(self, rules: Any = None, *, height: int = 700) -> Any:
        """Evaluate rules and return the report, which a notebook shows inline.

        Without `rules` they are the run's own and the default set. `.html` is the page as text.
        """
        return import_module("smdebug.notebook").inline_report(self, rules, height=height)


class ShownTensor:
    """A tensor in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module("smdebug.notebook").tensor_html(self))
