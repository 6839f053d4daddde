"""`smdebug inspect`: summarise a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import counted, number, size
from smdebug.cli.answers.colours import bad, faint, strong
from smdebug.cli.answers.output import (
    moment,
    output_options,
    print_curves,
    print_heading,
    print_json,
    print_line,
    print_table,
    wrapped,
)
from smdebug.cli.answers.progress import progress
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import attempt_option, open_path
from smdebug.plain_text import escaped

if TYPE_CHECKING:
    from smdebug.runs.overview import Overview, TensorOverview
    from smdebug.runs.tensors import MeasuredOverview
    from smdebug.trials.trial import Trial

_MOST_TENSORS = 40
_MOST_SETTINGS = 25
_LABEL = 10
_STATISTICS = ("min", "max", "mean", "std", "non_finite")


@click.command("inspect")
@click.argument("path", shell_complete=complete_place)
@click.option("--tensors", "all_tensors", is_flag=True, help="List all tensors.")
@click.option("--no-values", is_flag=True, help="Read only index files: no values, no statistics.")
@attempt_option
@output_options
def command(path: str, all_tensors: bool, no_values: bool, attempt: int | None, as_json: bool) -> None:
    """Summarise the run at PATH: origin, hyperparameters, steps, workers, tensors, sizes, statistics.

    PATH is a folder or s3://bucket/prefix.

    \b
    Examples:
      smdebug inspect ./my-run
      smdebug inspect s3://bucket/my-run --tensors
      smdebug inspect ./my-run --json | jq '.tensors[].name'

    Exits with 0, and with 3 if the run cannot be read.
    """
    from smdebug.runs.metrics import measured_sizes, unlike_configured
    from smdebug.runs.overview import overview_of

    trial = open_path(path, attempt)
    run = overview_of(trial, with_values=not no_values, progress=progress("reading tensors"))
    measured, problem = _measured(trial, with_values=not no_values)
    if as_json:
        print_json({**run.to_dict(), "measured": [tensor.to_dict() for tensor in measured]})
        return
    most = None if all_tensors else _MOST_TENSORS
    _print(run, len(measured), "" if no_values else unlike_configured(trial), most)
    if problem:
        print_line(bad("damaged: ") + problem)
    _print_measured(measured, most)
    if not no_values:
        _print_sizes(measured_sizes(trial))
        _print_scalars(trial, {loss.name for loss in run.losses})


def _measured(trial: Trial, *, with_values: bool) -> tuple[list[MeasuredOverview], str]:
    """Return the measured tensors, and why they cannot be read."""
    from smdebug.exceptions import SMDebugError
    from smdebug.runs.tensors import measured_overview

    if not with_values:
        return [], ""
    try:
        return measured_overview(trial), ""
    except SMDebugError as error:
        return [], str(error)


def _print_measured(measured: list[MeasuredOverview], most: int | None) -> None:
    if not measured:
        return
    print_heading("Measured tensors")
    print_line(faint("min to std: the last time that their kind was measured"))
    print_table(
        ("tensor", "kind", "steps", "shape", "type", *_STATISTICS),
        [
            (
                tensor.name,
                tensor.kind,
                tensor.steps,
                *((seen.shape, seen.dtype) if (seen := tensor.latest) else (None, None)),
                *(seen.of(name) if seen else None for name in _STATISTICS[:-1]),
                (seen.non_finite or None) if seen else None,
            )
            for tensor in measured
        ],
        limit=most,
    )
    parts = [tensor.part for tensor in measured if tensor.part]
    if parts:
        print_line(
            faint(f"of {counted(len(parts), 'sharded tensor')}, one worker's part, {parts[0]}, not the whole")
        )
    if most is not None and len(measured) > most:
        print_line(faint("--tensors lists all of them"))


def _print_scalars(trial: Trial, losses: Collection[str]) -> None:
    """Print the scalars of every step that are not losses."""
    from smdebug.exceptions import SMDebugError

    try:
        names = [name for name in trial.observations.series_names() if name not in losses]
        series = [trial.series(name) for name in names]
    except SMDebugError as error:
        print_line(bad("damaged: ") + str(error))
        return
    if series:
        print_heading("Every step")
        print_curves(
            ("scalar", "values", "first", "last", "curve"),
            [
                (
                    (values.name, len(values), number(values.values[0]), number(values.values[-1])),
                    values.values.tolist(),
                )
                for values in series
                if len(values)
            ],
        )


def _print(run: Overview, measured: int, doubt: str, most: int | None) -> None:
    from smdebug.mode_keys import ModeKeys
    from smdebug.runs.training_loss import loss_in_words

    state = run.state
    if len(run.attempts) > 1:
        state = f"attempt {run.attempt} of {len(run.attempts)}, {state}"
    expected = run.num_workers + run.digest_workers
    workers = counted(expected, "worker")
    if run.digest_workers:
        workers += f" ({run.digest_workers} of them with digests alone)"
    if len(run.workers) != expected:
        workers += f" ({len(run.workers)} of them saved something)"
    print_line(strong(run.path))
    tensors = counted(len(run.tensors), "tensor")
    if measured:
        tensors = f"{counted(measured, 'tensor')} measured, {len(run.tensors):,} saved"
    print_line(
        f"{state}, {workers}, {counted(run.num_steps, 'step')}, {tensors}, "
        f"{size(run.bytes)} in {counted(run.index_files, 'event file')}"
    )
    if run.first_saved and run.last_saved:
        each = run.seconds_per_step
        pace = f", {number(each)} s per saved step" if each is not None else ""
        print_line(f"saved from {moment(run.first_saved)} to {moment(run.last_saved)}{pace}")
    if run.loss is not None:
        print_line(f"{run.loss.name} {loss_in_words(run.loss)}")
    for line in run.lines:
        if line.mode is not ModeKeys.TRAIN:
            print_line(f"{line.label} loss {line.in_words()}")
    _print_origin(run)
    if doubt:
        print_line(bad("differs: ") + doubt)
    if run.incomplete_steps:
        shown = ", ".join(map(str, run.incomplete_steps[:10]))
        print_line(f"{counted(len(run.incomplete_steps), 'incomplete step')}, missing some workers: {shown}")
    for key, problem in run.damaged.items():
        print_line(bad("damaged: ") + f"{key}: {problem}")
    if run.missing_steps:
        print_line(bad("missing: ") + str(run.missing_steps))
    if run.damaged or run.missing_steps:
        print_line(faint(f"run smdebug verify {run.path} for details"))
    if len(run.attempts) > 1:
        print_heading("Attempts")
        print_table(
            ("attempt", "steps", "first", "last", "hidden", "workers", "state", "last saved"),
            [
                (
                    attempt.number,
                    attempt.num_steps,
                    attempt.first_step,
                    attempt.last_step,
                    attempt.hidden_steps,
                    len(attempt.workers),
                    attempt.outcome,
                    attempt.last_saved_moment(),
                )
                for attempt in run.attempts
            ],
        )
        print_line(faint("--attempt N shows the run as that attempt left it"))
    if run.steps:
        print_heading("Steps")
        print_table(
            ("mode", "steps", "first", "last", "every"),
            [(step.mode, step.count, step.first, step.last, step.interval) for step in run.steps],
        )
    collections = {name: count for name, count in run.collections.items() if count}
    if collections:
        print_heading("Collections")
        print_table(("collection", "tensors"), collections.items())
    if run.losses:
        print_heading("Losses of training")
        print_curves(
            ("loss", "values", "first", "last", "lowest", "at step", "curve"),
            [
                (
                    (
                        loss.name,
                        len(loss),
                        number(loss.values[0]),
                        number(loss.last),
                        number(loss.best),
                        loss.best_step,
                    ),
                    loss.values.tolist(),
                )
                for loss in run.losses
            ],
        )
    if run.logged:
        print_heading("Logged to be looked at")
        print_table(
            ("name", "kind", "values", "first", "last", "size"),
            [
                (each.name, each.kind.replace("_", " "), each.count, each.first, each.last, size(each.bytes))
                for each in run.logged
            ],
        )
        print_line(faint("smdebug ui shows them, and trial.logged() reads them"))
    if run.tensors:
        print_heading("Saved tensors" if measured else "Tensors")
        print_line(faint("min to std: the last values"))
        print_table(
            ("tensor", "steps", "shape", "type", "size", *_STATISTICS),
            [_row(tensor) for tensor in run.tensors],
            limit=most,
        )
        if most is not None and len(run.tensors) > most:
            print_line(faint("--tensors lists all of them"))


def _print_sizes(sizes: dict[str, float]) -> None:
    if sizes:
        print_heading("Measured by itself")
        print_table(("name", "value"), [(name, f"{value:,.0f}") for name, value in sizes.items()])


def _print_origin(run: Overview) -> None:
    """Print where the run comes from, and its hyperparameters."""
    from smdebug.runs.origins import in_words, value_in_words

    origin = run.origin
    if origin is None:
        return
    for name, text in in_words(origin):
        first, *rest = wrapped(escaped(text), indent=_LABEL)
        print_line(faint(f"{name:<{_LABEL}}") + first.lstrip())
        for line in rest:
            print_line(line)
    if origin.config:
        print_heading("Configuration")
        print_table(
            ("name", "value"),
            [(name, value_in_words(value)) for name, value in origin.config.items()],
            limit=_MOST_SETTINGS,
        )
        if len(origin.config) > _MOST_SETTINGS:
            print_line(faint("--json shows all of them"))


def _row(tensor: TensorOverview) -> tuple[Any, ...]:
    latest = tensor.latest
    if latest is None:
        return (
            tensor.name,
            tensor.steps,
            None,
            ", ".join(tensor.saved),
            size(tensor.bytes),
            *[None] * 5,
        )
    kind = latest.dtype or ", ".join(tensor.saved)
    return (
        tensor.name,
        tensor.steps,
        latest.shape,
        kind,
        size(tensor.bytes),
        latest.min,
        latest.max,
        latest.mean,
        latest.std,
        latest.non_finite or None,
    )
