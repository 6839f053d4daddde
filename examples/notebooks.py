"""Make a notebook of each `story.py`: run its cells and store their output.

    make notebooks

Animations that a cell shows by their address are not stored: the
notebook makes them when it is run.
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
            notebook = executed(story, folder)
        kept = story.with_suffix(".ipynb")
        nbformat.write(notebook, kept)
        print(f"{kept.relative_to(ROOT)}: {kept.stat().st_size / 1000:.0f} KB")


def cells_of(story: Path) -> Any:
    """Return the script as a notebook without output."""
    notebook = jupytext.read(story)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel})
    for at, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{at}", nbformat.from_dict({})
    return notebook


def executed(story: Path, folder: Path) -> Any:
    """Run the notebook in `folder`, in a kernel of this Python; return it with its output."""
    notebook = cells_of(story)
    paths = os.pathsep.join(map(str, _PATHS))
    environment = {**os.environ, "PYTHONPATH": paths, "SMDEBUG_LOG_LEVEL": "error"}
    client = NotebookClient(
        notebook,
        timeout=_PATIENCE,
        extra_arguments=["--log-level=ERROR"],  # without warnings about other kernels
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment, cwd=str(folder))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if "text/html" not in output.get("data", {})]
            for shown in (output.get("data", {}) for output in cell.outputs):
                if "image/png" in shown:
                    shown["image/png"] = _smaller(shown["image/png"])
    return notebook


def _smaller(picture: str) -> str:
    """Return the picture with fewer colours, as it is stored in the repository."""
    made = io.BytesIO()
    drawn = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    drawn.quantize(128).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


if __name__ == "__main__":
    sys.exit(main())
