"""`smdebug tag`: change the tags, the note, the group and the pin of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from smdebug.cli.answers.colours import faint, strong
from smdebug.cli.answers.output import output_options, print_json, print_line
from smdebug.cli.arguments.completers import complete_folder
from smdebug.plain_text import escaped

if TYPE_CHECKING:
    from smdebug.runs.requests.annotating import Annotated


@click.command("tag")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_folder)
@click.option("--add", multiple=True, metavar="TAG", help="Add a tag; can be repeated.")
@click.option("--remove", multiple=True, metavar="TAG", help="Remove a tag; can be repeated.")
@click.option("--note", metavar="TEXT", help='Replace the note; "" removes it.')
@click.option("--group", metavar="NAME", help='Put the runs into a group; "" takes them out.')
@click.option("--pin/--unpin", "pinned", default=None, help="Pin the runs as baselines, or no longer.")
@output_options
def command(
    runs: tuple[str, ...],
    add: tuple[str, ...],
    remove: tuple[str, ...],
    note: str | None,
    group: str | None,
    pinned: bool | None,
    as_json: bool,
) -> None:
    """Change the tags, the note, the group and the pin of runs, or show them.

    RUN is a folder or s3://bucket/prefix. What is written is kept beside the run, in its annotations.json;
    the files of the training stay as they are. Without an option it is shown.

    \b
    Examples:
      smdebug tag ./my-run --add paper --remove draft
      smdebug tag runs/* --group "learning rates"
      smdebug tag s3://bucket/my-run --note "the one to beat" --pin
      smdebug runs ./runs --where tag=paper --columns tags,group,note

    Exits with 0, and with 3 if a run cannot be read or written. Runs named before it are changed then.
    """
    from smdebug.runs.opening import open_run
    from smdebug.runs.requests.annotating import annotate, annotations_of

    changes: dict[str, Any] = {}
    if note is not None:
        changes["note"] = note
    if group is not None:
        changes["group"] = group
    if pinned is not None:
        changes["pinned"] = pinned
    answers = []
    for place in runs:
        storage = open_run(place).storage
        found = annotations_of(storage)
        if add or remove:
            kept = [tag for tag in found.tags if tag not in remove]
            changes["tags"] = list(dict.fromkeys([*kept, *add]))
        if changes:
            found = annotate(storage, changes, found.version)
        if as_json:
            answers.append({"run": storage.location, **_plain(found)})
        else:
            _print(place, found)
    if as_json:
        print_json(answers)


def _plain(found: Annotated) -> dict[str, Any]:
    return {"tags": list(found.tags), "note": found.note, "group": found.group, "pinned": found.pinned}


def _print(place: str, found: Annotated) -> None:
    print_line(strong(escaped(place)) + (faint("  pinned") if found.pinned else ""))
    for name, text in (("tags", ", ".join(found.tags)), ("group", found.group), ("note", found.note)):
        print_line(f"  {faint(f'{name:<6}')} {escaped(text) if text else '–'}")
