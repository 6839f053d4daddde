"""`smdebug tensor`: show one tensor over the steps of a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from smdebug.cli.answers.colours import faint, strong
from smdebug.cli.answers.output import output_options, print_json, print_line, print_table
from smdebug.cli.answers.partial_reads import warn_of_unread_files
from smdebug.cli.answers.progress import progress
from smdebug.cli.arguments.completers import complete_place, complete_tensor, complete_worker
from smdebug.cli.arguments.inputs import attempt_option, open_path

if TYPE_CHECKING:
    from smdebug.mode_keys import ModeKeys
    from smdebug.runs.left_out import LeftOut
    from smdebug.runs.tensors import TensorAtStep
    from smdebug.trials.tensor import Tensor
    from smdebug.trials.trial import Trial

_SHOWN = ("min", "max", "mean", "abs_mean", "rms", "std", "zeros", "non_finite")
"""The statistics in the table; JSON has all of them."""
_COLUMNS = ("shape", "type", *_SHOWN)


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

    NAME is a tensor that was saved or measured, or a scalar that is kept at every step. Of a tensor that was
    measured, --step shows all statistics and a sample of the values.

    \b
    Examples:
      smdebug tensor ./my-run gradient/fc
      smdebug tensor ./my-run gradient/fc --last 10
      smdebug tensor ./my-run loss --step 100
      smdebug tensor ./my-run loss --json | jq '.steps[-1].mean'

    Exits with 0, with 2 if the run has no such tensor, and with 3 if it cannot be read.
    """
    from smdebug.mode_keys import str_to_mode_keys
    from smdebug.runs.tensors import every_name, stored_names

    trial = open_path(path, attempt)
    known = every_name(trial)
    if name not in known:
        warn_of_unread_files(trial)
        raise click.UsageError(_unknown_tensor(name, known))
    if worker is not None and worker not in trial.workers():
        workers = ", ".join(trial.workers()[:8])
        raise click.UsageError(f"Worker {worker!r} has saved nothing in this run. Workers: {workers}")
    gaps = warn_of_unread_files(trial, worker=worker, tensors=stored_names(trial, [name]))
    its_mode = str_to_mode_keys(mode.upper())
    if step is None:
        _print_statistics(trial, name, (its_mode, worker, last), gaps, as_json)
    else:
        _print_value(trial, name, (step, its_mode, worker), as_json)


def _print_statistics(
    trial: Trial,
    name: str,
    chosen: tuple[ModeKeys, str | None, int | None],
    gaps: list[LeftOut],
    as_json: bool,
) -> None:
    from smdebug.runs.sparkline import sparkline
    from smdebug.runs.tensors import tensor_over_steps
    from smdebug.runs.training_loss import loss_in_words, loss_name, loss_names, training_loss

    mode = chosen[0]
    rows = list(progress("reading values")(tensor_over_steps(trial, name, *chosen, wholes=True)))
    loss = training_loss(trial, name) if name in loss_names(trial) else None
    part = _part_measured(chosen, rows)
    if as_json:
        payload: dict[str, Any] = {"tensor": name, "mode": mode.name}
        if loss is not None:
            payload["loss"] = loss.to_dict()
        if part is not None:
            payload["part"] = part
        lines = [row.to_dict() for row in rows]
        print_json({**payload, "steps": lines, "left_out": gaps})
        return
    print_line(strong(name))
    if loss is not None:
        what = "loss of training" if name == loss_name(trial) else "loss"
        print_line(f"{what}: {loss_in_words(loss)}")
    parts = {row.part for row in rows if row.summary}
    alike = [row for row in rows if row.summary and (len(parts) < 2 or row.part)]  # no whole beside parts
    means = [math.nan if (mean := row.summary.mean) is None else mean for row in alike if row.summary]
    if len(means) > 1:
        print_line(f"mean {sparkline(means, 60)}")
    if rows and all(row.mode is not None for row in rows):
        print_table(
            ("step", "mode", "value"),
            [(row.step, row.mode, row.summary.mean if row.summary else None) for row in rows],
        )
    else:
        several = any(len(row.workers) > 1 for row in rows)
        print_table(
            ("step", *(["workers"] if several else []), *(["of"] if len(parts) > 1 else []), *_COLUMNS),
            [
                (
                    row.step,
                    *([len(row.workers)] if several else []),
                    *([row.part or "the whole"] if len(parts) > 1 else []),
                    *_cells_of(row),
                )
                for row in rows
            ],
        )
    if part is not None:
        which = "numbers of a part are" if len(parts) > 1 else "these are numbers"
        whose = f"{part['worker']}'s part, {part['part']}"
        print_line(faint(f"The tensor is sharded: {which} of {whose}, not of the whole."))
    if not rows:
        print_line(faint(f"not saved at any step of mode {mode.name}"))


def _part_measured(
    chosen: tuple[ModeKeys, str | None, int | None], rows: list[TensorAtStep]
) -> dict[str, str] | None:
    """Return of which part of a sharded tensor the last of these numbers are that are of no whole."""
    of_part = next((row for row in reversed(rows) if row.part and row.workers), None)
    if of_part is None or of_part.part is None:
        return None
    return {"worker": chosen[1] or of_part.workers[0], "part": of_part.part}


def _cells_of(row: TensorAtStep) -> tuple[Any, ...]:
    seen = row.summary
    if seen is None:
        return (None, row.problem or "shape only", *[None] * len(_SHOWN))
    return (seen.shape, seen.dtype, *(seen.of(statistic) for statistic in _SHOWN))


def _print_value(trial: Trial, name: str, at: tuple[int, ModeKeys, str | None], as_json: bool) -> None:
    import numpy as np

    from smdebug.exceptions import StepUnavailable, TensorUnavailableForStep
    from smdebug.runs.left_out import refuse_a_missing_file
    from smdebug.runs.statistics import statistics_of
    from smdebug.runs.tensors import scalar_at

    step, mode, worker = at
    scalar = scalar_at(trial, name, *at)
    if scalar is not None and scalar.summary is not None:
        if as_json:
            payload = {"tensor": name, "mode": mode.name, **scalar.to_dict()}
            print_json({**payload, "value": scalar.summary.mean})
        else:
            print_line(f"{strong(name)} at step {step}, {scalar.mode}")
            print_line(str(scalar.summary.mean))
        return
    tensor = trial.tensor(name)
    try:
        value = tensor.value(step, mode, worker)
    except (StepUnavailable, TensorUnavailableForStep) as error:
        refuse_a_missing_file(tensor, step, mode, worker)
        if not _print_measured(tensor, at, as_json):
            raise error
        return
    seen = statistics_of(value)
    if as_json:
        numbers = value.astype(np.float32) if value.dtype.name == "bfloat16" else value
        if numbers.dtype.kind == "c":
            numbers = np.stack([numbers.real, numbers.imag], axis=-1)
        payload = {"tensor": tensor.name, "step": step, "mode": mode.name}
        print_json({**payload, **seen.to_dict(), "value": numbers.tolist()})
        return
    print_line(f"{strong(tensor.name)} at step {step}, {seen.dtype} {value.shape}")
    _print_numbers(value)


def _print_measured(tensor: Tensor, at: tuple[int, ModeKeys, str | None], as_json: bool) -> bool:
    """Print what was measured of the tensor at a step, and its sample; return whether there is any."""
    from smdebug.exceptions import SMDebugError
    from smdebug.runs.statistics import QUANTILES, STATISTICS
    from smdebug.runs.tensors import statistics_and_part

    step, mode = at[:2]
    try:
        (seen, part), sample = statistics_and_part(tensor, *at, wholes=True), tensor.sample(*at)
    except SMDebugError:
        return False
    if seen is None:
        return False
    if as_json:
        payload = {"tensor": tensor.name, "step": step, "mode": mode.name}
        of_part = {} if part is None else {"part": part}
        print_json({**payload, **seen.to_dict(), **of_part, "sample": sample.tolist()})
        return True
    print_line(f"{strong(tensor.name)} at step {step}, {seen.dtype} {seen.shape}: measured, not saved")
    is_combined = bool(seen.count != seen.non_finite and not seen.quantiles)
    print_table(
        ("statistic", "value"),
        [(name, seen.of(name)) for name in STATISTICS if not (is_combined and name in QUANTILES)],
    )
    if part is not None:
        print_line(faint(f"The tensor is sharded: these are numbers of one worker's part, {part}."))
    if is_combined:
        print_line(faint("Combined from the parts of all workers, whose quantiles give none of the whole."))
    print_line(faint(f"a sample of {len(sample)} values{' of the first part' if is_combined else ''}:"))
    _print_numbers(sample)
    return True


def _print_numbers(value: Any) -> None:
    import numpy as np

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
