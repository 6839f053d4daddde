"""Which runs were failing in fact: by a file that people keep, or by the tags of the runs."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smdebug.backtesting.finding_runs import FoundRun, run_at
from smdebug.exceptions import SMDebugValueError

FAILING, HEALTHY = "failing", "healthy"
_WORDS = {
    **dict.fromkeys(("failing", "failed", "fail", "bad", "1", "true", "yes"), FAILING),
    **dict.fromkeys(("healthy", "fine", "good", "ok", "passed", "0", "false", "no"), HEALTHY),
    "": "",
}
_WIDEST = 100
"""Characters of the file in a message."""


@dataclass(frozen=True)
class Labels:
    """The labels of runs, by path, location or name, and the tags that are labels."""

    of_run: Mapping[str, str] = field(default_factory=dict)
    failing_tag: str = FAILING
    healthy_tag: str = HEALTHY
    _met: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    _met_tags: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def label_of(self, run: FoundRun, tags: Collection[str]) -> str:
        """Return `failing`, `healthy`, or "" for a run without a label; the file comes before tags.

        The last part of a run's name counts where the file has none of its other names.
        """
        exact = self._of_its_names(run)
        last = _plain(run.name.rpartition("/")[2])
        self._met.update(exact, self.of_run.keys() & {last})
        self._met_tags.update({self.failing_tag, self.healthy_tag}.intersection(tags))
        if len(set(exact.values())) > 1:
            said = " and ".join(f"{_in_words(label)} as {name}" for name, label in exact.items())
            raise SMDebugValueError(f"The labels contradict each other: {run.path} is {said}")
        if exact or last in self.of_run:
            return next(iter(exact.values()), self.of_run.get(last, ""))
        if self.failing_tag in tags:
            return FAILING
        return HEALTHY if self.healthy_tag in tags else ""

    def refuse_contradictions(self, places: Sequence[str]) -> None:
        """Raise `SMDebugValueError` if a run at or below the places has two labels, before any is judged."""
        for place in places if self.of_run else ():
            at = run_at(place)
            beginnings = [f"{_plain(each)}/" for each in (at.location, at.path)]
            names = {name.removeprefix(beginning) for name in self.of_run for beginning in ["", *beginnings]}
            for run in (at, *map(at.below, sorted(names))):
                if len(set(self._of_its_names(run).values())) > 1 and run.exists():
                    self.label_of(run, ())

    def _of_its_names(self, run: FoundRun) -> dict[str, str]:
        names = dict.fromkeys(map(_plain, (run.location, run.path, run.name)))
        return {name: self.of_run[name] for name in names if name in self.of_run}

    def of_no_run(self) -> list[str]:
        """Return the names of the file that none of the runs so far had."""
        return [name for name in self.of_run if name not in self._met]

    def tags_of_no_run(self) -> list[str]:
        """Return the tags that none of the runs so far had, but the usual ones."""
        met = {FAILING, HEALTHY, *self._met_tags}
        return [tag for tag in (self.failing_tag, self.healthy_tag) if tag not in met]


def read_labels(file: Path) -> dict[str, str]:
    """Return the labels of a CSV file with the columns `run` and `label`."""
    labels: dict[str, str] = {}
    line_of: dict[str, int] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, strict=True)
            rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
            _refuse_other_columns(file, rows.fieldnames)
            for row in rows:
                name, label = _named_label(row, f"{file}, line {rows.line_num}")
                if not name:
                    continue
                if labels.setdefault(name, label) != label:
                    raise SMDebugValueError(
                        f"{file}: {name} is {_in_words(labels[name])} in line {line_of[name]}, "
                        f"but {_in_words(label)} in line {rows.line_num}"
                    )
                line_of.setdefault(name, rows.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        raise SMDebugValueError(f"{file} is not a CSV file in UTF-8: {error}") from error
    return labels


def _refuse_other_columns(file: Path, names: Sequence[str]) -> None:
    if not {"run", "label"} <= set(names):
        found = repr(",".join(names))[:_WIDEST] if names else "nothing"
        raise SMDebugValueError(
            f"{file} needs the columns run and label in its first line, which has {found}"
        )


def _named_label(row: Mapping[str | None, Any], place: str) -> tuple[str, str]:
    """Return the name and the label of a row; both are empty in an empty row."""
    if None in row:
        raise SMDebugValueError(
            f"{place} has more values than the first line. Write a name with a comma in quotes"
        )
    name, text = _plain(row["run"] or ""), row["label"] or ""
    label = _WORDS.get(text.strip().lower())
    if label is None:
        raise SMDebugValueError(f"{place}: {text[:_WIDEST]!r} is neither {FAILING} nor {HEALTHY}")
    if label and not name:
        raise SMDebugValueError(f"{place} has a label, but no run")
    return name, label


def _plain(name: str) -> str:
    """Return the name of a run as both the file and the command line may write it."""
    return name.strip().rstrip("/").removeprefix("./")


def _in_words(label: str) -> str:
    return label or "without a label"
