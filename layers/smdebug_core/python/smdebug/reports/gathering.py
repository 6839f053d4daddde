"""The content of a report, as plain data: gathered once, in bounded memory and time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smdebug.diagnosis import Issue, fold
from smdebug.mode_keys import ModeKeys
from smdebug.reports.curves import Curve, Progress, curves_of, scalar_names
from smdebug.reports.distributions import Distribution, distribution_of
from smdebug.reports.inputs import ShownInput, inputs_shown
from smdebug.reports.measured_tensors import measured_sections
from smdebug.reports.system import system_curves, waiting_share
from smdebug.reports.tensor_series import (
    MOST_TENSORS,
    Section,
    Series,
    choose_tensors,
    sections_of,
    series_of,
)
from smdebug.reports.verdicts import Verdict
from smdebug.reports.worker_spread import MOST_COMPARED, Disagreement, disagreements
from smdebug.runs.diagnosing import layers_in_order
from smdebug.runs.layer_order import names_in_order
from smdebug.runs.overview import Overview, collections_of, overview_of, thinned
from smdebug.service.costs import Cost
from smdebug.trials import Trial

MOST_STEPS = 150  # at which the statistics of all tensors are computed
MOST_DISTRIBUTIONS = 12
_USUAL_DISTRIBUTIONS = 4  # where no finding names a tensor


@dataclass(frozen=True)
class Gathered:
    """Everything on the page."""

    overview: Overview
    verdicts: tuple[Verdict, ...]
    curves: tuple[Curve, ...]
    steps: tuple[int, ...]  # global ones, at which statistics were computed
    mode: str  # of these steps
    sections: tuple[Section, ...]
    distributions: tuple[Distribution, ...]
    disagreements: tuple[Disagreement, ...]
    left_out: int = 0  # tensors that are not drawn
    latency: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # p50, p99 in seconds
    deployed: bool = False  # the verdicts are those of the deployed application
    notes: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()  # of the model, in order, as far as they are known
    system: tuple[Curve, ...] = ()
    inputs: tuple[ShownInput, ...] = ()
    """The inputs that findings point at, as far as their values were saved."""
    unsaved_inputs: tuple[str, ...] = ()
    waiting: float | None = None
    """The share of its time that the training waited for data."""

    @property
    def issues(self) -> list[Issue]:
        """The problems of the run: causes with their symptoms."""
        return issues_in(self.verdicts, self.layers)

    @property
    def cost(self) -> Cost | None:
        """The cost of evaluating the run in a deployment; None if no rule evaluated it."""
        steps = sum(part.count for part in self.overview.steps)
        workers = max(1, self.overview.num_workers)
        return Cost(steps, workers) if self.verdicts and steps else None


def gather(
    trial: Trial,
    verdicts: Sequence[Verdict] = (),
    *,
    latency: Mapping[str, tuple[float, float]] | None = None,
    deployed: bool = False,
    notes: Sequence[str] = (),
    progress: Progress = lambda done: None,
) -> Gathered:
    """Return the content of a run's page. One step's values at a time are in memory."""
    overview = overview_of(trial, with_values=False)
    zoomed = zoomed_into(trial)
    of_findings = (name for verdict in verdicts for name in verdict.tensors)
    named = list(dict.fromkeys([*of_findings, *zoomed]))
    curves = curves_of(trial, progress)
    members = collections_of(trial)
    scalars = {curve.name for curve in curves}
    drawn, left_out = choose_tensors(overview, members, scalars, named)
    mode, steps = _sampled_steps(trial, verdicts, zoomed)
    series = series_of(trial, drawn, steps, progress)
    layers = layers_in_order(trial)
    inputs, unsaved_inputs = inputs_shown(trial, verdicts)
    measured, unmeasured = measured_sections(trial, steps, named, MOST_TENSORS - len(series))
    every_series = [*series, *(item for section in measured for item in section.series)]
    return Gathered(
        overview=overview,
        verdicts=tuple(verdicts),
        curves=curves,
        steps=tuple(steps),
        mode=mode,
        sections=(*sections_of(series, members), *measured),
        distributions=_distributions(
            trial, every_series, steps, names_in_order(named, layers), progress
        ),
        disagreements=disagreements(trial, [*scalars, *drawn], steps, progress),
        left_out=left_out + unmeasured,
        latency=dict(latency or {}),
        deployed=deployed,
        notes=(*notes, *_zoom_note(zoomed)),
        layers=layers,
        system=system_curves(trial),
        inputs=inputs,
        unsaved_inputs=unsaved_inputs,
        waiting=waiting_share(trial),
    )


def issues_in(verdicts: Iterable[Verdict], layers: Sequence[str] = ()) -> list[Issue]:
    """Return the issues in the findings of all rules."""
    return fold([item for verdict in verdicts for item in verdict.evidence], order=layers)


def work_of(trial: Trial, verdicts: Sequence[Verdict] = ()) -> int:
    """The number of times that `gather` reports progress, or slightly more: the length of a bar."""
    zoomed = zoomed_into(trial)
    named = {*zoomed, *(name for verdict in verdicts for name in verdict.tensors)}
    tensors = trial.tensor_names()
    several = len(trial.workers()) > 1
    return sum(
        (
            len(scalar_names(trial)),
            len(_sampled_steps(trial, verdicts, zoomed)[1]),
            min(len(named) or _USUAL_DISTRIBUTIONS, len(tensors), MOST_DISTRIBUTIONS),
            min(len(tensors), MOST_COMPARED) if several else 0,
        )
    )


def zoomed_into(trial: Trial) -> dict[str, list[int]]:
    """The tensors that were saved whole on request, with their global steps."""
    if "zoom" not in trial.collections():
        return {}
    names = trial.tensor_names(collection="zoom")
    return {name: trial.tensor(name).steps() for name in names if trial.has_tensor(name)}


def _zoom_note(zoomed: Mapping[str, Sequence[int]]) -> list[str]:
    steps = sorted({step for of_tensor in zoomed.values() for step in of_tensor})
    if not steps:
        return []
    names = sorted(zoomed)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [
        f"Saved whole on request, at {len(steps)} steps from {steps[0]} to {steps[-1]}: "
        f"{', '.join(names[:5])}{more}."
    ]


def _sampled_steps(
    trial: Trial, verdicts: Sequence[Verdict], zoomed: Mapping[str, Sequence[int]]
) -> tuple[str, list[int]]:
    """The mode with the most steps, and steps of it: evenly spread, with findings, and zoomed into."""
    by_mode = {mode: trial.steps(mode) for mode in trial.modes()}
    if not by_mode:
        mode, steps = ModeKeys.GLOBAL, trial.steps()
    else:
        mode = max(by_mode, key=lambda key: len(by_mode[key]))
        of_mode = (trial.global_step(mode, mode_step) for mode_step in by_mode[mode])
        steps = [step for step in of_mode if step is not None]
    there = set(steps)
    marked = {step for verdict in verdicts for step in verdict.notable_steps if step in there}
    marked |= {step for of_tensor in zoomed.values() for step in of_tensor if step in there}
    most_marked = MOST_STEPS // 3
    room = MOST_STEPS - min(len(marked), most_marked)
    chosen = {*thinned(sorted(there), room), *thinned(sorted(marked), most_marked)}
    return mode.name, sorted(chosen)


def _distributions(
    trial: Trial,
    found: Sequence[Series],
    steps: Sequence[int],
    named: Sequence[str],
    progress: Progress,
) -> tuple[Distribution, ...]:
    """The distributions of the tensors named in findings, or else of the first few."""
    by_name = {series.name: series for series in found}
    wanted = [name for name in named if name in by_name]
    if not wanted:
        wanted = [series.name for series in found][:_USUAL_DISTRIBUTIONS]
    drawn = []
    for name in wanted[:MOST_DISTRIBUTIONS]:
        drawn.append(distribution_of(trial.tensor(name), steps, by_name[name].numbers))
        progress(1)
    return tuple(distribution for distribution in drawn if distribution is not None)
