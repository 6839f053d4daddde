"""Where the command begins: Ctrl-C is understood before click and the library are loaded."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns its exit code."""
    of_a_shell = argv is None
    args = list(sys.argv[1:] if argv is None else argv)
    if of_a_shell:
        _hear_with(_end_at_once)
    from smdebug.cli.commands import answer

    if of_a_shell:
        _hear_with(signal.default_int_handler)
    code = answer(args)
    if of_a_shell and args[:1] != ["run"]:  # a script may have something to do at its end
        _hear_with(_end_at_once)
    return code


def _hear_with(handler: Callable[..., None]) -> None:
    """Unless Ctrl-C is for others: a shell has what it starts in the background ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _end_at_once(*_: object) -> None:
    """While modules load, or go, an exception would show where, and in a callback of theirs be lost."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
