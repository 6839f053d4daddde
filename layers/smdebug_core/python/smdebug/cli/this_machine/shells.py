"""Completion classes for bash, zsh and fish, where click's own split words differently than the shell.

In `--rule=Vani`, the shell completes only what follows the `=`. Bash also splits words there and at every
colon, so `s3://bucket/run` becomes three; our script therefore passes the whole line.
"""

from __future__ import annotations

import os

from click.shell_completion import (
    BashComplete,
    FishComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)


def _replaced(template: str, *pairs: tuple[str, str]) -> str:
    """Replace parts of a template; in a version of click without them, it stays as it is."""
    for before, after in pairs:
        template = template.replace(before, after)
    return template


class _Bash(BashComplete):
    source_template = _replaced(
        BashComplete.source_template, ("${COMP_WORDS[*]}", "${COMP_LINE:0:COMP_POINT}")
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        is_begun = bool(words) and not line[-1:].isspace()
        return (words[:-1], words[-1]) if is_begun else (words, "")


class _Zsh(ZshComplete):
    source_template = _replaced(
        ZshComplete.source_template,
        ("    for type key", "    [[ $PREFIX == --*=* ]] && compset -P '--*='\n\n    for type key"),
        ("compadd -U", 'compadd -U -i "$IPREFIX"'),
    )


class _Fish(FishComplete):
    source_template = _replaced(
        FishComplete.source_template,
        (
            "    for completion",
            "    set -l option (commandline -t | string match -r -- '^--[^=]*=')\n\n    for completion",
        ),
        (
            "__fish_complete_directories $metadata[2];",
            "__fish_complete_directories $metadata[2] | string replace -r -- '^' \"$option\";",
        ),
        (
            "__fish_complete_path $metadata[2];",
            "__fish_complete_path $metadata[2] | string replace -r -- '^' \"$option\";",
        ),
        ("echo $metadata[2];", 'echo "$option$metadata[2]";'),
    )


def register_shells() -> None:
    """Make click use these classes instead of its own."""
    add_completion_class(_Bash)
    add_completion_class(_Zsh)
    add_completion_class(_Fish)
