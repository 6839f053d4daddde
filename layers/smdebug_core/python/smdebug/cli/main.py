"""The entry point of the command: handles Ctrl-C before click and the library are loaded."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

from smdebug.cli.exit_codes import INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    in_shell = argv is None
    args = list(sys.argv[1:] if argv is None else argv)
    if in_shell:
        _on_interrupt(_exit_now)
    from smdebug.cli.commands import run_command

    if in_shell:
        _on_interrupt(signal.default_int_handler)
    code = run_command(args)
    if in_shell and args[:1] != ["run"]:  # a script may have cleanup to do
        _on_interrupt(_exit_now)
    return code


def _on_interrupt(handler: Callable[..., None]) -> None:
    """Handle Ctrl-C, unless it is ignored, as a shell sets for background processes."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _exit_now(*_: object) -> None:
    """Exit without an exception: while modules load or unload, it would print a traceback or get lost."""
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
