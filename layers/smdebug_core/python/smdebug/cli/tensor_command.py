"""`smdebug tensor`: show one tensor over the steps of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from smdebug.cli.colours import faint, strong
from smdebug.cli.completers import complete_place, complete_tensor, complete_worker
from smdebug.cli.inputs import attempt_option, open_path
from smdebug.cli.output import output_options, print_json, print_line, print_table
from smdebug.cli.partial_reads import warn_of_unread_files
from smdebug.cli.progress import progress

if TYPE_CHECKING:
    from smdebug.mode_keys import ModeKeys
    from smdebug.runs.left_out import LeftOut
    from smdebug.runs.statistics import TensorSummary
    from smdebug.trials.tensor import Tensor


@click.command("tensor")
@click.argument("path", shell_complete=complete_place)
@click.argument("name", shell_complete=complete_tensor)
@click.option("--step", type=int, metavar="N", help="Show the value at one step.")
@click.option(
    "--mode",
    type=click.Choice(["train", "eval", "predict", "global"], case_sensitive=False),
    default="global",
    show_default=True,
    help="Count steps in this mode.",
)
@click.option(
    "--worker",
    metavar="NAME",
    shell_complete=complete_worker,
    help="Select a worker (default: the first that saved the tensor).",
)
@click.option("--last", type=click.IntRange(1), metavar="N", help="Show only the last N steps.")
@attempt_option
@output_options
def command(
    path: str,
    name: str,
    step: int | None,
    mode: str,
    worker: str | None,
    last: int | None,
    attempt: int | None,
    as_json: bool,
) -> None:
    """Show the statistics of tensor NAME over the steps of the run at PATH, or its value at one step.

    \b
    Examples:
      smdebug tensor ./my-run gradient/fc
      smdebug tensor ./my-run gradient/fc --last 10
      smdebug tensor ./my-run loss --step 100
      smdebug tensor ./my-run loss --json | jq '.steps[-1].mean'

    Exits with 0, with 2 if the run has no such tensor, and with 3 if it cannot be read.
    """
    from smdebug.mode_keys import str_to_mode_keys

    trial = open_path(path, attempt)
    if not trial.has_tensor(name):
        warn_of_unread_files(trial)
        raise click.UsageError(_unknown_tensor(name, trial.tensor_names()))
    if worker is not None and worker not in trial.workers():
        known = ", ".join(trial.workers()[:8])
        raise click.UsageError(f"Worker {worker!r} has saved nothing in this run. Workers: {known}")
    gaps = warn_of_unread_files(trial, worker=worker, tensors={name})
    tensor = trial.tensor(name)
    its_mode = str_to_mode_keys(mode.upper())
    if step is None:
        _print_statistics(tensor, its_mode, worker, last, gaps, as_json)
    else:
        _print_value(tensor, step, its_mode, worker, as_json)


def _print_statistics(
    tensor: Tensor,
    mode: ModeKeys,
    worker: str | None,
    last: int | None,
    gaps: list[LeftOut],
    as_json: bool,
) -> None:
    from smdebug.runs.sparkline import sparkline

    steps = tensor.steps(mode)[-last if last else None :]
    rows = [
        (step, tensor.workers(step, mode), *_statistics_or_problem(tensor, step, mode, worker))
        for step in progress("reading values", len(steps))(steps)
    ]
    if as_json:
        lines: list[dict[str, Any]] = [
            {
                "step": step,
                "workers": workers,
                **(seen.to_dict() if seen else {}),
                **({"problem": problem} if problem else {}),
            }
            for step, workers, seen, problem in rows
        ]
        print_json({"tensor": tensor.name, "mode": mode.name, "steps": lines, "left_out": gaps})
        return
    print_line(strong(tensor.name))
    means = [seen.mean if seen.mean is not None else float("nan") for _, _, seen, _ in rows if seen]
    if len(means) > 1:
        print_line(f"mean {sparkline(means, 60)}")
    several = any(len(workers) > 1 for _, workers, *_ in rows)
    columns = ["step", *(["workers"] if several else []), "shape", "type"]
    print_table(
        (*columns, "min", "max", "mean", "std", "mean |x|", "zeros", "NaN", "infinite"),
        [
            (
                step,
                *([len(workers)] if several else []),
                *((seen.shape, seen.dtype) if seen else (None, problem or "shape only")),
                *((seen.minimum, seen.maximum, seen.mean, seen.std) if seen else (None,) * 4),
                *((seen.abs_mean, seen.zeros, seen.nan, seen.infinite) if seen else (None,) * 4),
            )
            for step, workers, seen, problem in rows
        ],
    )
    if not rows:
        print_line(faint(f"not saved at any step of mode {mode.name}"))


def _statistics_or_problem(
    tensor: Tensor, step: int, mode: ModeKeys, worker: str | None
) -> tuple[TensorSummary | None, str | None]:
    """Return the statistics of a step, or the problem that prevents reading them."""
    from smdebug.exceptions import DamagedFile, InvalidWorker, ObjectMissing
    from smdebug.runs.statistics import statistics_read

    try:
        return statistics_read(tensor, step, mode, worker), None
    except DamagedFile:
        return None, "damaged"
    except ObjectMissing:
        return None, "its event file is missing"
    except InvalidWorker:
        return None, f"not saved by {worker}"


def _print_value(
    tensor: Tensor, step: int, mode: ModeKeys, worker: str | None, as_json: bool
) -> None:
    import numpy as np

    from smdebug.exceptions import TensorUnavailableForStep
    from smdebug.runs.left_out import refuse_a_missing_file
    from smdebug.runs.statistics import statistics_of

    try:
        value = tensor.value(step, mode, worker)
    except TensorUnavailableForStep:
        refuse_a_missing_file(tensor, step, mode, worker)
        raise
    seen = statistics_of(value)
    if as_json:
        numbers = value.astype(np.float32) if value.dtype.name == "bfloat16" else value
        if numbers.dtype.kind == "c":
            numbers = np.stack([numbers.real, numbers.imag], axis=-1)
        payload = {"tensor": tensor.name, "step": step, "mode": mode.name}
        print_json({**payload, **seen.to_dict(), "value": numbers.tolist()})
        return
    print_line(f"{strong(tensor.name)} at step {step}, {seen.dtype} {value.shape}")
    with np.printoptions(linewidth=100, threshold=200, edgeitems=4):
        for line in str(value).splitlines():
            print_line(line)


def _unknown_tensor(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=3, cutoff=0.4)
    close = close or [item for item in known if name.lower() in item.lower()][:3]
    hint = f"Did you mean {' or '.join(close)}?" if close else _known_in_words(known)
    return f"The run has no tensor {name!r}. {hint}"


def _known_in_words(known: list[str]) -> str:
    return f"Tensors: {', '.join(known[:8])}." if known else "It has no tensors that can be read."
