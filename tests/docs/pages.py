"""The pages that a user reads, and what is in their fences.

A block of Python is run as it stands, one after the other on a page and in one namespace, in an empty folder:

- one that begins with `# name.py` is also that file there;
- one that begins with `# not run by the tests: why` is not run, and listed by `test_blocks.py`;
- a fence marked `text output` holds what the block before it prints;
- in a fence marked `console`, `$ ` precedes a command and its output follows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

_FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"\A# not run by the tests: (.+)")
_FILE = re.compile(r"\A# (\w+\.py)\n")


class Block(NamedTuple):
    """What one fence holds, and where it begins."""

    page: Path
    line: int
    kind: str
    text: str

    @property
    def is_python(self) -> bool:
        return self.kind.split(maxsplit=1)[:1] == ["python"]

    @property
    def not_run_because(self) -> str | None:
        found = _NOT_RUN.match(self.text)
        return found[1] if found else None

    @property
    def file_name(self) -> str | None:
        found = _FILE.match(self.text)
        return found[1] if found else None

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """The page as its path from the top of the project."""
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[Block]:
    """The fences of a page, in order."""
    text = text_of(page)
    return [
        Block(page, text.count("\n", 0, found.start(3)) + 1, found[2].strip(), found[3])
        for found in _FENCE.finditer(text)
    ]


def without_fences(page: Path) -> str:
    """The page's prose."""
    return _FENCE.sub("", text_of(page))


def commands_in(block: Block) -> list[tuple[str, str]]:
    """Each command of a console block, with what it prints."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
    return [(command, output) for command, output in found]
