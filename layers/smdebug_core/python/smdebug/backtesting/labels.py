"""Which runs were failing in fact: by a file that people keep, or by the tags of the runs."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from smdebug.backtesting.finding_runs import FoundRun
from smdebug.exceptions import SMDebugValueError

FAILING, HEALTHY = "failing", "healthy"
_WORDS = {
    **dict.fromkeys(("failing", "failed", "fail", "bad", "1", "true", "yes"), FAILING),
    **dict.fromkeys(("healthy", "fine", "good", "ok", "passed", "0", "false", "no"), HEALTHY),
    "": "",
}


@dataclass(frozen=True)
class Labels:
    """The labels of runs, by path, location or name, and the tags that are labels."""

    of_run: Mapping[str, str] = field(default_factory=dict)
    failing_tag: str = FAILING
    healthy_tag: str = HEALTHY

    def label_of(self, run: FoundRun, tags: Collection[str]) -> str:
        """Return `failing`, `healthy`, or "" for a run without a label; the file comes before tags."""
        for key in (run.location, run.path.rstrip("/"), run.name, run.name.rpartition("/")[2]):
            if key in self.of_run:
                return self.of_run[key]
        if self.failing_tag in tags:
            return FAILING
        return HEALTHY if self.healthy_tag in tags else ""


def read_labels(file: Path) -> dict[str, str]:
    """Return the labels of a CSV file with the columns `run` and `label`."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines)
            if not {"run", "label"} <= set(rows.fieldnames or ()):
                raise SMDebugValueError(f"{file} needs the columns run and label in its first line")
            return {
                (row["run"] or "").strip().rstrip("/"): _label(row["label"] or "", f"{file}, line {number}")
                for number, row in enumerate(rows, 2)
            }
    except (UnicodeDecodeError, csv.Error) as error:
        raise SMDebugValueError(f"{file} is not a CSV file in UTF-8: {error}") from error


def _label(text: str, place: str) -> str:
    label = _WORDS.get(text.strip().lower())
    if label is None:
        raise SMDebugValueError(f"{place}: {text!r} is neither {FAILING} nor {HEALTHY}")
    return label
