"""Which commands there are, and what becomes of an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

try:
    import click
except ImportError:  # a layer, or a copy of the sources: the library alone is there
    sys.exit("The smdebug command needs click: pip install smdebug-serverless")

from smdebug.cli import exit_codes
from smdebug.cli.error_messages import ErrorMessage, message_for, message_for_usage

# In the order in which help lists them: a module of this package each, loaded when it is called.
COMMANDS = {
    "inspect": "what a run holds, at a glance",
    "tensor": "one tensor over the steps of a run",
    "evaluate": "what rules say of a saved run",
    "rules": "the built-in rules, and what they take",
    "compare": "where two runs part",
    "verify": "every checksum and index entry of a run",
    "report": "a run as one page of HTML, to keep or to send",
    "plot": "distributions and curves as a picture",
    "export": "tensors for TensorBoard, or as safetensors, npz, parquet",
    "runs": "the runs that a deployed debugger watches",
    "status": "how the rules of a watched run stand",
    "findings": "what they have found",
    "attach": "have more rules watch a run",
    "detach": "have a rule watch it no longer",
    "stop": "ask a training to stop",
    "logs": "what a rule has said on a run",
    "import-sagemaker": "a SageMaker job's debugger configuration, as our files",
    "migrate": "what changes in code for SageMaker Debugger, line by line",
    "run": "run a training script with a hook in it, unchanged",
    "demo": "the whole thing at work, on this machine",
    "local": "the whole application on this machine, for your own training",
    "doctor": "what is installed, what is missing, what can be reached",
    "completion": "completion of commands and rules for your shell",
}
_GROUPS = {
    "A saved run": ("inspect", "tensor", "evaluate", "rules", "compare", "verify"),
    "To look at, and to pass on": ("report", "plot", "export"),
    "A deployed debugger": (*("runs", "status", "findings", "attach", "detach", "stop", "logs"),),
    "From SageMaker Debugger": ("migrate", "import-sagemaker"),
    "This machine": ("run", "demo", "local", "doctor", "completion"),
}

_COMPLETION = "_SMDEBUG_COMPLETE"
_EXAMPLES = """
\b
Examples:
  smdebug inspect ./my-run
  smdebug evaluate s3://bucket/my-run --rule VanishingGradient
  smdebug report ./my-run -o report.html
  smdebug status resnet-50 --watch

\b
Exit codes:
  0    all is well, nothing was found
  1    something was found: an issue, a difference, damage
  2    the command was used wrongly
  3    a run, a stack or the account cannot be reached or read
  4    the command itself failed, which is a defect of smdebug
  130  interrupted
"""


class Commands(click.Group):
    """Loads a command when it is called, so that help and completion come at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        module = import_module(f"smdebug.cli.{cmd_name.replace('-', '_')}_command")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            hint = f"Did you mean {close[0]}?" if close else "smdebug --help lists the commands."
            raise click.UsageError(f"There is no command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _pipe_may_close():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipe_may_close():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


class _NobodyListens(Exception):
    """`smdebug … | head` has seen enough."""


@contextmanager
def _pipe_may_close() -> Iterator[None]:
    """Before click hears of it, which would end with 1: as if something had been found."""
    try:
        yield
    except BrokenPipeError as error:
        raise _NobodyListens from error


class Asked(NamedTuple):
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
    help="Say which version this is.",
)
def smdebug() -> None:
    """Look at what a training has saved, let rules look at it, and ask the deployed debugger."""


def answer(argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns its exit code."""
    args = list(argv)
    if args[:1] == ["run"]:  # what the script prints, logs and raises is the user's own
        from smdebug.cli.run_command import run_script

        return run_script(args[1:])
    if _COMPLETION in os.environ:
        from smdebug.cli.shells import use_ours

        use_ours()
    asked = Asked(json="--json" in args, debug="--debug" in args)
    try:
        with _quiet_library(asked.debug):
            code = smdebug.main(
                args, prog_name="smdebug", standalone_mode=False, color=_wants_colour()
            )
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _interrupted()
    except click.exceptions.Exit as done:
        return done.exit_code
    except _NobodyListens:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - flushed at exit
        return exit_codes.PASSED
    except SystemExit as end:
        if _COMPLETION in os.environ:
            raise  # it is how click ends when it has told a shell what fits
        by = f"Something that this command has called ended it, by exit({end.code!r})."
        return _report_error(ErrorMessage(exit_codes.FAILED, by), asked, end)
    except click.ClickException as error:
        return _report_error(message_for_usage(error), asked, error)
    except Exception as error:  # noqa: BLE001 - whatever it is, the user is told in a sentence
        return _report_error(message_for(error), asked, error)
    return code if isinstance(code, int) else exit_codes.PASSED


def _report_error(message: ErrorMessage, asked: Asked, error: BaseException) -> int:
    with suppress(OSError):  # where nothing can be told, the code still tells it
        _print_error(message, asked, error)
    return message.code


def _print_error(message: ErrorMessage, asked: Asked, error: BaseException) -> None:
    if asked.debug:
        import traceback

        traceback.print_exception(error)
    if asked.json:
        import json

        told = {"error": message.sentence, "hint": message.hint, "exit_code": message.code}
        click.echo(json.dumps(told, ensure_ascii=False), err=True)
        return
    click.echo(
        click.style("error: ", fg="red", bold=True) + message.sentence,
        err=True,
        color=_wants_colour(),
    )
    if message.hint:
        click.echo(click.style("hint: ", bold=True) + message.hint, err=True, color=_wants_colour())


def _interrupted() -> int:
    click.echo("interrupted", err=True)
    return exit_codes.INTERRUPTED


def _wants_colour() -> bool | None:
    """https://no-color.org: set to anything, it is off. None: as the terminal can."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


@contextmanager
def _quiet_library(debug: bool) -> Iterator[None]:
    """What the library logs would stand among the answers; `--debug` shows it, on stderr."""
    import logging

    from smdebug.logger import get_logger

    logger = get_logger()
    before: tuple[int, list[Any]] = (logger.level, list(logger.handlers))
    logger.handlers = [logging.StreamHandler(sys.stderr)] if debug else [logging.NullHandler()]
    logger.setLevel(logging.DEBUG if debug else logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]


__all__ = ["COMMANDS", "answer", "smdebug"]
