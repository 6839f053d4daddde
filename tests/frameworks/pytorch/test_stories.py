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


def printed_in(notebook) -> str:
    """Return what the notebook printed on stdout; stderr depends on the machine, for example on its fonts."""
    return "".join(output.text for output in streams_of(notebook) if output.name == "stdout")


def test_the_tensors_distinguish_the_bad_network_from_the_good_network(tmp_path):
    printed = output_of("tensor_analysis", tmp_path)
    images = tmp_path / "tensor_analysis" / "images"
    assert {image.stem for image in images.glob("*.gif")} == ANIMATIONS
    for image in images.glob("*.gif"):
        with Image.open(image) as picture:
            assert picture.n_frames == 20
    right = {name: int(share) for name, share in re.findall(r"(\w+): loss .*, (\d+)%", printed)}
    assert right["uniform"] < 50 < 90 < right["he"]
    first, *_, last = re.findall(r"variance of gradients: .* to (\S+)", printed)
    assert float(first) > 100 * float(last)
    assert re.search(r"^bad +DeadRelu detected a problem", printed, re.MULTILINE)
    assert re.search(r"^good +DeadRelu passed", printed, re.MULTILINE)


def test_a_custom_rule_is_tried_and_uploaded_and_sends_an_alert(tmp_path):
    assert output_of("writing_custom_rules", tmp_path).splitlines()[-len(ENDING) :] == ENDING


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


@pytest.mark.parametrize("name", STORIES)
def test_a_notebook_prints_its_stored_output(name, notebooks, tmp_path):
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    ran = notebooks.executed(EXAMPLES / name / "story.py", folder)
    kept = nbformat.read(EXAMPLES / name / "story.ipynb", 4)
    if name == "writing_custom_rules":
        assert printed_in(ran) == printed_in(kept)
    # Numbers depend on the processor; the rest does not.
    without = re.compile(r"[\d.e+-]+")
    assert without.sub("#", printed_in(ran)) == without.sub("#", printed_in(kept))
    shown = [set(output.data) for cell in ran.cells for output in cell.get("outputs", ()) if "data" in output]
    assert shown == [
        set(output.data) for cell in kept.cells for output in cell.get("outputs", ()) if "data" in output
    ]
