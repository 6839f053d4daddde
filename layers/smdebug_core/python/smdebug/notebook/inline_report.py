"""A report inside a notebook: the page in a frame that isolates its scripts and styles."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from smdebug.reports.gathering import gather
from smdebug.reports.writing import evaluated, notes_on, steps_worth
from smdebug.service.records import RequestedRule
from smdebug.trials import Trial
from smdebug.ui.embedding import page_of

HEIGHT = 700


class InlineReport:
    """A report that a notebook shows; `html` is the page as text, and `str` says what was found."""

    def __init__(self, html: str, sentences: Sequence[str], height: int = HEIGHT):
        self.html = html
        self.height = height
        self._sentences = list(sentences)

    def _repr_html_(self) -> str:
        # No origin: the page can neither read the notebook nor send anything.
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-popups allow-downloads" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8888;border-radius:5px" '
            'title="smdebug report"></iframe>'
        )

    def __str__(self) -> str:
        return "\n".join(self._sentences)

    __repr__ = __str__


def inline_report(
    trial: Trial, rules: Sequence[RequestedRule] | None = None, *, height: int = HEIGHT
) -> InlineReport:
    """Evaluate rules on the run, by default its own and the default set, and return the report."""
    most = steps_worth(trial)
    verdicts = evaluated(trial, rules, jobs=1, most_steps=most)
    found = gather(trial, verdicts, notes=notes_on(trial, verdicts, most))
    return InlineReport(page_of(found), [verdict.sentence for verdict in verdicts], height)
