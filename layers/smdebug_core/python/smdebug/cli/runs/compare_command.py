"""`smdebug compare`: show where two runs diverge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import counted, number
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good, strong
from smdebug.cli.answers.output import (
    output_options,
    print_heading,
    print_json,
    print_line,
    print_table,
    wrapped,
)
from smdebug.cli.answers.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.answers.progress import progress
from smdebug.cli.arguments.choice_options import tensor_options
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import open_path

if TYPE_CHECKING:
    from smdebug.runs.comparing import Comparison, Difference

_MOST_SETTINGS = 30
_MOST_TENSORS = 10


@click.command("compare")
@click.argument("first", metavar="ONE", shell_complete=complete_place)
@click.argument("other", shell_complete=complete_place)
@click.option(
    "--rtol",
    type=float,
    help="Set the relative tolerance (default: 1e-5; 1e-4 for measured statistics).",
)
@click.option("--atol", type=float, default=1e-8, show_default=True, help="Set the absolute tolerance.")
@tensor_options
@click.option("--nan-differs", is_flag=True, help="Treat NaN as different from NaN.")
@output_options
def command(
    first: str,
    other: str,
    rtol: float | None,
    atol: float,
    regexes: tuple[str, ...],
    collection: str | None,
    nan_differs: bool,
    as_json: bool,
) -> int:
    """Show how the configurations of ONE and OTHER differ, and at which step and tensor the runs diverge.

    Values are compared with numpy.allclose, at the steps that both runs saved. Of tensors that were measured,
    the statistics min, max, mean, abs_mean and rms are compared, as on the page.

    \b
    Examples:
      smdebug compare ./before ./after
      smdebug compare ./before ./after --collection weights --rtol 1e-3
      smdebug compare s3://bucket/main ./branch --json

    Exits with 0 if the runs are the same, with 1 if they differ, and with 3 if part could not be read.
    """
    from smdebug.runs.comparing import compare
    from smdebug.runs.tensors import stored_names

    if regexes and collection:
        raise click.UsageError("Use either --tensors or --collection, not both")
    runs = [open_path(first), open_path(other)]
    chosen: Any = {"regex": list(regexes) or None, "collection": collection}
    found = compare(
        *runs,
        rtol=rtol,
        atol=atol,
        equal_nan=not nan_differs,
        **chosen,
        progress=progress("comparing"),
    )
    named = [*runs[0].tensor_names(**chosen), *runs[0].measured_tensors(**chosen)]
    files = stored_names(runs[0], named)
    gaps = [gap for run in runs for gap in warn_of_unread_files(run, tensors=files)]
    if as_json:
        print_json({**found.to_dict(), "left_out": gaps})
    else:
        _print(found)
    return code_despite(gaps, exit_codes.PASSED if found.is_same else exit_codes.FOUND)


def _print_config(found: Comparison) -> None:
    from smdebug.runs.origins import value_in_words

    if not found.config:
        return
    print_line(strong("Configuration"))
    print_table(
        ("", found.path, found.other),
        [
            (difference.name, value_in_words(difference.first), value_in_words(difference.other))
            for difference in found.config[:_MOST_SETTINGS]
        ],
    )
    left = len(found.config) - _MOST_SETTINGS
    if left > 0:
        print_line(faint(f"… and {left} more; --json shows all"))
    print_line()


def _print_losses(found: Comparison) -> None:
    from smdebug.runs.training_loss import loss_in_words

    paths = found.path, found.other
    names = [path.rstrip("/").rpartition("/")[2] for path in paths]
    known = [
        (name, loss.name, loss_in_words(loss))
        for name, loss in zip(paths if names[0] == names[1] else names, found.losses, strict=True)
        if loss is not None
    ]
    if known:
        print_heading("Loss of training")
        print_table(("run", "name", "loss"), known)


def _print(found: Comparison) -> None:
    _print_config(found)
    if found.first is not None:
        for line in wrapped(f"✗ The runs diverge at {found.first}"):
            print_line(line.replace("✗", bad("✗"), 1) if line.startswith("✗") else f"  {line}")
        earlier = found.differences[0]
        if earlier.step < found.first.step:
            print_line(f"  Before that, a saved value differs at {earlier}")
    elif found.is_same:
        print_line(
            good("✓ ")
            + f"The runs are the same: {counted(found.compared, 'value')} at {counted(found.steps, 'step')}"
        )
    elif not found.steps:
        print_line(bad("✗ ") + "The runs have no step in common")
    elif not found.compared:
        print_line(bad("✗ ") + "The runs have no value in common")
    else:
        print_line(bad("✗ ") + f"The common values are the same: {counted(found.compared, 'value')}")
    for run, steps in ((found.path, found.only_in_one), (found.other, found.only_in_other)):
        if steps:
            shown = ", ".join(map(str, steps[:10])) + ("…" if len(steps) > 10 else "")
            print_line(f"Only {run} has {counted(len(steps), 'step')}: {shown}")
    tensors = (
        (found.path, found.tensors_only_in_one),
        (found.other, found.tensors_only_in_other),
    )
    for run, names in tensors:
        if names:
            shown = ", ".join(names[:5]) + ("…" if len(names) > 5 else "")
            print_line(f"Only {run} has {counted(len(names), 'tensor')}: {shown}")
    _print_losses(found)
    if found.collections:
        print_heading("Collections")
        print_table(
            (
                "collection",
                "tensors",
                "different",
                "values",
                "different",
                "since step",
                "largest |a-b|",
            ),
            [
                (
                    name,
                    len(collection.tensors),
                    len(collection.tensors_different),
                    collection.compared,
                    collection.different,
                    collection.first_step,
                    number(collection.largest) if collection.different else None,
                )
                for name, collection in found.collections.items()
            ],
        )
    by_tensor: dict[tuple[str, str], Difference] = {}
    for difference in found.differences:
        by_tensor.setdefault((difference.tensor, difference.worker), difference)
    if len(by_tensor) > 1:
        print_heading("First difference of each tensor")
        firsts = list(by_tensor.values())
        print_table(
            ("step", "tensor", "worker", "difference"),
            [
                (difference.step, difference.tensor, difference.worker, difference.why)
                for difference in firsts
            ],
            limit=_MOST_TENSORS,
        )
