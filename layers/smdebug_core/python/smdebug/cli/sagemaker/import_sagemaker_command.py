"""`smdebug import-sagemaker`: convert a SageMaker job's debugger configuration."""

from __future__ import annotations

from pathlib import Path

import click

from smdebug.cli.answers.output import output_options, print_json, print_line, print_note
from smdebug.cli.arguments.completers import complete_place
from smdebug.cli.arguments.inputs import read_file
from smdebug.cli.sagemaker.new_files import (
    configuration_warnings,
    new_files_options,
    write_new_files,
)


@click.command("import-sagemaker")
@click.argument("job", shell_complete=complete_place)
@new_files_options("Write to this folder.")
@output_options
def command(job: str, output: str, force: bool, as_json: bool) -> None:
    """Convert a SageMaker training job's DebugHookConfig and DebugRuleConfigurations to files.

    JOB is a file with the output of describe_training_job or the input of create_training_job, or the name
    of a job in this account. debughookconfig.json configures the hook; rules.json goes beside the run.

    \b
    Examples:
      smdebug import-sagemaker job.json
      smdebug import-sagemaker resnet-2023-05-01-12-00-00-000 -o config/

    Exits with 0 if the files were written, with 2 if JOB describes no job, and with 3 if AWS cannot be
    reached.
    """
    from smdebug.service.training_job import (
        HOOK_FILE,
        describe_training_job,
        import_training_job,
        read_training_job,
    )

    file = Path(job).expanduser()
    if file.exists() or job.endswith(".json") or "/" in job:
        description = read_training_job(read_file(job), file=job)
    else:
        description = describe_training_job(job)
    imported = import_training_job(description, name=file.stem)
    notes = [*imported.notes, *configuration_warnings(imported.files)]
    folder = Path(output).expanduser()
    places = {name: folder / name for name in imported.files}
    write_new_files({places[name]: text for name, text in imported.files.items()}, force=force)
    if as_json:
        print_json(
            {
                "job": imported.job,
                "files": [str(place) for place in places.values()],
                "rules": list(imported.rules),
                "notes": notes,
            }
        )
        return
    for note in notes:
        print_note(note)
    for place in places.values():
        print_line(f"wrote {place}")
    if HOOK_FILE in places:
        print_line()
        print_line(f"export SMDEBUG_CONFIG_FILE_PATH={places[HOOK_FILE]}   # before the training")
    if imported.rules:
        print_line(f"smdebug attach RUN {folder / 'rules.json'}   # or copy it beside the run")
