"""The page: one file of HTML that needs neither a server nor a network.

The essentials are text and tables, which work without JavaScript, in print and for a screen reader. The
charts are drawn in the browser by Observable Plot, from data in the page. `templates/` has the HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from smdebug.amounts import counted
from smdebug.diagnosis import wording as diagnosis
from smdebug.reports import wording
from smdebug.reports.chart_data import MOST_WORKER_CHARTS, OtherCurves, chart_data, numbered
from smdebug.reports.curves import Curve
from smdebug.reports.gathering import Gathered
from smdebug.reports.verdicts import Verdict
from smdebug.runs.comparing import Comparison
from smdebug.runs.origins import in_words, value_in_words
from smdebug.runs.overview import thinned
from smdebug.service.costs import PRICED_IN

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_SCRIPTS = ("vendored/d3-7.9.2.min.js", "vendored/plot-0.6.17.umd.min.js", "report.js")
_LICENSES = ("vendored/d3-LICENSE.txt", "vendored/plot-LICENSE.txt")
_MOST_VALUES = 25  # in the table below a curve
_MOST_CARDS = 8  # of rules that passed or were not checked; more of them are folded up
_FILTERS = (
    *(wording.number, wording.cell, wording.percent, counted, wording.capitalized),
    *(wording.lowered, wording.time, wording.evidence_shown, wording.outcome, wording.spoken),
    *(wording.last_numbers, wording.range_in_words, numbered),
    value_in_words,
    *(diagnosis.headline, diagnosis.parts, diagnosis.sentence),
)


@dataclass(frozen=True)
class _CurveOnPage:
    """A curve with its description and the values in its table."""

    name: str
    mode: str
    total: int
    description: str
    shown: tuple[tuple[int, float], ...]


def page_of(
    found: Gathered,
    *,
    made: datetime | None = None,
    comparison: Comparison | None = None,
    others: Sequence[Curve] = (),
) -> str:
    """Return the page as text; `others` are the curves of the run that it is compared with."""
    from markupsafe import Markup

    behind = {(curve.name, curve.mode): curve for curve in others}
    run = found.overview
    notes = wording.notes(found)
    timed = [verdict for verdict in found.verdicts if verdict.seconds is not None]
    has_costs = bool(found.latency or timed or found.cost)
    sections = (
        ("verdict", "Verdict", True),
        ("comparison", "Comparison", comparison is not None),
        ("inputs", "Inputs", bool(found.inputs or found.unsaved_inputs)),
        ("curves", "Loss and metrics", bool(found.curves)),
        ("system", "System", bool(found.system)),
        ("tensors", "Tensors", bool(found.sections)),
        ("distributions", "Distributions", bool(found.distributions)),
        ("workers", "Workers", run.num_workers > 1),
        ("origin", "Origin", run.origin is not None),
        ("latency", "Time and cost", has_costs),
        ("notes", "Notes", bool(notes)),
    )
    return (
        _templates()
        .get_template("page.html")
        .render(
            found=found,
            run=run,
            name=_name_of(run.path),
            headline=wording.headline(found.verdicts),
            mark=_mark(found.verdicts),
            facts=wording.facts(run),
            made=made or datetime.now(UTC),
            navigation=[(name, title) for name, title, is_there in sections if is_there],
            issues=found.issues,
            verdicts=sorted(found.verdicts, key=_by_urgency),
            most_cards=_MOST_CARDS,
            comparison=comparison,
            curves=_curves(found.curves, behind),
            others=others,
            other_name=None if comparison is None else _name_beside(comparison.other, run.path),
            system=_curves(found.system, {}),
            waiting=found.waiting,
            origin=[] if run.origin is None else in_words(run.origin),
            drawn_disagreements=found.disagreements[:MOST_WORKER_CHARTS],
            timed=timed,
            has_costs=has_costs,
            priced_in=PRICED_IN,
            notes=notes,
            licenses="\n\n".join(_text(name).strip() for name in _LICENSES),
            data=Markup(chart_data(found, behind)),  # noqa: S704 - it has no "<"
            scripts=_SCRIPTS,
        )
    )


def _name_of(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _name_beside(other: str, path: str) -> str:
    """Return the name of the other run, or its path if both runs have the same name."""
    return other if _name_of(other) == _name_of(path) else _name_of(other)


def _mark(verdicts: Sequence[Verdict]) -> str:
    kinds = {verdict.kind for verdict in verdicts}
    return next((kind for kind in ("bad", "failed", "good") if kind in kinds), "none")


def _by_urgency(verdict: Verdict) -> tuple[bool, bool, bool, int]:
    first = verdict.steps_found[0] if verdict.steps_found else 0
    return not verdict.is_bad, not verdict.has_failed, not verdict.has_seen, first


def _curves(curves: Sequence[Curve], others: OtherCurves) -> list[_CurveOnPage]:
    shown = []
    for curve in curves:
        at = thinned(list(range(len(curve.steps))), _MOST_VALUES)
        description = wording.curve_in_words(curve, others.get((curve.name, curve.mode)))
        values = tuple((curve.steps[i], curve.values[i]) for i in at)
        shown.append(_CurveOnPage(curve.name, curve.mode, curve.total, description, values))
    return shown


@cache
def _templates() -> Environment:
    """The templates. Jinja escapes every value in them; it is imported when a page is made."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("smdebug.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({function.__name__: function for function in _FILTERS})
    environment.globals["asset"] = _asset
    return environment


def _asset(name: str) -> Markup:
    from markupsafe import Markup

    return Markup(_text(name).replace("</script", "<\\/script"))  # noqa: S704 - our own file


@cache
def _text(name: str) -> str:
    return files("smdebug.reports").joinpath(*name.split("/")).read_text(encoding="utf-8")
