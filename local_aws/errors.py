"""What can go wrong with the stack on a laptop. Every text says what to do."""

from __future__ import annotations

import errno
import json
import re
import sys

CANNOT = 3  # as `smdebug` says it: something cannot be reached, read or written
INTERRUPTED = 130


class LocalStackError(RuntimeError):
    """The stack on this machine could not be started, or cannot do what was asked of it."""


class Unsupported(LocalStackError):
    """The template, or a call, uses something unknown here: nothing is left out silently."""


class PortTaken(LocalStackError):
    """Somebody listens on that port already: choose another, or none for a free one."""


class PortClosed(LocalStackError):
    """The system keeps that port for others: choose another, or none for a free one."""


class DiskFull(LocalStackError):
    """There is no room for the template, or for what the functions are given."""


class NotSynthesized(LocalStackError):
    """The template could not be made: the text is what the CDK said."""


class DidNotStart(LocalStackError):
    """The process that plays AWS ended before it was ready: the text is the last thing it said."""


class FolderClosed(LocalStackError):
    """A folder that is needed may not be written to."""


class WaitedTooLong(LocalStackError):
    """What was waited for did not happen in time: the text says what is known instead."""


def in_words(error: OSError, folder: str) -> LocalStackError | None:
    """What kept us from writing below the folder, in a sentence; None if it is something else."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"The disk is full: nothing more fits into {folder}. Free about 200 MB there, or set "
            "TMPDIR to a folder on another disk"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return FolderClosed(
            f"{error.filename or folder} may not be written to ({error.strerror}): have a checkout, "
            "and a TMPDIR, of your own"
        )
    return None


def missing_module(said: str) -> str:
    """What to do about the Python package that somebody has missed, if that is what was said."""
    found = re.search(r"ModuleNotFoundError: No module named '(\w+)", said)
    if not found:
        return ""
    return (
        f"The Python package {found[1]} is not installed: run `make setup` in the checkout, which "
        "brings all that is needed into .venv, and use .venv/bin/smdebug"
    )


def complain(error: LocalStackError, *, as_json: bool = False) -> int:
    """Tell whoever is at the terminal, or a program; the exit code."""
    if as_json:
        told = {"error": str(error), "hint": "", "exit_code": CANNOT}
        print(json.dumps(told, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"error: {error}.".replace("..", "."), file=sys.stderr)
    return CANNOT
