"""The figures as tables of text, the same on a terminal and in docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from bench.verdicts.cases import Fault
from bench.verdicts.scores import Scores, Share, Verdict

HALVES = ("tuning", "held out")
Row = tuple[str, ...]


def table(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    """A Markdown table whose columns are aligned."""
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    yield _line(header, widths)
    yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    for row in rows:
        yield _line(row, widths)


def _line(row: Row, widths: Sequence[int]) -> str:
    return (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
    )


def summary(scores: Scores) -> Iterator[str]:
    """The main figures, of both halves beside each other."""
    parts = [scores, *(scores.of_half(half) for half in HALVES)]
    rows = [
        ("healthy runs with an alarm", *(_bounded(each.false_alarms) for each in parts)),
        ("healthy twins with an alarm", *(_bounded(each.twins) for each in parts)),
        ("faults found", *(str(each.found) for each in parts)),
        ("faults named right", *(str(each.named_right) for each in parts)),
        ("at the first visible step", *(str(each.prompt) for each in parts)),
    ]
    yield from table(("", "all", *HALVES), rows)


def _bounded(share: Share) -> str:
    return f"{share}, < {100 * share.upper_bound:.1f} %" if share.total else "-"


def blame(scores: Scores) -> Iterator[str]:
    """Which rule raised the false alarms."""
    rows = [
        (rule, cause or "-", str(count)) for (rule, cause), count in scores.blamed.most_common()
    ]
    if rows:
        yield from table(("rule", "cause named", "false alarms"), rows)


def classes(scores: Scores) -> Iterator[str]:
    """What was found of each cause."""
    rows = []
    for cause in scores.causes:
        part = scores.of_cause(cause)
        rows.append((cause, *map(str, (part.found, part.named_right, part.prompt, part.twins))))
    header = ("cause", "found", "named right", "first visible step", "twins with an alarm")
    if rows:
        yield from table(header, rows)


def confusion(scores: Scores) -> Iterator[str]:
    """Which cause was named instead of which."""
    rows = [
        (true, named, str(count))
        for (true, named), count in sorted(scores.confusion.items())
        if true != named
    ]
    if rows:
        yield from table(("true cause", "named", "runs"), rows)


def missed(scores: Scores) -> Iterator[str]:
    """The faults that were not found or not named right in at least one run."""
    rows = []
    faulty = sorted(scores.of_kind("faulty"), key=lambda verdict: verdict.case.name)
    for name, group in groupby(faulty, key=lambda verdict: verdict.case.name):
        verdicts = list(group)
        wrong = [verdict for verdict in verdicts if not verdict.right]
        if wrong and isinstance(wrong[0].case, Fault):
            named = ", ".join(sorted({verdict.named for verdict in wrong}))
            share = f"{len(wrong)}/{len(verdicts)}"
            rows.append((name, wrong[0].case.cause, wrong[0].half, share, named))
    if rows:
        yield from table(("fault", "cause", "half", "runs", "named instead"), rows)


def alarms(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Every alarm, run by run."""
    for verdict in verdicts:
        for alarm in verdict.alarms:
            is_right = alarm in verdict.right
            mark = "false" if verdict.kind != "faulty" else "right" if is_right else "other"
            yield (
                f"{mark}: {verdict.case.name} ({verdict.kind}, seed {verdict.seed}): {alarm.rule} "
                f"[{alarm.cause or 'no cause'}] since {alarm.since}, found at {alarm.step}: {alarm.message}"
                + (f" (symptoms: {', '.join(alarm.symptoms)})" if alarm.symptoms else "")
            )
        for error in verdict.judged.errors:
            yield f"failed: {verdict.case.name} ({verdict.kind}, seed {verdict.seed}): {error}"


def whole(scores: Scores) -> Iterator[str]:
    """All tables, each under its heading."""
    for heading, part in (
        ("", summary),
        ("False alarms by rule", blame),
        ("By cause", classes),
        ("Named instead", confusion),
        ("Not named right", missed),
    ):
        lines = list(part(scores))
        if lines:
            yield from ([heading, ""] if heading else [])
            yield from [*lines, ""]
