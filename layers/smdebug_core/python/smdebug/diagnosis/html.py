"""An issue as HTML, for notebooks. Everything in it is escaped."""

from __future__ import annotations

from html import escape

from smdebug.diagnosis.issues import Issue
from smdebug.diagnosis.wording import headline, parts, sentence

_ROW = '<tr><th style="text-align:left;vertical-align:top">{}</th><td style="text-align:left">{}</td></tr>'


def issue_html(issue: Issue) -> str:
    """Return the issue: its headline, the evidence, what to try, and where to read more."""
    rows = []
    for label, texts in parts(issue):
        if label == "More":
            shown = [_link(text) for text in texts]
        else:
            shown = [escape(text) for text in texts]
        rows.append(_ROW.format(escape(label), "<br>".join(shown)))
    return (
        f"<p><b>✗ {escape(headline(issue))}</b><br>{escape(sentence(issue.what))}</p>"
        f"<table><tbody>{''.join(rows)}</tbody></table>"
    )


def _link(address: str) -> str:
    if not address.startswith("https://"):
        return escape(address)
    return f'<a href="{escape(address)}" target="_blank" rel="noreferrer">{escape(address)}</a>'
