"""`smdebug compare`: show where two runs diverge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from smdebug.amounts import counted, number
from smdebug.cli import exit_codes
from smdebug.cli.choice_options import tensor_options
from smdebug.cli.colours import bad, faint, good, strong
from smdebug.cli.completers import complete_place
from smdebug.cli.inputs import open_path
from smdebug.cli.output import (
    output_options,
    print_heading,
    print_json,
    print_line,
    print_table,
    wrapped,
)
from smdebug.cli.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.progress import progress

if TYPE_CHECKING:
    from smdebug.runs.comparing import Comparison, Difference

_MOST_SETTINGS = 30
_MOST_TENSORS = 10


@click.command("compare")
@click.argument("first", metavar="ONE", shell_complete=complete_place)
@click.argument("other", shell_complete=complete_place)
@click.option(
    "--rtol", type=float, default=1e-5, show_default=True, help="Set the relative tolerance."
)
@click.option(
    "--atol", type=float, default=1e-8, show_default=True, help="Set the absolute tolerance."
)
@tensor_options
@click.option("--nan-differs", is_flag=True, help="Treat NaN as different from NaN.")
@output_options
def command(
    first: str,
    other: str,
    rtol: float,
    atol: float,
    regexes: tuple[str, ...],
    collection: str | None,
    nan_differs: bool,
    as_json: bool,
) -> int:
    """Show how the configurations of ONE and OTHER differ, and at which step and tensor the runs diverge.

    Values are compared with numpy.allclose, at the steps that both runs saved.

    \b
    Examples:
      smdebug compare ./before ./after
      smdebug compare ./before ./after --collection weights --rtol 1e-3
      smdebug compare s3://bucket/main ./branch --json

    Exits with 0 if the runs are the same, with 1 if they differ, and with 3 if part could not be read.
    """
    from smdebug.runs.comparing import compare

    if regexes and collection:
        raise click.UsageError("Use either --tensors or --collection, not both")
    runs = [open_path(first), open_path(other)]
    found = compare(
        *runs,
        rtol=rtol,
        atol=atol,
        equal_nan=not nan_differs,
        regex=list(regexes) or None,
        collection=collection,
        progress=progress("comparing"),
    )
    chosen = runs[0].tensor_names(regex=list(regexes) or None, collection=collection)
    gaps = [gap for run in runs for gap in warn_of_unread_files(run, tensors=chosen)]
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


def _print(found: Comparison) -> None:
    _print_config(found)
    if found.first is not None:
        for line in wrapped(f"✗ The runs diverge at {found.first}"):
            print_line(line.replace("✗", bad("✗"), 1) if line.startswith("✗") else f"  {line}")
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
        print_line(
            bad("✗ ") + f"The common values are the same: {counted(found.compared, 'value')}"
        )
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
                    *(name, len(collection.tensors), len(collection.tensors_different)),
                    *(collection.compared, collection.different, collection.first_step),
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
