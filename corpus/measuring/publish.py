"""docs/verdicts.md out of the kept results: `make verdicts-page`, after `make verdicts ARGS="--publish"`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from corpus.measuring import page
from corpus.measuring.reasons import REASONS
from corpus.measuring.scores import Scores, Tally
from corpus.measuring.written import written

RESULTS = Path(__file__).parent / "results.json"

AGAIN = "again"
"""The name of results of fewer seeds than usual."""

TEMPLATE = Path(__file__).parent / "page.md"


def main() -> int:
    """Print the page."""
    sys.stdout.write(text(read()))
    return 0


def read(path: Path = RESULTS) -> dict[str, tuple[Tally, ...]]:
    """The kept results: those of the default rules, and of the rules of the original for comparison."""
    return {
        name: tuple(Tally(**tally) for tally in tallies)
        for name, tallies in json.loads(path.read_text()).items()
    }


def judged_by(tallies: Iterable[Tally], commit: str) -> list[Tally]:
    """The tallies with the commit whose rules judged the runs."""
    return [replace(tally, judged=commit) for tally in tallies]


def write(
    name: str,
    tallies: Iterable[Tally],
    path: Path = RESULTS,
    trainings: Sequence[tuple[str, str]] | None = None,
) -> None:
    """Keep the results of a set of rules beside those of others, and beside those of other trainings.

    Those of trainings that are no longer written are dropped.
    """
    known = json.loads(path.read_text()) if path.exists() else {}
    new = {(tally.name, tally.kind): tally.to_dict() for tally in tallies}
    old = {(tally["name"], tally["kind"]): tally for tally in known.get(name, ())}
    places = {training: place for place, training in enumerate(written() if trainings is None else trainings)}
    merged = {**old, **new}
    known[name] = [merged[training] for training in sorted(merged.keys() & places, key=places.__getitem__)]
    lines = [
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(tally)}" for tally in tallies) + "\n ]"
        for name, tallies in known.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def text(results: dict[str, tuple[Tally, ...]]) -> str:
    """The page: the template with a table in the place of each comment."""
    scores, again = Scores(results["default"]), Scores(results.get(AGAIN, ()))
    parts = {
        "summary": page.summary(scores),
        "size": [_size(scores), *_not_measured(scores, again)],
        "commits": [*_commits(scores), *_again(again)],
        "by cause": page.classes(scores),
        "by framework": page.frameworks(scores),
        "blame": page.blame(scores),
        "disturbed": page.disturbed(scores),
        "reasons": _reasons(scores),
        "confusion": page.confusion(scores),
        "original": _original(results),
        "faults": _faults(scores),
        "programs": _programs(scores),
    }
    written = TEMPLATE.read_text()
    for name, lines in parts.items():
        written = written.replace(f"<!-- {name} -->", "\n".join(lines) or "None.")
    return written


def _size(scores: Scores) -> str:
    counts = {kind: scores.where(kind=kind).tallies for kind in ("healthy", "faulty")}
    frameworks = dict.fromkeys(tally.framework for tally in scores.tallies)
    runs = sum(tally.runs for tally in scores.tallies)
    return (
        f"{len(counts['healthy'])} healthy programs and {len(counts['faulty'])} faults with their twins, "
        f"{runs:,} runs, with {', '.join(frameworks)}."
    )


def _commits(scores: Scores) -> Iterator[str]:
    """How many runs were recorded and judged by which code."""
    counts: Counter[tuple[str, str]] = Counter()
    for tally in scores.tallies:
        counts[tally.recorded or "earlier", tally.judged or "earlier"] += tally.runs
    rows = [(*commits, f"{runs:,}") for commits, runs in counts.most_common()]
    yield from page.table(("recorded by the code of", "judged by the rules of", "runs"), rows)


def _again(scores: Scores) -> Iterator[str]:
    """What fewer seeds showed, of trainings that were recorded again."""
    if not scores.tallies:
        return
    rows = [
        ("healthy runs with an alarm", page.bounded(scores.false_alarms)),
        ("healthy twins with an alarm", page.bounded(scores.twins)),
        ("faults named right", str(scores.named_right)),
    ]
    yield ""
    yield "One seed of these trainings was recorded again since, and judged at once:"
    yield ""
    yield from page.table(("", "recorded again"), [row for row in rows if not row[1].startswith("-")])
    yield ""
    yield from _commits(scores)


def _not_measured(scores: Scores, again: Scores) -> Iterator[str]:
    measured = {tally.name for tally in scores.tallies}
    by_one_seed = {tally.name for tally in again.tallies}
    new = [*dict.fromkeys(name for name, _ in written() if name not in measured)]
    for what, names in (
        ("measured with one seed so far", [name for name in new if name in by_one_seed]),
        ("not measured yet", [name for name in new if name not in by_one_seed]),
    ):
        if names:
            yield ""
            yield f"Written since, and {what}: {', '.join(names)}."


def _reasons(scores: Scores) -> Iterator[str]:
    rows = [
        (
            each.name,
            each.half,
            f"{each.runs - each.right}/{each.runs}",
            ", ".join(each.named),
            REASONS.get(each.name, ""),
        )
        for each in page.missed(scores)
    ]
    yield from page.table(("fault", "half", "runs", "named", "why"), rows)


def _faults(scores: Scores) -> Iterator[str]:
    rows = [
        (
            each.name,
            each.framework,
            each.cause,
            each.source,
            each.half,
            *(f"{count}/{each.runs}" for count in (each.alarmed, each.right, each.prompt)),
        )
        for each in scores.where(kind="faulty").tallies
    ]
    header = ("fault", "framework", "cause", "source", "half", "found", "right", "first step")
    yield from page.table(header, rows)


def _programs(scores: Scores) -> Iterator[str]:
    rows = [
        (each.name, each.framework, each.half, f"{each.alarmed}/{each.runs}")
        for each in scores.where(kind="healthy").tallies
    ]
    yield from page.table(("program", "framework", "half", "runs with an alarm"), rows)


def _original(results: dict[str, tuple[Tally, ...]]) -> Iterator[str]:
    scores = Scores(results.get("all", ()))
    if scores.tallies:
        rows = [
            ("healthy runs with an alarm", page.bounded(scores.false_alarms)),
            ("healthy twins with an alarm", page.bounded(scores.twins)),
            ("faulty runs with an alarm", str(scores.found)),
        ]
        yield from page.table(("", "`--rule all`"), rows)
        yield ""
        yield from page.blame(scores)


if __name__ == "__main__":
    sys.exit(main())
