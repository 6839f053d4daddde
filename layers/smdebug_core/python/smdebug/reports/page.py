"""The page: one file of HTML that needs nothing else, neither a server nor a network.

What matters is written here, as text and tables, and is there without JavaScript, in print and for a screen
reader; the drawings are made in the browser by Observable Plot, from data in the page.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from smdebug.reports.gathering import STATISTICS, Curve, Gathered, Section, Series
from smdebug.reports.verdicts import MOST_MARKS, Verdict
from smdebug.runs.comparing import Comparison
from smdebug.service.costs import PRICED_IN

_LIBRARIES = ("vendored/d3-7.9.2.min.js", "vendored/plot-0.6.17.umd.min.js")
_LICENSES = ("vendored/d3-LICENSE.txt", "vendored/plot-LICENSE.txt")
# Nothing is loaded from anywhere, and nothing is sent anywhere.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def page_of(
    found: Gathered,
    *,
    made: datetime | None = None,
    comparison: Comparison | None = None,
    others: Sequence[Curve] = (),
) -> str:
    """The page as text; `others` are curves of the run that it is compared with, drawn behind its own."""
    behind = {(one.name, one.mode): one for one in others}
    name = found.overview.path.rstrip("/").rpartition("/")[2] or found.overview.path
    bad = [one for one in found.verdicts if one.is_bad]
    body = [
        _verdict(found.verdicts, bad),
        *([_compared(comparison)] if comparison else []),
        _curves(found.curves, found.verdicts, behind),
        *(_sections(found)),
        _distributions(found),
        _workers(found),
        _costs(found),
        _notes(found),
    ]
    parts = [
        _head(f"{name}: {_headline(found.verdicts)}"),
        "<body>",
        '<a class="skip" href="#verdict">To the verdict</a>',
        _header(name, found, made or datetime.now(UTC)),
        _ways(body),
        "<main>",
        *body,
        "</main>",
        _footer(),
        f'<script type="application/json" id="data">{_data(found, behind)}</script>',
        *(f"<script>{_asset(one)}</script>" for one in _LIBRARIES),
        f"<script>{_asset('report.js')}</script>",
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _head(title: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head>"
    )


def _header(name: str, found: Gathered, made: datetime) -> str:
    run = found.overview
    steps = "; ".join(f"{one.count:,} {one.mode} ({one.first}–{one.last})" for one in run.steps)
    facts = {
        "State": "ended" if run.ended else "has not ended",
        "Steps": steps or "none",
        "Workers": f"{run.num_workers:,}",
        "Tensors": f"{len(run.tensors):,}",
        "Saved": _size(run.bytes),
        "Began": _time(run.first_saved),
        "Last step": _time(run.last_saved),
    }
    told = "".join(
        f"<div><dt>{label}</dt><dd>{escape(value)}</dd></div>"
        for label, value in facts.items()
        if value
    )
    return (
        f"<header><h1>{escape(name)}</h1><p class=path>{escape(run.path)}</p><dl>{told}</dl>"
        f"<p class=faint>Made by smdebug on {_time(made)}</p></header>"
    )


_WAYS = {
    "verdict": "Verdict",
    "comparison": "Comparison",
    "curves": "Loss and metrics",
    "tensors": "Tensors",
    "distributions": "Distributions",
    "workers": "Workers",
    "latency": "Time and cost",
    "notes": "Notes",
}


def _ways(body: Iterable[str]) -> str:
    """Where to go from here: a page on a phone is long."""
    there = [
        name for name in _WAYS if any(part.startswith(f'<section id="{name}"') for part in body)
    ]
    links = "".join(f'<a href="#{name}">{_WAYS[name]}</a>' for name in there)
    return f'<nav aria-label="Sections">{links}</nav>'


def _scrolled(label: str, table: str) -> str:
    """A table that moves within the page where the page is too narrow, also by the keys."""
    return f'<div class=scroll tabindex=0 role=region aria-label="{escape(label, quote=True)}">{table}</div>'


# The verdict


def _headline(verdicts: Sequence[Verdict]) -> str:
    found = [one for one in verdicts if one.status == "IssuesFound"]
    failed = [one for one in verdicts if one.status == "Error"]
    if found:
        number = len(found)
        return f"{number} of {_plural(len(verdicts), 'rule')} found something"
    if failed:
        return f"{_plural(len(failed), 'rule')} failed"
    if verdicts:
        return f"{_plural(len(verdicts), 'rule')} found nothing"
    return "no rule has looked at it"


def _verdict(verdicts: Sequence[Verdict], bad: Sequence[Verdict]) -> str:
    mark = "bad" if bad else "good" if verdicts else "none"
    cards = "".join(
        _card(one)
        for one in sorted(verdicts, key=lambda one: (not one.is_bad, not one.has_seen, _first(one)))
    )
    return f'<section id="verdict" class="{mark}"><h2>{escape(_capital(_headline(verdicts)))}</h2>{cards}</section>'


def _first(verdict: Verdict) -> int:
    return verdict.steps_found[0] if verdict.steps_found else 0


def _card(verdict: Verdict) -> str:
    kind = "bad" if verdict.is_bad else "good" if verdict.has_seen else "none"
    sign = {"bad": "✗", "good": "✓", "none": "–"}[kind]
    told = [
        f'<article class="card {kind}" data-rule="{escape(verdict.name, quote=True)}">',
        f'<h3><span aria-hidden="true">{sign}</span> {escape(verdict.name)} '
        f"<small>{escape(verdict.status)}</small></h3>",
        f"<p>{escape(verdict.sentence)}</p>",
    ]
    if verdict.asks:
        told.append(f"<p class=faint>It looks for: {escape(_lower(verdict.asks))}</p>")
    if verdict.found:
        first, last = verdict.found[0], verdict.found[-1]
        told.append(
            f"<p><b>First, at step {first.step}:</b> {escape(first.text)}{_more(first.count)}</p>"
        )
        if last.step != first.step:
            told.append(
                f"<p><b>Last, at step {last.step}:</b> {escape(last.text)}{_more(last.count)}</p>"
            )
        told.append(_evidence(verdict))
    if verdict.parameters:
        shown = ", ".join(f"{name} = {value}" for name, value in verdict.parameters.items())
        told.append(f"<p class=faint>{escape(shown)}</p>")
    return "".join([*told, "</article>"])


def _evidence(verdict: Verdict) -> str:
    rows = "".join(
        f"<tr><td class=n>{one.step}</td><td>{escape(one.text)}</td><td class=n>{one.count}</td></tr>"
        for one in verdict.found
    )
    total = len(verdict.steps_found)
    shown = (
        f"{len(verdict.found)} of {_plural(total, 'step')}"
        if total > len(verdict.found)
        else _plural(total, "step")
    )
    return (
        f"<details><summary>The evidence, {shown}</summary>"
        + _scrolled(
            f"The evidence of {verdict.name}",
            "<table><thead><tr><th class=n>step</th><th>the worst of it</th><th class=n>findings</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>",
        )
        + "</details>"
    )


def _more(count: int) -> str:
    return f" <span class=faint>(and {count - 1:,} more)</span>" if count > 1 else ""


# Curves, sections, distributions, workers


_Behind = Mapping[tuple[str, str], Curve]


def _curves(curves: Sequence[Curve], verdicts: Sequence[Verdict], behind: _Behind) -> str:
    if not curves:
        return ""
    marked = any(one.steps_found for one in verdicts)
    figures = "".join(
        _curve(at, one, behind.get((one.name, one.mode))) for at, one in enumerate(curves)
    )
    hint = " A triangle marks a step at which a rule found something." * marked
    hint += " The dashed line is the run that it is compared with." * bool(behind)
    return (
        f'<section id="curves"><h2>Loss and metrics</h2><p class=faint>{_capital(hint.strip())}</p>'
        f'<div class="wide">{figures}</div></section>'
    )


def _ends(curve: Curve) -> str:
    return (
        f"{number(curve.values[0])} at step {curve.steps[0]}, "
        f"{number(curve.values[-1])} at step {curve.steps[-1]}"
    )


def _curve(at: int, curve: Curve, behind: Curve | None) -> str:
    finite = [value for value in curve.values if math.isfinite(value)]
    odd = len(curve.values) - len(finite)
    text = f"{curve.name}: {_ends(curve)}"
    if finite:
        text += f"; smallest {number(min(finite))}, largest {number(max(finite))}"
    if odd:
        text += f"; {odd} not finite"
    if behind is not None:
        text += f"; the other run: {_ends(behind)}"
    mode = "" if curve.mode == "GLOBAL" else f" <small>{curve.mode}</small>"
    return (
        f'<figure class="chart" data-kind="curve" data-at="{at}" data-name="{escape(curve.name, quote=True)}">'
        f"<figcaption><b>{escape(curve.name)}</b>{mode}<br>"
        f'<span class="faint">{escape(text.removeprefix(curve.name + ": "))}</span></figcaption>'
        f'<div class="plot" role="img" aria-label="{escape(text, quote=True)}"></div>'
        f"{_points(curve)}</figure>"
    )


def _points(curve: Curve) -> str:
    from smdebug.runs.overview import thinned

    chosen = thinned(list(range(len(curve.steps))), 25)
    rows = "".join(
        f"<tr><td class=n>{curve.steps[at]}</td><td class=n>{number(curve.values[at])}</td></tr>"
        for at in chosen
    )
    shown = f"{len(chosen)} of {curve.total:,} values" if curve.total > len(chosen) else "values"
    return (
        f"<details><summary>{shown}</summary><table><thead><tr><th class=n>step</th><th class=n>"
        f"{escape(curve.name)}</th></tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _sections(found: Gathered) -> Iterable[str]:
    if not found.sections:
        return
    mode = "" if found.mode == "GLOBAL" else f" of mode {found.mode}"
    yield (
        '<section id="tensors"><h2>Tensors, layer by layer</h2>'
        f"<p class=faint>At {_plural(len(found.steps), 'step')}{mode}; the drawings of a group share their axes. "
        "A triangle marks a step with a finding that names the tensor.</p>"
        '<form class="controls" role="search"><label>Show '
        '<select id="statistic"><option value="size">mean |x| and standard deviation</option>'
        '<option value="range">minimum, mean and maximum</option></select></label>'
        '<label>Filter <input id="filter" type="search" placeholder="part of a name" size="20"></label>'
        '<span id="matching" role="status" class="faint"></span></form></section>'
    )
    offset = 0
    for section in found.sections:
        yield _section(section, offset)
        offset += len(section.series)


def _section(section: Section, offset: int) -> str:
    figures = "".join(_multiple(offset + at, series) for at, series in enumerate(section.series))
    rows = "".join(_numbers(series) for series in section.series)
    heads = "".join(
        f"<th class=n>{name}</th>"
        for name in (
            "step",
            "shape",
            "min",
            "max",
            "mean",
            "std",
            "mean |x|",
            "zeros",
            "NaN",
            "infinite",
        )
    )
    return (
        f'<section class="group"><h3>{escape(section.title)} <small>{len(section.series)}</small></h3>'
        f'<div class="multiples">{figures}</div>'
        "<details><summary>Their numbers at the last step drawn</summary>"
        + _scrolled(
            f"{section.title} in numbers",
            f"<table><thead><tr><th>tensor</th>{heads}</tr></thead><tbody>{rows}</tbody></table>",
        )
        + "</details></section>"
    )


def _multiple(at: int, series: Series) -> str:
    label = _spoken(series)
    odd = f' <span class="odd">{len(series.not_finite)} steps not finite</span>' * bool(
        series.not_finite
    )
    return (
        f'<figure class="chart" data-kind="multiple" data-at="{at}" data-name="{escape(series.name, quote=True)}">'
        f'<figcaption title="{escape(series.name, quote=True)}">{escape(series.name)}{odd}</figcaption>'
        f'<div class="plot" role="img" aria-label="{escape(label, quote=True)}"></div></figure>'
    )


def _spoken(series: Series) -> str:
    """The drawing in words."""
    means = series.numbers["abs_mean"]
    known = means[np.isfinite(means)]
    if not known.size:
        return f"{series.name}: nothing that could be drawn"
    return (
        f"{series.name}: mean magnitude {number(float(known[0]))} at first, {number(float(known[-1]))} at last, "
        f"between {number(float(known.min()))} and {number(float(known.max()))}"
    )


def _numbers(series: Series) -> str:
    last = series.last
    if last is None:
        return ""
    shape = "" if last.shape is None else "×".join(map(str, last.shape)) or "scalar"
    cells = (
        *(series.last_step, shape, last.minimum, last.maximum, last.mean, last.std),
        *(last.abs_mean, last.zeros, last.nan, last.infinite),
    )
    told = "".join(f"<td class=n>{_cell(one)}</td>" for one in cells)
    return f'<tr data-tensor="{escape(series.name, quote=True)}"><th scope="row">{escape(series.name)}</th>{told}</tr>'


def _distributions(found: Gathered) -> str:
    if not found.distributions:
        return ""
    named = any(one.tensors for one in found.verdicts)
    why = (
        "Of the tensors that findings name."
        if named
        else "Of the first tensors; no finding names one."
    )
    figures = "".join(
        f'<figure class="chart" data-kind="distribution" data-at="{at}" data-name="{escape(one.name, quote=True)}">'
        f'<figcaption title="{escape(one.name, quote=True)}">{escape(one.name)}</figcaption>'
        f'<div class="plot" role="img" aria-label="{escape(one.name, quote=True)}: values between '
        f'{number(one.value_at(one.low))} and {number(one.value_at(one.high))} over {len(one.steps)} steps"></div></figure>'
        for at, one in enumerate(found.distributions)
    )
    return (
        f'<section id="distributions"><h2>Distributions over steps</h2><p class=faint>{why} The darker, the more '
        "of a step's values are there; the scale is even near zero and grows with the values.</p>"
        f'<div class="wide">{figures}</div></section>'
    )


def _workers(found: Gathered) -> str:
    if found.overview.num_workers < 2:
        return ""
    if not found.disagreements:
        return (
            '<section id="workers"><h2>Workers</h2><p>No tensor was saved by more than one worker at a step, '
            "so there is nothing to compare.</p></section>"
        )
    rows = "".join(
        f'<tr><th scope="row">{escape(one.name)}</th><td class=n>{one.spread[-1]:.2%}</td>'
        f"<td class=n>{one.largest:.2%}</td><td class=n>{one.steps[int(np.argmax(one.spread))]}</td></tr>"
        for one in found.disagreements
    )
    figures = "".join(
        f'<figure class="chart" data-kind="workers" data-at="{at}" data-name="{escape(one.name, quote=True)}">'
        f'<figcaption title="{escape(one.name, quote=True)}">{escape(one.name)}</figcaption>'
        f'<div class="plot" role="img" aria-label="{escape(one.name, quote=True)}: workers differ by up to '
        f'{one.largest:.2%}"></div></figure>'
        for at, one in enumerate(found.disagreements[:8])
    )
    return (
        '<section id="workers"><h2>Where workers disagree</h2><p class=faint>How far the mean |x| of a tensor is '
        f"apart between workers, relative to their mean.</p><div class=multiples>{figures}</div>"
        + _scrolled(
            "How far workers disagree",
            "<table><thead><tr><th>tensor</th><th class=n>last</th><th class=n>largest</th><th class=n>at step</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>",
        )
        + "</section>"
    )


def _costs(found: Gathered) -> str:
    timed = [one for one in found.verdicts if one.seconds is not None]
    told = _cost(found)
    if not found.latency and not timed and not told:
        return ""
    if found.latency:
        rows = "".join(
            f'<tr><th scope="row">{escape(leg)}</th><td class=n>{median:.3f} s</td><td class=n>{late:.3f} s</td></tr>'
            for leg, (median, late) in found.latency.items()
        )
        told += (
            "<table><thead><tr><th>from, to</th><th class=n>median</th><th class=n>p99</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
    if timed:
        rows = "".join(
            f'<tr><th scope="row">{escape(one.name)}</th><td class=n>{one.seconds:.2f} s</td></tr>'
            for one in timed
        )
        told += (
            "<table><thead><tr><th>rule</th><th class=n>evaluated here in</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
    return f'<section id="latency"><h2>What looking has taken</h2>{told}</section>'


def _cost(found: Gathered) -> str:
    cost = found.cost
    if cost is None:
        return ""
    what = f"{_plural(cost.steps, 'saved step')} of {_plural(cost.workers, 'worker')}"
    told = (
        f"The evaluation has cost about <b>{cost}</b>: {what}."
        if found.deployed
        else f"Deployed, the evaluation of {what} would cost about <b>{cost}</b>."
    )
    return (
        f"<p>{told} <span class=faint>By the list prices of AWS in {PRICED_IN}, for built-in rules, however many, "
        "and the default settings; without the training's own uploads, logs, and any free tier.</span></p>"
    )


def _notes(found: Gathered) -> str:
    notes = list(found.notes)
    if found.left_out:
        notes.append(f"{_plural(found.left_out, 'tensor')} more were saved, and are not drawn.")
    if found.overview.incomplete_steps:
        count = len(found.overview.incomplete_steps)
        notes.append(f"{_plural(count, 'step')} lack some worker, and are not counted.")
    notes += [f"Damaged: {key}: {why}" for key, why in found.overview.damaged.items()]
    if not notes:
        return ""
    told = "".join(f"<li>{escape(one)}</li>" for one in notes)
    return f'<section id="notes"><h2>Notes</h2><ul>{told}</ul></section>'


def _compared(comparison: Comparison) -> str:
    if comparison.first is not None:
        verdict = f"They part at {comparison.first}."
    elif comparison.is_same:
        verdict = f"They are the same: {comparison.compared:,} values."
    else:
        verdict = "What both have is the same; one has steps or tensors that the other lacks."
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class=n>{len(one.tensors)}</td>'
        f"<td class=n>{len(one.tensors_different)}</td><td class=n>{one.compared:,}</td>"
        f"<td class=n>{one.different:,}</td><td class=n>{'' if one.first_step is None else one.first_step}</td>"
        f"<td class=n>{number(one.largest) if one.different else ''}</td></tr>"
        for name, one in comparison.collections.items()
    )
    heads = ("tensors", "different", "values", "different", "since step", "largest |a − b|")
    told = "".join(f"<th class=n>{one}</th>" for one in heads)
    return (
        f'<section id="comparison"><h2>Compared with {escape(comparison.other)}</h2><p>{escape(verdict)}</p>'
        + _scrolled(
            "Differences by collection",
            f"<table><thead><tr><th>collection</th>{told}</tr></thead><tbody>{rows}</tbody></table>",
        )
        + "</section>"
    )


def _footer() -> str:
    licenses = escape("\n\n".join(_asset(one).strip() for one in _LICENSES))
    return (
        "<footer><details><summary>Drawn with D3 and Observable Plot</summary>"
        f"<pre>{licenses}</pre></details></footer>"
    )


# Data and assets


def _data(found: Gathered, behind: _Behind) -> str:
    """The data of the drawings; `<` cannot end the script."""
    told = {
        "steps": list(found.steps),
        "marks": [
            {"rule": one.name, "steps": list(one.steps_found[:MOST_MARKS])}
            for one in found.verdicts
            if one.steps_found
        ],
        "curves": [
            {
                "name": one.name,
                "mode": one.mode,
                **_line(one),
                "other": _line(behind.get((one.name, one.mode))),
            }
            for one in found.curves
        ],
        "groups": [
            {"first": first, "count": len(section.series)}
            for first, section in _with_offsets(found.sections)
        ],
        "series": [
            {
                "name": series.name,
                "odd": [list(one) for one in series.not_finite],
                "marks": _marks_of(series.name, found.verdicts),
                **{one: _packed(series.numbers[one]) for one in STATISTICS},
            }
            for section in found.sections
            for series in section.series
        ],
        "distributions": [
            {
                "name": one.name,
                "steps": list(one.steps),
                "unit": one.unit,
                "low": one.low,
                "high": one.high,
                "bins": int(one.shares.shape[1]),
                "shares": base64.b64encode(one.shares.tobytes()).decode(),
            }
            for one in found.distributions
        ],
        "workers": [
            {"name": one.name, "steps": list(one.steps), "spread": list(one.spread)}
            for one in found.disagreements[:8]
        ],
    }
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _line(curve: Curve | None) -> dict[str, Any]:
    if curve is None:
        return {"steps": [], "values": []}
    return {
        "steps": list(curve.steps),
        "values": [_json_number(value) for value in curve.values],
    }


def _with_offsets(sections: Sequence[Section]) -> Iterable[tuple[int, Section]]:
    first = 0
    for section in sections:
        yield first, section
        first += len(section.series)


def _marks_of(name: str, verdicts: Sequence[Verdict]) -> list[int]:
    steps = {told.step for one in verdicts for told in one.found if name in told.tensors}
    return sorted(steps)


def _packed(numbers: Any) -> str:
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode()


def _json_number(value: float) -> float | None:
    return float(f"{value:.7g}") if math.isfinite(value) else None


@cache
def _asset(name: str) -> str:
    text = files("smdebug.reports").joinpath(*name.split("/")).read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")


def number(value: float | None) -> str:
    """A number as the page has it: four digits are enough."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    return f"{value:.4g}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    return "" if value is None else escape(str(value))


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return ""


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
