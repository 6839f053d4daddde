"""Makes the notebook of an example: its sections become cells, and its story is told step by step.

    python examples/as_notebook.py examples/tensor_analysis.py

A line such as `# The training` begins a section; the body of `story(folder)` becomes cells, one for each of
its paragraphs. The tests look whether the notebook is the script's.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any


def notebook_of(source: str) -> dict[str, Any]:
    """The notebook, as its file has it."""
    tree = ast.parse(source)
    lines = source.splitlines()
    (story,) = (one for one in tree.body if getattr(one, "name", "") == "story")
    before = "\n".join(lines[: story.lineno - 1])
    _, docstring, code = re.split(r'^"""|^"""$|"""$', before, maxsplit=2, flags=re.MULTILINE)
    title, _, text = docstring.strip().partition("\n")
    cells = [_markdown(f"# {title}\n{text}")]
    for section in re.split(
        r"^(?=# The )", code.replace("import argparse\n", ""), flags=re.MULTILINE
    ):
        heading = re.match(r"# (The .+)\n", section)
        if heading:
            cells.append(_markdown(f"## {heading[1]}"))
            section = section[heading.end() :]
        cells += [_code(section.strip())] if section.strip() else []
    cells.append(_code('folder = Path("images")'))
    body = "\n".join(lines[story.body[0].lineno - 1 : story.end_lineno])
    cells += [_code(part) for part in re.split(r"\n\n+", textwrap.dedent(body))]
    for at, cell in enumerate(cells):
        cell["id"] = f"cell-{at}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def text_of(source: str) -> str:
    return json.dumps(notebook_of(source), indent=1, ensure_ascii=False) + "\n"


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    source = text.splitlines(keepends=True)
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


if __name__ == "__main__":
    for name in sys.argv[1:]:
        script = Path(name)
        script.with_suffix(".ipynb").write_text(
            text_of(script.read_text(encoding="utf-8")), encoding="utf-8"
        )
