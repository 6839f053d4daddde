"""`smdebug migrate`: what changes in code written for SageMaker Debugger, line by line."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smdebug.amounts import counted
from smdebug.cli import exit_codes
from smdebug.cli.answers.colours import bad, faint, good
from smdebug.cli.answers.output import output_options, print_heading, print_json, print_line
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.sagemaker.new_files import (
    configuration_warnings,
    new_files_options,
    write_new_files,
)
from smdebug.secrets.texts import redacted

if TYPE_CHECKING:
    from smdebug.migrating import Conversion, Finding, Scan


@click.command("migrate")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=complete_place)
@new_files_options("Write the converted configurations to this folder.")
@output_options
def command(paths: tuple[str, ...], output: str, force: bool, as_json: bool) -> int:
    """Report what changes in code written for SageMaker Debugger; no code is run.

    PATH is a training script, a notebook, a SageMaker estimator's definition, or a folder of these. Each
    line that uses smdebug, tornasole or SageMaker's debugger is reported: it works unchanged, changes, or
    is known only when the code runs. Configurations are written as debughookconfig.json and rules.json.

    \b
    Examples:
      smdebug migrate train.py
      smdebug migrate notebooks/ launch.py -o config/ --json

    Exits with 0 if nothing has to be changed, with 1 if something has, and with 2 if a file cannot be read.
    """
    from smdebug.migrating import scan

    places = [Path(path).expanduser() for path in paths]
    if missing := [str(place) for place in places if not place.exists()]:
        raise click.UsageError(f"{', '.join(missing)} does not exist")
    result = scan(places)
    folder = Path(output).expanduser()
    several = len(result.conversions) > 1
    written = {
        conversion.name: {
            name: (folder / conversion.name if several else folder) / name for name in conversion.files
        }
        for conversion in result.conversions
    }
    write_new_files(
        {
            written[conversion.name][name]: text
            for conversion in result.conversions
            for name, text in conversion.files.items()
        },
        force=force,
    )
    if as_json:
        print_json(_summary(result, written))
    else:
        _print(result, written)
    return _exit_code(result)


def _exit_code(result: Scan) -> int:
    from smdebug.migrating import Verdict

    if result.count(Verdict.UNREADABLE):
        return exit_codes.USAGE_ERROR
    if result.count(Verdict.CHANGES) or result.count(Verdict.UNCLEAR):
        return exit_codes.FOUND
    return exit_codes.PASSED


def _summary(result: Scan, written: dict[str, dict[str, Path]]) -> dict[str, Any]:
    from smdebug.migrating import Verdict

    return {
        "files": list(result.files),
        "counts": {verdict.value: result.count(verdict) for verdict in Verdict},
        "findings": [_finding(finding) for finding in result.findings],
        "conversions": [
            {
                "file": conversion.place.file,
                "cell": conversion.place.cell,
                "line": conversion.place.line,
                "written": list(map(str, written[conversion.name].values())),
                "notes": _notes(conversion),
            }
            for conversion in result.conversions
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "file": finding.place.file,
        "cell": finding.place.cell,
        "line": finding.place.line,
        "verdict": finding.verdict.value,
        "code": redacted(finding.code),
        "message": redacted(finding.message),
        "replacement": finding.replacement,
    }


def _notes(conversion: Conversion) -> list[str]:
    return [*conversion.notes, *configuration_warnings(conversion.files)]


def _print(result: Scan, written: dict[str, dict[str, Path]]) -> None:
    from smdebug.migrating import Verdict

    for file, findings in groupby(result.findings, key=lambda finding: finding.place.file):
        print_line(file)
        for finding in findings:
            _print_finding(finding)
    for conversion in result.conversions:
        print_heading(f"From {conversion.place}")
        for path in written[conversion.name].values():
            print_line(f"wrote {path}")
        for note in _notes(conversion):
            print_line(f"note: {note}")
    if result.findings:
        print_line()
    counts = ", ".join(f"{result.count(verdict)} {_COUNTED[verdict.value]}" for verdict in Verdict)
    print_line(f"{counted(len(result.files), 'file')}: {counts}.")


_COUNTED = {
    "works": "unchanged",
    "changes": "to change",
    "unclear": "to check",
    "unreadable": "not readable",
}


def _print_finding(finding: Finding) -> None:
    marks = {
        "works": good("✓"),
        "changes": bad("→"),
        "unclear": bad("?"),
        "unreadable": bad("✗"),
    }
    cell = f"[{finding.place.cell}] " if finding.place.cell is not None else ""
    print_line(f"  {marks[finding.verdict.value]} {cell}{finding.place.line:>4}  {redacted(finding.code)}")
    for text in filter(None, (finding.message, finding.replacement)):
        print_line(faint(f"            {redacted(text)}"))
