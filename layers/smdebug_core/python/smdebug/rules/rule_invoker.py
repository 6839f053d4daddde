"""The address of `invoke_rule` that is documented, and of `python -m smdebug.rules.rule_invoker`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from smdebug.rules.evaluations import (
    Evaluation,
    evaluations,
    has_seen_all,
    invoke,
    invoke_rule,
)

__all__ = [
    "Evaluation",
    "evaluations",
    "has_seen_all",
    "invoke",
    "invoke_rule",
    "main",
]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    from smdebug.rules.command_line import main as command_line

    return command_line(argv)


if __name__ == "__main__":
    sys.exit(main())
