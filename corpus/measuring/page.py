"""The figures as tables of text, the same on a terminal and in docs/verdicts.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus.measuring.scores import Scores, Share, Tally, Verdict

HALVES = ("tuning", "held out")
Row = tuple[str, ...]


def table(header: Row, rows: Sequence[Row]) -> Iterator[str]:
    """A Markdown table whose columns are aligned; nothing if it has no rows."""
    if not rows:
        return
    widths = [max(len(row[at]) for row in (header, *rows)) for at in range(len(header))]
    yield _line(header, widths)
    yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    for row in rows:
        yield _line(row, widths)


def _line(row: Row, widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


def summary(scores: Scores) -> Iterator[str]:
    """The main figures, of both halves beside each other."""
    parts = [scores, *(scores.where(half=half) for half in HALVES)]
    rows = [
        ("healthy runs with an alarm", *(bounded(each.false_alarms) for each in parts)),
        ("healthy twins with an alarm", *(bounded(each.twins) for each in parts)),
        ("faults found", *(str(each.found) for each in parts)),
        ("faults named right", *(str(each.named_right) for each in parts)),
        ("at the first visible step", *(str(each.prompt) for each in parts)),
    ]
    yield from table(("", "all", *HALVES), rows)


def bounded(share: Share) -> str:
    """A share with the rate that it does not exceed with 95 % confidence."""
    return f"{share}, < {100 * share.upper_bound:.1f} %" if share.total else "-"


def blame(scores: Scores) -> Iterator[str]:
    """Which rule raised the false alarms."""
    rows = [(*named.split(": ", 1), str(count)) for named, count in scores.blamed.most_common()]
    yield from table(("rule", "cause named", "false alarms"), rows)


def disturbed(scores: Scores) -> Iterator[str]:
    """The healthy trainings that drew an alarm."""
    rows = [
        (
            tally.name,
            tally.kind,
            tally.half,
            f"{tally.alarmed}/{tally.runs}",
            ", ".join(tally.named),
        )
        for tally in scores.tallies
        if tally.kind != "faulty" and tally.alarmed
    ]
    yield from table(("training", "kind", "half", "runs", "alarms"), rows)


def classes(scores: Scores) -> Iterator[str]:
    """What was found of each cause."""
    rows = []
    for cause in scores.causes:
        part = scores.where(cause=cause)
        rows.append((cause, *map(str, (part.found, part.named_right, part.prompt, part.twins))))
    header = ("cause", "found", "named right", "first visible step", "twins with an alarm")
    yield from table(header, rows)


def frameworks(scores: Scores) -> Iterator[str]:
    """The main figures of each framework."""
    rows = []
    for name in dict.fromkeys(tally.framework for tally in scores.tallies):
        part = scores.where(framework=name)
        shares = (part.false_alarms, part.found, part.named_right, part.prompt)
        rows.append((name, *map(str, shares)))
    header = ("framework", "healthy with an alarm", "found", "named right", "first visible step")
    yield from table(header, rows)


def confusion(scores: Scores) -> Iterator[str]:
    """Which cause was named instead of which."""
    rows = [
        (true, named, str(count))
        for (true, named), count in sorted(scores.confusion.items())
        if true != named
    ]
    yield from table(("true cause", "named", "runs"), rows)


def missed(scores: Scores) -> list[Tally]:
    """The faults that were not named right in at least one run."""
    faults = scores.where(kind="faulty").tallies
    return sorted((each for each in faults if each.right < each.runs), key=lambda each: each.name)


def misses(scores: Scores) -> Iterator[str]:
    """The table of missed faults."""
    rows = [
        (each.name, each.cause, each.half, f"{each.runs - each.right}/{each.runs}", _named(each))
        for each in missed(scores)
    ]
    yield from table(("fault", "cause", "half", "runs", "named"), rows)


def _named(tally: Tally) -> str:
    return ", ".join(sorted(tally.named))


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


SECTIONS = {
    "False alarms by rule": blame,
    "Healthy trainings with an alarm": disturbed,
    "By cause": classes,
    "By framework": frameworks,
    "Named instead": confusion,
    "Not named right in every run": misses,
}


def whole(scores: Scores) -> Iterator[str]:
    """All tables, each under its heading."""
    yield from [*summary(scores), ""]
    for heading, part in SECTIONS.items():
        lines = list(part(scores))
        if lines:
            yield from [heading, "", *lines, ""]
