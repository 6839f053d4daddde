"""How a command ends: its exit code, and for an error one sentence and a hint."""

from __future__ import annotations

from typing import Final, NamedTuple

import click

from smdebug import exceptions as ours

WELL: Final = 0
FOUND: Final = 1
ASKED_WRONGLY: Final = 2
CANNOT_LOOK: Final = 3
DEFECT: Final = 4
INTERRUPTED: Final = 130


class Outcome(NamedTuple):
    """What is told of an error."""

    code: int
    sentence: str
    hint: str = ""


# The first class that fits decides: the narrow ones stand first.
_OURS: tuple[tuple[type[ours.SMDebugError], int, str], ...] = (
    (
        ours.StackUnknown,
        CANNOT_LOOK,
        "Name the stack by --stack, or a local one by SMDEBUG_TABLE; "
        "`smdebug doctor` tells what can be reached.",
    ),
    (ours.RunUnknown, CANNOT_LOOK, "`smdebug runs` lists those that are known."),
    (ours.RuleUnknown, ASKED_WRONGLY, "`smdebug status RUN` lists the rules of the run."),
    (
        ours.AccessDenied,
        CANNOT_LOOK,
        "`smdebug doctor` tells which credentials are in use. Locally, look at who owns the files.",
    ),
    (ours.StorageUnavailable, CANNOT_LOOK, "Try again in a moment."),
    (
        ours.MissingCollectionFiles,
        CANNOT_LOOK,
        "A run is the folder that was the hook's out_dir: "
        "it has the folders collections, index and events.",
    ),
    (ours.DamagedFile, CANNOT_LOOK, "`smdebug verify PATH` tells what else is damaged."),
    (
        ours.ObjectMissing,
        CANNOT_LOOK,
        "Look at the path, and whether all files were copied: `smdebug verify PATH` tells which are missing.",
    ),
    (ours.StorageError, CANNOT_LOOK, "Look at the path."),
    (ours.WaitedTooLong, CANNOT_LOOK, ""),
    (ours.TensorUnavailable, ASKED_WRONGLY, "`smdebug inspect PATH` lists the tensors."),
    (ours.TensorUnavailableForStep, ASKED_WRONGLY, "`smdebug tensor PATH NAME` lists its steps."),
    (ours.StepUnavailable, ASKED_WRONGLY, "`smdebug tensor PATH NAME` lists its steps."),
    (ours.StepNotYetAvailable, CANNOT_LOOK, "The run has not come so far: try again later."),
    (ours.InvalidWorker, ASKED_WRONGLY, "`smdebug inspect PATH` lists the workers."),
    (ours.SMDebugValueError, ASKED_WRONGLY, ""),
    (ours.SMDebugTypeError, ASKED_WRONGLY, ""),
    (ours.SMDebugError, CANNOT_LOOK, ""),
)


def of_error(error: BaseException) -> Outcome:
    """What to tell of an error that a command ended with."""
    for kind, code, hint in _OURS:
        if isinstance(error, kind):
            return Outcome(code, _one_line(error), hint)
    if isinstance(error, OSError) and (error.filename or error.strerror):
        place = f"{error.filename}: " if error.filename else ""
        return Outcome(CANNOT_LOOK, f"{place}{error.strerror or error}", _of_the_system(error))
    if isinstance(error, MemoryError):
        hint = "Choose fewer tensors or steps, or a machine with more memory."
        return Outcome(CANNOT_LOOK, "There is not enough memory for this.", hint)
    return Outcome(
        DEFECT,
        f"smdebug itself failed: {type(error).__name__}: {_one_line(error)}",
        "This is a defect. The same command with --debug shows where; please report that.",
    )


def of_usage(error: click.ClickException) -> Outcome:
    """What to tell of a command line that cannot be understood."""
    text = " ".join(error.format_message().split())
    ctx = getattr(error, "ctx", None)
    hint = f"`{ctx.command_path} --help` shows how it is used." if ctx else ""
    text = text if text.endswith((".", "?")) else f"{text}."
    code = ASKED_WRONGLY if isinstance(error, click.UsageError) else CANNOT_LOOK
    return Outcome(code, text, hint)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _of_the_system(error: OSError) -> str:
    from errno import EACCES, EADDRINUSE, EDQUOT, EEXIST, EISDIR, ENOENT, ENOSPC, ENOTDIR, EROFS

    return {
        ENOSPC: "The disk is full: make room, or write somewhere else.",
        EDQUOT: "Your quota is used up: make room, or write somewhere else.",
        EACCES: "You may not write there: choose another place.",
        EISDIR: "It has to be a file: add its name.",
        EEXIST: "It has to be a folder, and is a file: choose another place.",
        ENOTDIR: "A part of that path is a file: choose another place.",
        ENOENT: "Look at the path.",
        EROFS: "That place cannot be written to: choose another one.",
        EADDRINUSE: "Another program has that port: choose another one by --port.",
    }.get(error.errno or 0, "")
