"""`smdebug zoom`: make a training in progress save whole tensors."""

from __future__ import annotations

import click

from smdebug.amounts import counted
from smdebug.cli.answers.colours import faint
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.arguments.completers import complete_folder, complete_tensor
from smdebug.cli.arguments.service_options import stack_option, watched_run
from smdebug.files.zoom_request import MOST_STEPS, STEPS
from smdebug.plain_text import did_you_mean


@click.command("zoom")
@click.argument("run", shell_complete=complete_folder)
@click.option(
    "--tensor",
    "patterns",
    multiple=True,
    required=True,
    metavar="REGEX",
    shell_complete=complete_tensor,
    help="Save the tensors whose names match; can be repeated.",
)
@click.option(
    "--steps",
    type=click.IntRange(1, MOST_STEPS),
    default=STEPS,
    show_default=True,
    metavar="N",
    help="Save them at that many consecutive steps of training.",
)
@click.option(
    "--worker",
    "workers",
    multiple=True,
    metavar="NAME",
    help="Save them on this worker instead of the first one; can be repeated.",
)
@click.option("--reason", default="", help="Give this reason, for the log of the training.")
@stack_option
@output_options
def command(
    run: str,
    patterns: tuple[str, ...],
    steps: int,
    workers: tuple[str, ...],
    reason: str,
    stack: str | None,
    as_json: bool,
) -> None:
    """Make the training of RUN save whole tensors for its next steps.

    RUN is a run in progress: a folder or S3 prefix, or with --stack a run of that deployed debugger. The
    training looks for requests at saved steps, at most every 10 seconds. It saves at most 64 MB a step,
    and logs what it leaves out.

    \b
    Examples:
      smdebug zoom ./my-run --tensor fc1
      smdebug zoom s3://bucket/my-run --tensor '^gradient/' --steps 50
      smdebug zoom resnet-50 --stack smdebug --tensor layer4 --worker worker_3

    Exits with 0 if the request was written, and with 3 if the run has ended or cannot be reached.
    """
    from smdebug.runs.requests.zooming import request_zoom

    place = run if stack is None else watched_run(stack, run).location
    requested = request_zoom(place, patterns, steps=steps, reason=reason, workers=workers)
    if as_json:
        print_json(
            {
                "run": requested.location,
                "tensors": list(patterns),
                "steps": steps,
                "workers": list(workers),
                "matching": list(requested.matching),
                "unmatched": list(requested.unmatched),
            }
        )
        return
    names = requested.matching
    what = counted(len(names), "known tensor")
    print_line(f"zoom requested: {requested.location} saves {what} whole for {counted(steps, 'step')}")
    if names:
        print_line(faint(_listed(names)))
    if not requested.unmatched:
        return
    meant = "".join(did_you_mean(pattern, requested.known) for pattern in requested.unmatched)
    listed = "" if meant else f" {requested.location} has: {_listed(requested.known)}"
    print_line(f"no tensor seen so far matches {', '.join(requested.unmatched)}.{meant}{listed}")


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
