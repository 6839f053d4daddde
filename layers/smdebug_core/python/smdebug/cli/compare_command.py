"""`smdebug compare`: where two runs part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from smdebug.cli import outcomes
from smdebug.cli.completing import complete_place
from smdebug.cli.gaps import code_over, noted_gaps
from smdebug.cli.telling import (
    bad,
    faint,
    good,
    heading,
    json_option,
    number,
    opened,
    plural,
    progress,
    say,
    table,
    tell_json,
)

if TYPE_CHECKING:
    from smdebug.runs.comparing import Comparison


@click.command("compare")
@click.argument("one", shell_complete=complete_place)
@click.argument("other", shell_complete=complete_place)
@click.option("--rtol", type=float, default=1e-5, show_default=True, help="Relative tolerance.")
@click.option("--atol", type=float, default=1e-8, show_default=True, help="Absolute tolerance.")
@click.option("--tensors", "regexes", multiple=True, metavar="REGEX", help="Tensors that match.")
@click.option("--collection", metavar="NAME", help="The tensors of a collection.")
@click.option("--nan-differs", is_flag=True, help="NaN is not the same as NaN.")
@json_option
def command(
    one: str,
    other: str,
    rtol: float,
    atol: float,
    regexes: tuple[str, ...],
    collection: str | None,
    nan_differs: bool,
    as_json: bool,
) -> int:
    """Tell at which step and tensor the runs ONE and OTHER part, and by how much.

    Values are the same if numpy.allclose says so, at the steps that both runs have saved.

    \b
    Examples:
      smdebug compare ./before ./after
      smdebug compare ./before ./after --collection weights --rtol 1e-3
      smdebug compare s3://bucket/main ./branch --json

    Ends with 0 if the runs are the same, with 1 if they are not, and with 3 if only a part could be read.
    """
    from smdebug.runs.comparing import compare

    if regexes and collection:
        raise click.UsageError("Choose by --tensors or by --collection, not by both")
    runs = [opened(one), opened(other)]
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
    gaps = [gap for run in runs for gap in noted_gaps(run, tensors=chosen)]
    if as_json:
        tell_json({**found.to_dict(), "left_out": gaps})
    else:
        _tell(found)
    return code_over(gaps, outcomes.WELL if found.is_same else outcomes.FOUND)


def _tell(found: Comparison) -> None:
    if found.first is not None:
        say(bad("✗ ") + f"they part at {found.first}")
    elif found.is_same:
        say(
            good("✓ ")
            + f"the same: {plural(found.compared, 'value')} at {plural(found.steps, 'step')}"
        )
    elif not found.steps:
        say(bad("✗ ") + "they have no step in common")
    else:
        say(bad("✗ ") + f"what both have is the same: {plural(found.compared, 'value')}")
    for told, steps in ((found.one, found.only_in_one), (found.other, found.only_in_other)):
        if steps:
            shown = ", ".join(map(str, steps[:10])) + ("…" if len(steps) > 10 else "")
            say(f"only {told} has {plural(len(steps), 'step')}: {shown}")
    tensors = (
        (found.one, found.tensors_only_in_one),
        (found.other, found.tensors_only_in_other),
    )
    for told, names in tensors:
        if names:
            shown = ", ".join(names[:5]) + ("…" if len(names) > 5 else "")
            say(f"only {told} has {plural(len(names), 'tensor')}: {shown}")
    if found.collections:
        heading("Collections")
        table(
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
                    *(name, len(one.tensors), len(one.tensors_different)),
                    *(one.compared, one.different, one.first_step),
                    number(one.largest) if one.different else None,
                )
                for name, one in found.collections.items()
            ],
        )
    if len(found.differences) > 1:
        heading("Differences")
        for one in found.differences[:10]:
            say(f"  {one}")
        if found.number_different > 10:
            say(
                faint(
                    f"  … and {found.number_different - 10} more; --json tells a thousand of them"
                )
            )
