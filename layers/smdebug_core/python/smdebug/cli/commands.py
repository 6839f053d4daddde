"""The list of commands, and the handling of their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from smdebug.plain_text import did_you_mean
from smdebug.secrets.texts import redacted

try:
    import click
except ImportError:  # a layer, or a copy of the sources: the library without its dependencies
    sys.exit("The smdebug command needs click: pip install smdebug-serverless")

from smdebug.cli import exit_codes
from smdebug.cli.error_messages import ErrorMessage, message_for, message_for_usage
from smdebug.plain_text import escaped, escaped_in_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# In the order of the help.
COMMANDS = {
    "inspect": "Summarise a run",
    "tensor": "Show one tensor over the steps of a run",
    "evaluate": "Evaluate rules on a saved run",
    "watch": "Follow runs while they train",
    "ui": "Show runs in the browser while they train",
    "mcp": "Let an agent ask about runs, over the Model Context Protocol",
    "gate": "Say by an exit code whether a run may pass, for pipelines",
    "tag": "Change tags, note, group and pin of runs",
    "rules": "List the built-in rules and their parameters",
    "compare": "Show where two runs diverge",
    "verify": "Check every checksum and index entry of a run",
    "report": "Write a run as one page of HTML",
    "plot": "Draw distributions and curves",
    "export": "Export tensors to TensorBoard, safetensors, npz or parquet",
    "import": "Import what TensorBoard, W&B, MLflow and others have logged",
    "zoom": "Make a training save whole tensors",
    "runs": "List the runs of a folder, bucket or deployed debugger",
    "backtest": "Evaluate a rule on every run of a folder or bucket",
    "replay": "Evaluate a rule as it was deployed, at one step of a run",
    "status": "Show the rule status of a watched run",
    "findings": "List the findings of a watched run",
    "attach": "Add rules to a run",
    "detach": "Remove rules from a run",
    "stop": "Ask a training to stop",
    "logs": "Show what a rule logged on a run",
    "policy": "Print the smallest IAM policy for trainings",
    "import-sagemaker": "Convert a SageMaker job's debugger configuration",
    "migrate": "Show what changes in code for SageMaker Debugger, line by line",
    "run": "Run an unchanged training script with a hook",
    "demo": "Run the whole debugger on this machine",
    "local": "Run the application on this machine, for your own training",
    "doctor": "Check the installation and the AWS account",
    "completion": "Print the completion script for your shell",
}
# The room of each group's modules, and its commands: `watch` is `runs/watch_command.py`, loaded when called.
_GROUPS = {
    "Runs in a folder or bucket": (
        "runs",
        (
            "evaluate",
            "watch",
            "ui",
            "mcp",
            "runs",
            "tag",
            "gate",
            "backtest",
            "replay",
            "inspect",
            "tensor",
            "rules",
            "compare",
            "verify",
            "import",
        ),
    ),
    "A training in progress": ("runs", ("zoom",)),
    "Reports and exports": ("reports", ("report", "plot", "export")),
    "Deployed debugger": (
        "deployed",
        ("status", "findings", "attach", "detach", "stop", "logs", "policy"),
    ),
    "From SageMaker Debugger": ("sagemaker", ("migrate", "import-sagemaker")),
    "This machine": ("this_machine", ("run", "demo", "local", "doctor", "completion")),
}

_COMPLETION = "_SMDEBUG_COMPLETE"
_SHORT_HELP = """\
Usage: smdebug RUN              what is wrong with a run (folder or s3://…)
       smdebug COMMAND --help

  watch RUN…       follow runs while they train
  runs PLACE       list and search the runs of a folder or bucket
  inspect RUN      steps, hyperparameters, tensors
  compare A B      configuration and values of two runs
  report RUN       the run as one page of HTML
  run train.py     watch an unchanged script
  demo             run the whole debugger on this machine

smdebug --help lists all commands, smdebug doctor checks the installation."""
_EXAMPLES = """
\b
Examples:
  smdebug ./my-run
  smdebug inspect ./my-run
  smdebug evaluate s3://bucket/my-run --rule VanishingGradient
  smdebug report ./my-run -o report.html
  smdebug status resnet-50 --watch

\b
Exit codes:
  0    passed: nothing was found
  1    something was found: an issue, a difference, damage
  2    usage error
  3    a run, a stack or the account cannot be reached or read
  4    internal error: a bug in smdebug
  5-7  of `smdebug gate`: not checked, too old or stalled, not ended
  130  interrupted
"""


class Commands(click.Group):
    """Loads a command when it is called, so that help and completion are fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        room = next(room for room, names in _GROUPS.values() if cmd_name in names)
        module = import_module(f"smdebug.cli.{room}.{cmd_name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name not in COMMANDS and _is_a_place(name):
            return super().resolve_command(ctx, ["evaluate", "--short", *args])
        if name and not name.startswith("-") and name not in COMMANDS:
            hint = did_you_mean(name, COMMANDS)
            if not hint:
                raise click.UsageError(f"There is neither a run nor a command {name!r}.", ctx)
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if "/" in incomplete or incomplete.startswith(("~", ".")):  # `smdebug ./my-run`
            return [CompletionItem(incomplete, type="dir")]
        runs = [CompletionItem(name) for name in _runs_here(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *runs]

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _pipe_may_close():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipe_may_close():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, (_, names) in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


def _is_a_place(name: str) -> bool:
    """Return whether the first word is a run, not a command: `smdebug ./my-run`."""
    if name.startswith("-"):
        return False
    return "/" in name or os.sep in name or Path(name).is_dir()


def _runs_here(incomplete: str) -> list[str]:
    """Return the runs in the current folder whose names begin with `incomplete`."""
    if incomplete.startswith("-"):
        return []
    found = (place for place in Path().iterdir() if place.name.startswith(incomplete))
    return sorted(place.name for place in found if (place / "collections").is_dir())


class _PipeClosed(Exception):
    """The reader of stdout has closed it, as in `smdebug … | head`."""


@contextmanager
def _pipe_may_close() -> Iterator[None]:
    """Handle a closed pipe before click does, whose exit code 1 would mean that something was found."""
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeClosed from error


class CommonOptions(NamedTuple):
    """The options that every command has."""

    json: bool
    debug: bool


def _version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import smdebug as library

        click.echo(f"smdebug {library.__version__}")
        ctx.exit()


@click.group(
    cls=Commands,
    epilog=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version.",
)
def smdebug() -> None:
    """Find out what is wrong with a training run: `smdebug RUN`.

    RUN is a folder or s3://bucket/prefix. Other commands inspect saved runs, follow live ones, and query a
    deployed debugger.
    """


# Since click 8.2 a command without arguments ends with this error; before, it exited after its help.
_NoArguments: type[Exception] = getattr(click.exceptions, "NoArgsIsHelpError", click.exceptions.Exit)


def run_command(argv: Sequence[str]) -> int:
    """Run a command line; return its exit code."""
    args = list(argv)
    if args[:1] == ["run"]:  # its output, logs and exceptions are the script's own
        from smdebug.cli.this_machine.run_command import run_script

        return run_script(args[1:])
    if _COMPLETION in os.environ:
        from smdebug.cli.this_machine.shells import register_shells

        register_shells()
    options = CommonOptions(json="--json" in args, debug="--debug" in args)
    try:
        with _quiet_library(options.debug):
            code = smdebug.main(args, prog_name="smdebug", standalone_mode=False, color=_use_colour())
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _interrupted()
    except click.exceptions.Exit as done:
        return done.exit_code
    except _PipeClosed:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - flushed at exit
        return exit_codes.PASSED
    except SystemExit as end:
        if _COMPLETION in os.environ:
            raise  # click's normal exit after completion
        text = f"Code called by this command exited with exit({end.code!r})."
        return _report_error(ErrorMessage(exit_codes.FAILED, text), options, end)
    except click.ClickException as error:
        if isinstance(error, _NoArguments):
            if args:
                error.show()  # which is the help of the command
            else:
                click.echo(_SHORT_HELP, err=True)
            return exit_codes.USAGE_ERROR
        return _report_error(message_for_usage(error), options, error)
    except Exception as error:  # noqa: BLE001 - every error becomes one sentence
        return _report_error(message_for(error), options, error)
    return code if isinstance(code, int) else exit_codes.PASSED


def _report_error(message: ErrorMessage, options: CommonOptions, error: BaseException) -> int:
    with suppress(OSError):  # stderr may be closed; the exit code still counts
        _print_error(message, options, error)
    return message.code


def _print_error(message: ErrorMessage, options: CommonOptions, error: BaseException) -> None:
    if options.debug:
        import traceback

        click.echo(redacted("".join(traceback.format_exception(error))), err=True, nl=False)
    if options.json:
        import json

        payload = {"error": message.sentence, "hint": message.hint, "exit_code": message.code}
        click.echo(escaped_in_json(json.dumps(payload, ensure_ascii=False)), err=True)
        return
    click.echo(
        click.style("error: ", fg="red", bold=True) + escaped(message.sentence),
        err=True,
        color=_use_colour(),
    )
    if message.hint:
        hint = click.style("hint: ", bold=True) + escaped(message.hint)
        click.echo(hint, err=True, color=_use_colour())


def _interrupted() -> int:
    click.echo("interrupted", err=True)
    return exit_codes.INTERRUPTED


def _use_colour() -> bool | None:
    """Return whether to use colour (https://no-color.org); None lets the terminal decide."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


@contextmanager
def _quiet_library(debug: bool) -> Iterator[None]:
    """Hide the library's log, which would mix with the answer; `--debug` shows it on stderr."""
    import logging

    from smdebug.logger import SafeFormatter, redirected

    handler = logging.StreamHandler(sys.stderr) if debug else logging.NullHandler()
    handler.setFormatter(SafeFormatter())
    with redirected(logging.DEBUG if debug else logging.CRITICAL + 1, [handler]):
        yield


__all__ = ["COMMANDS", "run_command", "smdebug"]
