"""Runs, tensors, findings and reports as a notebook shows them: small tables of HTML, everything escaped.

`trials` imports it by name when a notebook shows something, since nothing else there needs HTML.
"""

from smdebug.notebook.inline_report import InlineReport, inline_report
from smdebug.notebook.tables import run_html, tensor_html

__all__ = ["InlineReport", "inline_report", "run_html", "tensor_html"]
