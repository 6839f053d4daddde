"""Write README.md beside this file: `python -m tests.seeds.table`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.seeds.blocks import BLOCKS, CHANGES, DOCUMENTS, NOT_RUN, RUN_BY

PAGE = Path(__file__).with_name("README.md")
TESTS = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
INTRODUCTION = """\
# The original's documents, tested

Five documents described smdebug and tornasole. A test runs every block of their code, unchanged or with
the change in the third column, unless the last column gives a reason not to. The blocks are in
`tests/seeds/text/`; `python -m tests.seeds.table` writes this page.
"""


def page() -> str:
    for name in TESTS:
        import_module(f"tests.seeds.{name}")
    parts = [INTRODUCTION]
    for document, title in DOCUMENTS.items():
        blocks = [block for block in BLOCKS if block.startswith(document)]
        run = sum(block in RUN_BY for block in blocks)
        parts.append(f"\n## {document}: {title}\n\nTests run {run} of {len(blocks)} blocks.\n")
        parts.append("\n| block | first line | change | test |\n|---|---|---|---|\n")
        parts += map(_row, blocks)
    return "".join(parts)


def _row(block: str) -> str:
    first_line = next(line.strip() for line in BLOCKS[block].splitlines() if line.strip())
    if len(first_line) > 60:
        first_line = first_line[:59] + "…"
    first_line = first_line.replace("`", "'").replace("|", "\\|")
    changed = "; ".join(change.why for change in CHANGES.get(block, ()))
    test = f"`{RUN_BY[block]}`" if block in RUN_BY else f"not run: {NOT_RUN[block]}"
    return f"| {block} | `{first_line}` | {changed} | {test} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
