"""`smdebug plot`: draw distributions and curves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import size
from smdebug.cli import exit_codes
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.partial_reads import code_despite, warn_of_unread_files
from smdebug.cli.answers.progress import Progress, waiting
from smdebug.cli.arguments.completers import complete_place, complete_plotted, complete_worker
from smdebug.cli.arguments.inputs import attempt_option, in_an_existing_folder, open_path

if TYPE_CHECKING:
    from smdebug.plots import Picture
    from smdebug.plots.values import Values


@click.command("plot")
@click.argument("run", shell_complete=complete_place)
@click.option(
    "--tensor",
    "regexes",
    multiple=True,
    required=True,
    metavar="REGEX",
    shell_complete=complete_plotted,
    help="Select tensors by name; can be repeated.",
)
@click.option(
    "--kind",
    type=click.Choice(["histogram", "ridge", "line", "heatmap", "variance", "dead-units"]),
    help="Draw distributions (histogram, ridge, heatmap), a statistic (line), the variance across layers, "
    "or the share of dead units. Default: line for scalars such as a loss, ridge for other tensors.",
)
@click.option(
    "-o",
    "--output",
    callback=in_an_existing_folder,
    shell_complete=complete_place,
    required=True,
    metavar="FILE",
    help="Write to this file: .png, .svg, .pdf, .html; .gif is animated over steps.",
)
@click.option(
    "--statistic",
    default="mean",
    show_default=True,
    help="line: mean, abs_mean, rms, std, min, max, l2.",
)
@click.option(
    "--saturated-at",
    type=float,
    metavar="NUMBER",
    help="dead-units: also count units that reach this value, such as 0.99 for sigmoid and tanh.",
)
@click.option(
    "--with",
    "other",
    shell_complete=complete_place,
    metavar="PATH",
    help="Draw another run beside it.",
)
@click.option(
    "--worker",
    metavar="NAME",
    shell_complete=complete_worker,
    help="Select a worker (default: the first that saved the tensor).",
)
@attempt_option
@output_options
def command(
    run: str,
    regexes: tuple[str, ...],
    kind: str | None,
    output: str,
    statistic: str,
    saturated_at: float | None,
    other: str | None,
    worker: str | None,
    attempt: int | None,
    as_json: bool,
) -> int:
    """Draw the selected tensors of RUN.

    \b
    Examples:
      smdebug plot ./my-run --tensor '^gradient/' --kind ridge -o ridge.png
      smdebug plot ./my-run --tensor loss -o loss.svg
      smdebug plot ./my-run --tensor '^gradient' --kind histogram -o gradients.gif
      smdebug plot ./bad --with ./good --tensor '^grad' --kind variance -o v.png

    Exits with 0 if everything was drawn, and with 3 if part of the run could not be read.
    """
    from functools import partial
    from pathlib import Path

    from smdebug import plots
    from smdebug.plots.picture import form_of

    form = form_of(output)
    if form == "gif" and kind not in (None, "histogram"):
        raise click.UsageError("A .gif is an animation of histograms: use --kind histogram")
    if saturated_at is not None and kind != "dead-units":
        raise click.UsageError("--saturated-at requires --kind dead-units")
    runs = {"": open_path(run, attempt)}
    if other is not None:
        names = Path(run.rstrip("/")).name, Path(other.rstrip("/")).name
        if names[0] == names[1]:
            names = "one", "other"
        runs = {names[0]: runs[""], names[1]: open_path(other)}
    regex = list(regexes)
    where = runs if other is not None else runs[""]
    reading = Progress("reading", None)
    chosen: dict[str, Any] = {"worker": worker, "progress": reading.advance}
    if form == "gif":
        try:
            values = plots.values_of(where, regex, **chosen)
        finally:
            reading.clear()
        _animate(values, output)
    else:
        draw: dict[str, Callable[..., Picture]] = {
            "histogram": plots.histogram,
            "ridge": plots.ridge,
            "line": partial(plots.line, statistic=statistic),
            "heatmap": plots.heatmap,
            "variance": plots.variance_across_layers,
            "dead-units": partial(plots.dead_units, saturated_at=saturated_at),
        }
        try:
            kind = kind or ("line" if plots.are_scalars(where, regex, worker) else "ridge")
            picture = draw[kind](where, regex, **chosen)
        finally:
            reading.clear()
        with waiting("drawing"):
            picture.save(output)
    written = Path(output).expanduser().stat().st_size
    gaps = [
        gap
        for run in runs.values()
        for gap in warn_of_unread_files(run, worker=worker, tensors=run.tensor_names(regex=regex))
    ]
    if as_json:
        print_json({"output": output, "bytes": written, "left_out": gaps})
    else:
        print_line(f"{size(written)} written to {output}")
    return code_despite(gaps, exit_codes.PASSED)


def _animate(values: Values, output: str) -> None:
    from smdebug import plots
    from smdebug.plots.animation import MOST_FRAMES

    steps = {step for over_steps in values.values() for step in over_steps}
    drawing = Progress("drawing", min(len(steps), MOST_FRAMES))
    try:
        plots.create_interactive_matplotlib_histogram(values, output, progress=drawing.advance)
    finally:
        drawing.clear()
