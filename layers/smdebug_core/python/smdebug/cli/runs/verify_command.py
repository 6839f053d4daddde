"""`smdebug verify`: check every checksum and index entry of a run."""

from __future__ import annotations

import click

from smdebug.amounts import counted, size
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.answers.progress import progress
from smdebug.cli.arguments.completers import complete_place


@click.command("verify")
@click.argument("path", shell_complete=complete_place)
@click.option("--quick", is_flag=True, help="Check only sizes, without reading records.")
@output_options
def command(path: str, quick: bool, as_json: bool) -> int:
    """Check every checksum and index entry of the run at PATH against the stored bytes.

    \b
    Examples:
      smdebug verify ./my-run
      smdebug verify s3://bucket/my-run --quick
      smdebug verify ./my-run --json | jq '.problems'

    Exits with 0 if the run is sound, with 1 if something is damaged or missing, and with 3 if there is
    no run.
    """
    from smdebug.runs.verifying import verify

    found = verify(path, quick=quick, progress=progress("checking index files"))
    if as_json:
        print_json(found.to_dict())
        return exit_codes.PASSED if found.is_sound else exit_codes.FOUND
    for problem in found.problems:
        print_line(bad("damaged  ") + str(problem))
    for note in found.notes:
        print_line(faint(f"note     {note}"))
    if len(found.attempts) > 1:
        for attempt in found.attempts:
            print_line(f"checked  {attempt}")
    how = "only sizes were checked" if quick else _how(found.records, found.checksummed)
    print_line(
        f"{counted(found.index_files, 'index file')}, {counted(found.event_files, 'event file')}, "
        f"{counted(found.records, 'record')}, {size(found.bytes)}; {how}"
    )
    if found.is_sound:
        print_line(good("The run is sound."))
        return exit_codes.PASSED
    print_line(bad(f"{counted(len(found.problems), 'problem')} found."))
    return exit_codes.FOUND


def _how(records: int, checksummed: int) -> str:
    if checksummed == records:
        return "each was compared with its own CRC32C"
    old = "the old library wrote no checksum of the content"
    if not checksummed:
        return f"only the frames were checked: {old}"
    return f"{checksummed:,} of them were compared with their own CRC32C: {old}"
