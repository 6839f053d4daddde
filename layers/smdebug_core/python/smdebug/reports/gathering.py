"""The content of a report: a run is read once, in bounded memory, and answers as the page requests it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smdebug.amounts import as_json_number, counted
from smdebug.diagnosis import Issue, fold
from smdebug.diagnosis.issues import with_checkpoints
from smdebug.plain_text import escaped
from smdebug.runs.comparing import Comparison
from smdebug.runs.evaluation.diagnosing import layers_in_order, readable_checkpoints
from smdebug.runs.origins import value_in_words
from smdebug.runs.overview import thinned
from smdebug.runs.verdicts import Verdict
from smdebug.trials import Trial
from smdebug.ui.about.named_tensors import zoomed_into
from smdebug.ui.about.worker_spread import compared_tensors
from smdebug.ui.answer_types import ComparedValues, ComparisonAnswer
from smdebug.ui.comparisons import Part, comparison_of
from smdebug.ui.drawing.charts import Charts
from smdebug.ui.embedding.content import Content, content_of, id_in_report
from smdebug.ui.embedding.whole_run import WholeRun, read_charts

MOST_MEASURED = 30_000  # saved tensors times steps at which statistics are computed
FEWEST_STEPS = 150
_MOST_NAMED = 5  # tensors in a note

Progress = Callable[[int], Any]


def gather(
    trial: Trial,
    verdicts: Sequence[Verdict] = (),
    *,
    other: Trial | None = None,
    comparison: Comparison | None = None,
    latency: Mapping[str, tuple[float, float]] | None = None,
    deployed: bool = False,
    notes: Sequence[str] = (),
    progress: Progress = lambda done: None,
) -> Content:
    """Return the content of a run's report, with that of the run that it is compared with."""
    with trial.refreshing(False):
        run = _whole(trial, verdicts, notes, progress)
        behind, compared = None, None
        if other is not None:
            behind = (_name_beside(other.path, trial.path), _whole(other, (), (), progress))
            compared = _compared(run, behind, comparison)
        return content_of(
            name_of(trial.path),
            run,
            other=behind,
            comparison=compared,
            latency=latency,
            deployed=deployed,
            progress=progress,
        )


def verdicts_alone(
    trial: Trial, verdicts: Sequence[Verdict], note: str, *, deployed: bool = False
) -> Content:
    """Return the content of a report for which no tensor is read."""
    with trial.refreshing(False):
        run = _whole(trial, verdicts, [note], None)
        return content_of(name_of(trial.path), run, deployed=deployed, reads_values=False)


def issues_in(verdicts: Iterable[Verdict], trial: Trial | None = None) -> list[Issue]:
    """Return the issues in the findings of all rules; of a `trial`, with the checkpoints before them."""
    evidence = [item for verdict in verdicts for item in verdict.evidence]
    if trial is None or not evidence:
        return fold(evidence)
    return with_checkpoints(fold(evidence, order=layers_in_order(trial)), readable_checkpoints(trial))


def work_of(trial: Trial) -> int:
    """The number of times that `gather` reports progress: the length of a bar."""
    return len(trial.steps()) + len(compared_tensors(trial))


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rpartition("/")[2] or path


def _whole(
    trial: Trial, verdicts: Sequence[Verdict], notes: Sequence[str], progress: Progress | None
) -> WholeRun:
    """Read a run; without `progress` nothing but its index."""
    charts = Charts()
    if progress is not None:
        measured = None if trial.observations.exist else _measured_steps(trial, verdicts)
        charts = read_charts(trial, measured=measured, progress=progress)
    charts.damaged.update({key: str(why) for key, why in trial.damaged_files.items()})
    return WholeRun(
        trial,
        charts,
        verdicts,
        issues=issues_in(verdicts, trial),
        notes={str(at): escaped(note) for at, note in enumerate([*notes, *_notes(trial)])},
    )


def _measured_steps(trial: Trial, verdicts: Sequence[Verdict]) -> set[int]:
    """Return the steps at which saved tensors are measured: evenly spread, and those with findings."""
    steps = trial.steps()
    most = max(FEWEST_STEPS, MOST_MEASURED // max(1, len(trial.tensor_names())))
    marked = {step for verdict in verdicts for step in verdict.notable_steps}
    chosen = thinned(sorted(marked.intersection(steps)), most // 3)
    return {*thinned(steps, most - len(chosen)), *chosen}


def _notes(trial: Trial) -> list[str]:
    zoomed = zoomed_into(trial)
    steps = sorted({step for of_tensor in zoomed.values() for step in of_tensor})
    notes = []
    if steps:
        names = sorted(zoomed)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        notes.append(
            f"Saved whole on request, at {len(steps)} steps from {steps[0]} to {steps[-1]}: "
            f"{', '.join(names[:_MOST_NAMED])}{more}."
        )
    incomplete = len(trial.steps(show_incomplete_steps=True)) - len(trial.steps())
    if incomplete:
        notes.append(f"{counted(incomplete, 'step')} not counted: workers are missing.")
    return notes


def _name_beside(other: str, path: str) -> str:
    """Return the name of the other run, or its path if both runs have the same name."""
    return other if name_of(other) == name_of(path) else name_of(other)


def _compared(run: WholeRun, behind: tuple[str, WholeRun], comparison: Comparison | None) -> ComparisonAnswer:
    name, other = behind
    answer = comparison_of(
        [
            Part(id_in_report(run), name_of(run.path), run),
            Part(id_in_report(other), name, other),
        ]
    )
    if comparison is not None:
        answer["values"] = _values(comparison)
    return answer


def _values(comparison: Comparison) -> ComparedValues:
    """Return a comparison of values as the page shows it."""
    return {
        "outcome": _outcome(comparison),
        "configuration": [
            {
                "name": escaped(each.name),
                "values": [escaped(value_in_words(value)) for value in (each.first, each.other)],
            }
            for each in comparison.config
        ],
        "collections": [
            {
                "name": escaped(name),
                "tensors": len(collection.tensors),
                "tensors_different": len(collection.tensors_different),
                "compared": collection.compared,
                "different": collection.different,
                "first_step": collection.first_step,
                "largest": as_json_number(collection.largest) if collection.different else None,
            }
            for name, collection in comparison.collections.items()
        ],
    }


def _outcome(comparison: Comparison) -> str:
    """Return a comparison in a sentence."""
    if comparison.first is not None:
        return f"First difference: {escaped(str(comparison.first))}."
    if comparison.is_same:
        return f"No differences in {comparison.compared:,} values."
    return "No differences in common values, but one run lacks steps or tensors of the other."
