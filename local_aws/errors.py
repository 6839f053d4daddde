"""The errors of the local stack. Every message says what to do."""

from __future__ import annotations

import errno
import json
import re
import sys

CANNOT = 3  # the exit code of `smdebug` if something cannot be reached, read or written
INTERRUPTED = 130


class LocalStackError(RuntimeError):
    """The local stack could not be started, or does not support a request."""


class Unsupported(LocalStackError):
    """The template or a call uses something unsupported: nothing is ignored silently."""


class PortTaken(LocalStackError):
    """The port is in use: choose another, or none for a free one."""


class PortClosed(LocalStackError):
    """The system reserves the port: choose another, or none for a free one."""


class DiskFull(LocalStackError):
    """There is no disk space for the template or the packages of the functions."""


class NotSynthesized(LocalStackError):
    """The template could not be synthesized: the message is the CDK's."""


class DidNotStart(LocalStackError):
    """The process that plays AWS ended before it was ready: the message is its last output."""


class FolderClosed(LocalStackError):
    """A required folder is not writable."""


class TooManyRunning(LocalStackError):
    """The account runs as many functions at once as it may: the message says what to do."""


class WaitedTooLong(LocalStackError):
    """A condition did not become true in time: the message says what is known instead."""


def explain_os_error(error: OSError, folder: str) -> LocalStackError | None:
    """Return the reason why writing below the folder failed; None if it is another kind of error."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(
            f"The disk of {folder} is full. Free about 200 MB there, or set "
            "TMPDIR to a folder on another disk"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return FolderClosed(
            f"{error.filename or folder} is not writable ({error.strerror}): use a checkout "
            "and a TMPDIR of your own"
        )
    return None


def missing_module(output: str) -> str:
    """Return what to do about a missing Python package; empty if the output is about something else."""
    match = re.search(r"ModuleNotFoundError: No module named '(\w+)", output)
    if not match:
        return ""
    return (
        f"The Python package {match[1]} is not installed: run `make setup` in the checkout, which "
        "installs everything into .venv, and use .venv/bin/smdebug"
    )


def report_error(error: LocalStackError, *, as_json: bool = False) -> int:
    """Print the error for a person, or for a program; return the exit code."""
    if as_json:
        payload = {"error": str(error), "hint": "", "exit_code": CANNOT}
        print(json.dumps(payload, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"error: {error}.".replace("..", "."), file=sys.stderr)
    return CANNOT
