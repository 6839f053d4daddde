"""The stories of the original notebooks, on PyTorch: the script and the notebook are the same."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from types import ModuleType

import nbformat
import pytest
from PIL import Image

from tests.frameworks.scripts import PATHS, ROOT, python

EXAMPLES = ROOT / "examples"
STORIES = [story.parent.name for story in EXAMPLES.glob("*/story.py")]
ANIMATIONS = {
    "activation_inputs",
    "activation_inputs_comparison",
    "activation_outputs",
    "gradients",
    "gradients_comparison",
    "layer_inputs",
    "layer_outputs",
    "weights",
}
FOUND = "Evaluation of the rule CustomGradientRule at step 40 resulted in the condition being met"
ENDING = [
    "healthy: passed, no more data",
    f"diverging: {FOUND}",
    f"CustomGradientRule: IssuesFound, RuleEvaluationConditionMet: {FOUND}",
    f"step 40: RuleEvaluationConditionMet: {FOUND}",
    "In the inbox: CustomGradientRule detected an issue at step 40",
    "The report: report/report.html below the run",
]


@pytest.fixture(scope="module")
def notebooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", EXAMPLES / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def output_of(name: str, folder) -> str:
    """Run the script in a copy of its folder; return what it prints."""
    shutil.copytree(EXAMPLES / name, folder / name)
    paths = os.pathsep.join(map(str, [*PATHS, ROOT]))
    done = python("story.py", cwd=folder / name, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def streams_of(notebook):
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return [output for output in outputs if output.output_type == "stream"]


def shown_in(notebook):
    """The kinds of data that each output shows."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return [set(output.data) for output in outputs if "data" in output]


def printed_in(notebook) -> str:
    """Return what the notebook printed on stdout; stderr depends on the machine, for example on its fonts."""
    return "".join(output.text for output in streams_of(notebook) if output.name == "stdout")


# A script takes half a minute, and its notebook has the same lines: one of the two is run as a script.


def test_a_custom_rule_is_tried_and_uploaded_and_sends_an_alert(tmp_path):
    printed = output_of("writing_custom_rules", tmp_path)
    assert printed.splitlines()[-len(ENDING) :] == ENDING
    kept = nbformat.read(EXAMPLES / "writing_custom_rules" / "story.ipynb", 4)
    assert printed == printed_in(kept)


def test_a_notebook_shows_how_tensors_distinguish_a_bad_network_from_a_good_one(notebooks, tmp_path):
    folder = tmp_path / "tensor_analysis"
    shutil.copytree(EXAMPLES / "tensor_analysis", folder)
    ran = notebooks.executed(EXAMPLES / "tensor_analysis" / "story.py", folder)
    assert {image.stem for image in (folder / "images").glob("*.gif")} == ANIMATIONS
    for image in (folder / "images").glob("*.gif"):
        with Image.open(image) as picture:
            assert picture.n_frames == 20
    printed = printed_in(ran)
    right = {name: int(share) for name, share in re.findall(r"(\w+): loss .*, (\d+)%", printed)}
    assert right["uniform"] < 50 < 90 < right["he"]
    first, *_, last = re.findall(r"variance of gradients: .* to (\S+)", printed)
    assert float(first) > 100 * float(last)
    assert re.search(r"^bad +DeadRelu detected a problem", printed, re.MULTILINE)
    assert re.search(r"^good +DeadRelu passed", printed, re.MULTILINE)

    kept = nbformat.read(EXAMPLES / "tensor_analysis" / "story.ipynb", 4)
    without = re.compile(r"[\d.e+-]+")  # numbers depend on the processor, the rest does not
    assert without.sub("#", printed) == without.sub("#", printed_in(kept))
    assert shown_in(ran) == shown_in(kept)


@pytest.mark.parametrize("name", STORIES)
def test_a_stored_notebook_is_its_script_with_output(name, notebooks):
    kept = nbformat.read(EXAMPLES / name / "story.ipynb", 4)
    made = notebooks.cells_of(EXAMPLES / name / "story.py")
    sources = [(cell.cell_type, cell.source) for cell in made.cells]
    assert [(cell.cell_type, cell.source) for cell in kept.cells] == sources, (
        "the script has changed: run `make notebooks`"
    )
    assert printed_in(kept)
    assert {output.name for output in streams_of(kept)} == {"stdout"}
    assert (EXAMPLES / name / "story.ipynb").stat().st_size < 300_000
