"""Makes the notebooks of the stories: `story.py`, run cell by cell, with what its cells print and show.

    make notebooks

An animation that a cell shows by its address is not kept: the
notebook makes it when it is run.
"""

from __future__ import annotations

import base64
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
STORIES = sorted(ROOT.glob("examples/*/story.py"))
_PATHS = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules", ROOT]
_PATIENCE = 300  # seconds that a cell may take


def main() -> None:
    for story in STORIES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / story.parent.name
            shutil.copytree(story.parent, folder, ignore=shutil.ignore_patterns("runs", "images"))
            notebook = told(story, folder)
        kept = story.with_suffix(".ipynb")
        nbformat.write(notebook, kept)
        print(f"{kept.relative_to(ROOT)}: {kept.stat().st_size / 1000:.0f} KB")


def cells_of(story: Path) -> Any:
    """The script as a notebook that was not run."""
    notebook = jupytext.read(story)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel})
    for at, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{at}", nbformat.from_dict({})
    return notebook


def told(story: Path, folder: Path) -> Any:
    """The notebook with its outputs, after it was run in that folder, in a kernel of this Python."""
    notebook = cells_of(story)
    paths = os.pathsep.join(map(str, _PATHS))
    environment = {**os.environ, "PYTHONPATH": paths, "SMDEBUG_LOG_LEVEL": "error"}
    client = NotebookClient(
        notebook,
        timeout=_PATIENCE,
        extra_arguments=["--log-level=ERROR"],  # it is warned of who else is on this machine
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment, cwd=str(folder))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [
                output for output in cell.outputs if "text/html" not in output.get("data", {})
            ]
            for shown in (output.get("data", {}) for output in cell.outputs):
                if "image/png" in shown:
                    shown["image/png"] = _smaller(shown["image/png"])
    return notebook


def _smaller(picture: str) -> str:
    """The same picture, of few colours: it is kept in the repository."""
    made = io.BytesIO()
    drawn = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    drawn.quantize(128).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


if __name__ == "__main__":
    sys.exit(main())
