"""The table of docs/seeds.md: `python -m tests.seeds.table` writes it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.seeds.blocks import BLOCKS, CHANGES, DOCUMENTS, NOT_RUN, RUN_BY

PAGE = Path(__file__).parents[2] / "docs" / "seeds.md"
TESTS = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
INTRODUCTION = """\
# The original's documents, run

smdebug and tornasole were described by five documents. Every block of code in them is run by a test, as
it stands or with the change named here; what is not run says why. The blocks are in
`tests/seeds/text/`. This page is written by `python -m tests.seeds.table`.
"""


def page() -> str:
    for name in TESTS:
        import_module(f"tests.seeds.{name}")
    parts = [INTRODUCTION]
    for document, title in DOCUMENTS.items():
        blocks = [block for block in BLOCKS if block.startswith(document)]
        run = sum(block in RUN_BY for block in blocks)
        parts.append(f"\n## {document}: {title}\n\n{run} of {len(blocks)} blocks are run.\n")
        parts.append("\n| block | begins | changed | test |\n|---|---|---|---|\n")
        parts += map(_row, blocks)
    return "".join(parts)


def _row(block: str) -> str:
    begins = next(line.strip() for line in BLOCKS[block].splitlines() if line.strip())
    if len(begins) > 60:
        begins = begins[:59] + "…"
    begins = begins.replace("`", "'").replace("|", "\\|")
    changed = "; ".join(change.why for change in CHANGES.get(block, ()))
    test = f"`{RUN_BY[block]}`" if block in RUN_BY else f"not run: {NOT_RUN[block]}"
    return f"| {block} | `{begins}` | {changed} | {test} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
