"""Turn the error that a command ended with into an exit code, one sentence and a hint."""

from __future__ import annotations

from typing import NamedTuple

import click

from smdebug import exceptions as library
from smdebug.cli.exit_codes import FAILED, INTERNAL_ERROR, USAGE_ERROR
from smdebug.secrets.texts import redacted


class ErrorMessage(NamedTuple):
    """What a command prints about an error, and the exit code."""

    code: int
    sentence: str
    hint: str = ""


# The first class that matches decides, so subclasses come first.
_LIBRARY_ERRORS: tuple[tuple[type[library.SMDebugError], int, str], ...] = (
    (
        library.StackUnknown,
        FAILED,
        "Name the stack with --stack, or a local one with SMDEBUG_TABLE; "
        "`smdebug doctor` shows what can be reached.",
    ),
    (library.RunUnknown, FAILED, "`smdebug runs` lists the known runs."),
    (library.RuleUnknown, USAGE_ERROR, "`smdebug status RUN` lists the rules of the run."),
    (
        library.AccessDenied,
        FAILED,
        "`smdebug doctor` shows which credentials are in use. For local files, check who owns them.",
    ),
    (library.StorageUnavailable, FAILED, "Try again in a moment."),
    (
        library.MissingCollectionFiles,
        FAILED,
        "A run is the folder that was the hook's out_dir: "
        "it contains the folders collections, index and events.",
    ),
    (library.DamagedFile, FAILED, "`smdebug verify PATH` lists all damaged files."),
    (
        library.ObjectMissing,
        FAILED,
        "Check the path, and whether all files were copied: `smdebug verify PATH` lists missing ones.",
    ),
    (library.StorageError, FAILED, "Check the path."),
    (library.WaitedTooLong, FAILED, ""),
    (library.TensorUnavailable, USAGE_ERROR, "`smdebug inspect PATH` lists the tensors."),
    (
        library.TensorUnavailableForStep,
        USAGE_ERROR,
        "`smdebug tensor PATH NAME` lists its steps.",
    ),
    (library.StepUnavailable, USAGE_ERROR, "`smdebug tensor PATH NAME` lists its steps."),
    (
        library.StepNotYetAvailable,
        FAILED,
        "The run has not reached that step yet: try again later.",
    ),
    (library.InvalidWorker, USAGE_ERROR, "`smdebug inspect PATH` lists the workers."),
    (library.SMDebugValueError, USAGE_ERROR, ""),
    (library.SMDebugTypeError, USAGE_ERROR, ""),
    (library.SMDebugError, FAILED, ""),
)


def message_for(error: BaseException) -> ErrorMessage:
    """Return the message for an error that a command raised, without secrets."""
    message = _message_for(error)
    return message._replace(sentence=redacted(message.sentence))


def _message_for(error: BaseException) -> ErrorMessage:
    for kind, code, hint in _LIBRARY_ERRORS:
        if isinstance(error, kind):
            return ErrorMessage(code, _one_line(error), hint)
    if isinstance(error, OSError) and (error.filename or error.strerror):
        place = f"{error.filename}: " if error.filename else ""
        return ErrorMessage(FAILED, f"{place}{error.strerror or error}", _system_hint(error))
    if isinstance(error, MemoryError):
        hint = "Choose fewer tensors or steps, or a machine with more memory."
        return ErrorMessage(FAILED, "There is not enough memory for this.", hint)
    return ErrorMessage(
        INTERNAL_ERROR,
        f"smdebug itself failed: {type(error).__name__}: {_one_line(error)}",
        "This is a bug. Run the same command with --debug, and report the traceback.",
    )


def message_for_usage(error: click.ClickException) -> ErrorMessage:
    """Return the message for a command line that cannot be parsed."""
    text = " ".join(error.format_message().split())
    text = text.replace("is not a valid integer range", "is not a whole number")
    text = text.replace("is not a valid integer", "is not a whole number")
    text = text.replace("is not a valid float range", "is not a number")
    text = text.replace("is not a valid float", "is not a number")
    ctx = getattr(error, "ctx", None)
    hint = f"`{ctx.command_path} --help` shows its usage." if ctx else ""
    text = text if text.endswith((".", "?")) else f"{text}."
    code = USAGE_ERROR if isinstance(error, click.UsageError) else FAILED
    return ErrorMessage(code, redacted(text), hint)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _system_hint(error: OSError) -> str:
    from errno import EACCES, EADDRINUSE, EDQUOT, EEXIST, EISDIR, ENOENT, ENOSPC, ENOTDIR, EROFS

    return {
        ENOSPC: "The disk is full: free some space, or write somewhere else.",
        EDQUOT: "Your quota is used up: free some space, or write somewhere else.",
        EACCES: "You may not write there: choose another place.",
        EISDIR: "It must be a file: add a file name.",
        EEXIST: "It must be a folder, but is a file: choose another place.",
        ENOTDIR: "Part of that path is a file: choose another place.",
        ENOENT: "Check the path.",
        EROFS: "That place is read-only: choose another one.",
        EADDRINUSE: "Another program uses that port: choose another with --port.",
    }.get(error.errno or 0, "")
