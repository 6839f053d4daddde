"""The pages of the documentation and their fenced blocks.

The blocks of a page run in order, unchanged, in a fresh interpreter and an empty folder (`run_page.py`):

- A Python block that begins with `# name.py` is also written to that file.
- A block below the comment `<!-- not run: why -->` is skipped; `test_blocks.py` lists the reasons.
- A fence marked `text output` holds the output of the block before it.
- A fence marked `console` holds commands after `$ `, each followed by its output.
- A fence marked `sh` is a script.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# These pages need frameworks: tests/frameworks/test_pages.py runs them.
FRAMEWORK_PAGES = {
    "README.md": "torch",
    "docs/frameworks.md": "torch keras xgboost jax",
    "docs/mxnet.md": "mxnet",
    "docs/fine-tuning.md": "torch",
    "docs/large.md": "torch",
    "docs/mixtures.md": "torch",
    "docs/quick-start.md": "torch",
    "docs/quick-start-keras.md": "keras",
    "docs/quick-start-transformers.md": "transformers",
    "docs/quick-start-lightning.md": "lightning",
    "docs/quick-start-xgboost.md": "xgboost",
    "docs/quick-start-jax.md": "jax",
    "docs/sweeps.md": "optuna",
}

_FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: ([^\n]+) -->\n+\Z")
_FILE = re.compile(r"\A# (\w+\.py)\n")


class Block(NamedTuple):
    """The content of one fence, and the line where it begins."""

    page: Path
    line: int
    kind: str
    text: str
    before: str

    @property
    def is_python(self) -> bool:
        return self.kind.split(maxsplit=1)[:1] == ["python"]

    @property
    def is_code(self) -> bool:
        return self.is_python or self.kind in ("sh", "console")

    @property
    def is_run(self) -> bool:
        return self.is_code and not self.not_run_because

    @property
    def not_run_because(self) -> str | None:
        found = _NOT_RUN.search(self.before)
        return found[1] if found else None

    @property
    def file_name(self) -> str | None:
        found = _FILE.match(self.text)
        return found[1] if found else None

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """Return the path of the page from the root of the project."""
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(page: Path) -> list[Block]:
    """Return the fences of a page, in order."""
    text = text_of(page)
    return [
        Block(
            page,
            text.count("\n", 0, found.start(3)) + 1,
            found[2].strip(),
            found[3],
            before=text[max(0, found.start() - 200) : found.start()],
        )
        for found in _FENCE.finditer(text)
    ]


def without_fences(page: Path) -> str:
    """Return the page without its fences."""
    return _FENCE.sub("", text_of(page))


def commands_in(block: Block) -> list[tuple[str, str]]:
    """Return each command of a console block with its output."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE)
    return [(command, output) for command, output in found]
