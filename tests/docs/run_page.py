"""Run the blocks of a page as a reader would paste them: `python -m tests.docs.run_page docs/saving.md`.

The interpreter is fresh, the current folder is empty, and nothing is defined beforehand; the page about
deployed debuggers connects to one in memory. A block that fails or prints something else than the page shows
ends the program with a message that names its line.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, Block, blocks_of, commands_in

TIMEOUT = 600  # seconds; a command that waits for input is marked as not run
# The commands are those of this interpreter. One that finds something ends with 1, as the page may intend.
PREPARED = f"""
python() {{ {shlex.quote(sys.executable)} "$@"; }}
smdebug() {{ python -m smdebug "$@"; }}
torchrun() {{ python -m torch.distributed.run "$@"; }}
trap '(( $? < 2 )) || exit 2' ERR
"""


class Wrong(Exception):
    """A block does not do what its page shows."""


def run_page(page: Path, names: dict[str, Any]) -> None:
    """Run the page in the current folder; raise `Wrong` for the first block that differs."""
    printed = ""
    blocks = blocks_of(page)
    scripts = "".join(block.text for block in blocks if block.kind in ("console", "sh"))
    for block in blocks:
        if block.not_run_because:
            continue
        if block.is_python:
            if block.file_name:
                Path(block.file_name).write_text(block.text, encoding="utf-8")
                if re.search(rf"(python|torchrun .*) {re.escape(block.file_name)}\n", scripts):
                    continue
            printed = output_of(block, names)
        elif block.kind == "text output":
            compare(block, "the block before", printed, block.text)
        elif block.kind == "console":
            for command, output in commands_in(block):
                compare(block, command, run(block, command), output)
        elif block.kind == "sh":
            run(block, block.text)


def compare(block: Block, what: str, printed: str, expected: str) -> None:
    """Raise if the output differs; `...` in the page matches any text."""
    pattern = ".*".join(re.escape(part) for part in expected.replace("...\n", "...").split("..."))
    if not re.fullmatch(pattern, printed, re.DOTALL):
        lines = difflib.unified_diff(
            expected.splitlines(), printed.splitlines(), "page", "printed", lineterm=""
        )
        raise Wrong("\n".join([f"{block.place}: {what} prints something else", *lines]))


def output_of(block: Block, names: dict[str, Any]) -> str:
    """Run the block and return what it prints; a traceback names the line of the page."""
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, names)
    except Exception as error:
        raise Wrong(f"{block.place}: {traceback.format_exc()}") from error
    return without_log_lines(printed.getvalue())


def run(block: Block, command: str) -> str:
    """Run a command or a script of the page; return its output."""
    done = subprocess.run(
        ["bash", "-c", PREPARED + command],
        check=False,
        timeout=TIMEOUT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    errors = without_log_lines(done.stderr)
    if errors.strip() and errors.strip() in block.text:  # a note, which the page shows as a terminal does
        return without_log_lines(done.stdout) + errors
    if errors and command.startswith("smdebug "):
        raise Wrong(f"{block.place}: {command} prints on stderr: {errors}")
    if done.returncode > 1:
        raise Wrong(f"{block.place} ends with {done.returncode}: {done.stdout}{errors}")
    return without_log_lines(done.stdout)


def without_log_lines(text: str) -> str:
    return re.sub(r"^\[\d{4}-\d\d-\d\d .*\n", "", text, flags=re.MULTILINE)


def main() -> int:
    page = ROOT / sys.argv[1]
    try:
        run_page(page, {"__name__": "__main__"})
    except Wrong as wrong:
        print(wrong, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
