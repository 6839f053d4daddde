"""The table as one page: the rule's number over failing and healthy runs, and what each threshold gives.

It needs neither a server nor a network. The drawings are there without its script, which only moves a line.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from html import escape

from smdebug.amounts import counted, number
from smdebug.backtesting.backtest import Backtest
from smdebug.backtesting.drawing import Scale, drawing_of
from smdebug.backtesting.labels import FAILING
from smdebug.backtesting.rows import Row
from smdebug.backtesting.summary import RuleSummary, summaries
from smdebug.backtesting.thresholds import Distribution, Threshold, distributions
from smdebug.plain_text import escaped
from smdebug.ui.embedding.page import page_style

MOST_ROWS = 2000
_GROUPS = {
    "failing": "failing runs found",
    "healthy": "alarms on healthy runs",
    "unlabelled": "alarms on runs without a label",
}
_STYLE = """
section, h3 { margin: 20px 0 8px; }
.chart { overflow-x: auto; }
.chart svg { width: 100%; height: auto; min-width: 720px; max-width: 1000px; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--quiet); }
.failing { fill: var(--bad); stroke: var(--bad); }
.healthy { fill: var(--good); stroke: var(--good); }
.unlabelled { fill: var(--quiet); stroke: var(--quiet); }
svg rect[class] { stroke: none; fill-opacity: 0.75; }
svg polyline[class] { fill: none; stroke-width: 2; }
svg polyline.healthy { stroke-dasharray: 8 4; }
svg polyline.unlabelled { stroke-dasharray: 2 3; }
svg .axis { stroke: var(--line); }
svg .limit { stroke: var(--text); stroke-dasharray: 4 3; }
svg .pick { stroke: var(--focus); stroke-width: 2; }
/* Its thumb, 16 pixels wide, is below the line that it moves. */
.try { display: block; padding: 0; --drawing: clamp(720px, 100%, 1000px);
  margin: 0 0 0 calc(var(--drawing) * 0.06 - 8px); width: calc(var(--drawing) * 0.92 + 16px); }
td.number, th.number { text-align: right; }
"""
_SCRIPT = """
for (const chart of document.querySelectorAll("[data-distribution]")) {
  const about = JSON.parse(chart.dataset.distribution);
  const slider = chart.querySelector("input"), line = chart.querySelector(".pick");
  const words = chart.querySelector("output");
  const beyond = (values, limit) => values.filter((v) => (about.above ? v > limit : v < limit)).length;
  const show = () => {
    const share = Number(slider.value);
    const at = about.low + share * (about.high - about.low);
    const limit = about.log ? Math.exp(at) : at;
    const x = about.left + share * about.width;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    const parts = ["failing", "healthy", "unlabelled"]
      .filter((name) => about[name].length)
      .map((name) => `${beyond(about[name], limit)} of ${about[name].length} ${name} runs`);
    words.textContent = `limit ${limit.toPrecision(4)}: alarms on ${parts.join(", ")}`;
    slider.setAttribute("aria-valuetext", words.textContent);
  };
  slider.addEventListener("input", show);
  slider.hidden = false;
  show();
}
"""


def page_of(table: Backtest) -> str:
    """Return the page as text."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    known = {distribution.rule: distribution for distribution in distributions(table.rows)}
    found = summaries(table.rows)
    title = f"Backtest of {escape(', '.join(summary.rule for summary in found) or 'rules')}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>{page_style()}{_STYLE}</style></head><body><main>",
        f"<h1>{title}</h1>",
        f'<p class="quiet">{counted(table.runs, "run")}</p>',
    ]
    for summary in found:
        parts += _section(summary, known.get(summary.rule))
    if table.rows:
        parts += _table(table.rows)
    parts.append(f"</main><script>{_SCRIPT}</script></body></html>")
    return "\n".join(parts)


def _section(summary: RuleSummary, distribution: Distribution | None) -> Iterator[str]:
    yield f"<section><h2>{escape(summary.rule)}</h2><p>{escape(str(summary))}</p>"
    if distribution is None:
        yield (
            '<p class="quiet">No number is known that the rule compares with its limit. A rule names it in '
            "<code>self.checked_value</code> at each step, and in its findings.</p>"
        )
    else:
        yield from _chart(distribution)
        yield from _thresholds(distribution)
    yield "</section>"


def _chart(distribution: Distribution) -> Iterator[str]:
    scale = Scale.of(
        (*distribution.values, *([distribution.limit] if distribution.limit is not None else []))
    )
    about = {
        "above": distribution.is_above,
        "log": scale.is_log,
        "low": scale.low,
        "high": scale.high,
        "left": scale.left,
        "width": scale.width,
        "failing": distribution.failing,
        "healthy": distribution.healthy,
        "unlabelled": distribution.unlabelled,
    }
    start = scale.share(distribution.limit) if distribution.limit is not None else 0.5
    extreme = "highest" if distribution.is_above else "lowest"
    yield f'<div class="chart" data-distribution="{escape(json.dumps(about))}">'
    yield f"<p>The {extreme} “{escape(distribution.statistic)}” of each run</p>"
    yield drawing_of(distribution, scale)
    yield f'<input class="try" type="range" min="0" max="1" step="any" value="{start}" '
    yield 'aria-label="Limit" hidden>'
    yield "<p><output></output></p></div>"


def _thresholds(distribution: Distribution) -> Iterator[str]:
    rows = distribution.worth_a_look()
    if distribution.limit is not None:
        rows = [distribution.at(distribution.limit), *rows]
    groups = {
        name: f"{words}, of {len(getattr(distribution, name)):,}"
        for name, words in _GROUPS.items()
        if getattr(distribution, name)
    }
    yield "<h3>What each limit would have given</h3>"
    if not distribution.failing and not distribution.healthy:
        yield (
            '<p class="quiet">No run has a label, so nothing says which of the alarms are right. Runs get '
            "labels from a file (<code>--labels</code>) or from their tags.</p>"
        )
    yield _begin_of_table(f"Limits of {distribution.rule}") + '<th class="number">limit</th>'
    yield "".join(f'<th class="number">{head}</th>' for head in groups.values()) + "</tr></thead><tbody>"
    for place, threshold in enumerate(rows[:40]):
        is_own = place == 0 and distribution.limit is not None
        yield _threshold(threshold, groups, " (the rule's)" if is_own else "")
    yield "</tbody></table></div>"


def _begin_of_table(name: str) -> str:
    """Begin a table that the keyboard can scroll."""
    return f'<div class="table" tabindex="0" role="region" aria-label="{_shown(name)}"><table><thead><tr>'


def _threshold(threshold: Threshold, groups: Iterable[str], remark: str) -> str:
    cells = "".join(f'<td class="number">{getattr(threshold, name):,}</td>' for name in groups)
    return f'<tr><td class="number">{escape(number(threshold.limit))}{remark}</td>{cells}</tr>'


def _table(rows: Sequence[Row]) -> Iterator[str]:
    shown = nsmallest(MOST_ROWS, rows, key=_place)
    yield "<section><h2>Runs</h2>"
    if len(rows) > len(shown):
        yield f'<p class="quiet">{len(shown):,} of {len(rows):,} verdicts</p>'
    heads = ("run", "rule", "status", "first finding", "onset", "findings", "steps", "seconds")
    labels = any(row.label for row in rows)
    changes = any(row.changed is not None for row in rows)
    names = [*heads, *["label"] * labels, *["difference from the older version"] * changes]
    yield _begin_of_table("Runs") + "".join(f"<th>{name}</th>" for name in names)
    yield "</tr></thead><tbody>"
    for row in shown:
        onset = "" if row.onset is None else f"{row.onset:,}"
        texts = [row.run, row.rule, row.status, row.first_finding or row.note, onset, f"{row.findings:,}"]
        texts += [f"{row.looked:,}", f"{row.seconds:.3g}"]
        texts += [*[row.label] * labels, *[row.changed or ""] * changes]
        yield "<tr>" + "".join(f"<td>{_shown(text)}</td>" for text in texts) + "</tr>"
    yield "</tbody></table></div></section>"


def _shown(text: str) -> str:
    """Return the text as one line, in which nothing is obeyed by a browser."""
    return escape(escaped(" ".join(text.split())))


def _place(row: Row) -> tuple[bool, bool, bool, bool]:
    """Sort differences first, then findings, runs without a verdict, and failing runs that passed."""
    has_passed = row.has_verdict and not row.fires
    return row.changed is None, not row.fires, has_passed, has_passed and row.label != FAILING
