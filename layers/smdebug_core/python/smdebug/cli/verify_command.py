"""`smdebug verify`: every checksum and index entry of a run."""

from __future__ import annotations

import click

from smdebug.cli import outcomes
from smdebug.cli.completing import complete_place
from smdebug.cli.telling import (
    bad,
    faint,
    good,
    json_option,
    plural,
    progress,
    say,
    size,
    tell_json,
)


@click.command("verify")
@click.argument("path", shell_complete=complete_place)
@click.option("--quick", is_flag=True, help="Do not read the records, look at sizes alone.")
@json_option
def command(path: str, quick: bool, as_json: bool) -> int:
    """Hold every checksum and every index entry of the run at PATH against the bytes that are there.

    \b
    Examples:
      smdebug verify ./my-run
      smdebug verify s3://bucket/my-run --quick
      smdebug verify ./my-run --json | jq '.problems'

    Ends with 0 if the run is sound, and with 1 if something is damaged or missing.
    """
    from smdebug.runs.verifying import verify

    found = verify(path, quick=quick, progress=progress("looking at index files"))
    if as_json:
        tell_json(found.to_dict())
        return outcomes.WELL if found.is_sound else outcomes.FOUND
    for problem in found.problems:
        say(bad("damaged  ") + str(problem))
    for note in found.notes:
        say(faint(f"note     {note}"))
    how = "their sizes alone" if quick else _how(found.records, found.checksummed)
    say(
        f"{plural(found.index_files, 'index file')}, {plural(found.event_files, 'event file')}, "
        f"{plural(found.records, 'record')}, {size(found.bytes)}; {how}"
    )
    if found.is_sound:
        say(good("The run is sound."))
        return outcomes.WELL
    say(bad(f"{plural(len(found.problems), 'problem')} found."))
    return outcomes.FOUND


def _how(records: int, checksummed: int) -> str:
    if checksummed == records:
        return "each was compared with its own CRC32C"
    old = "the old library wrote no checksum of what a record holds"
    if not checksummed:
        return f"their frames were checked, not their content: {old}"
    return f"{checksummed:,} of them were compared with their own CRC32C: {old}"
