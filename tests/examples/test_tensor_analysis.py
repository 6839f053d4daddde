"""The story of the original's notebook runs, and tells the good network from the bad one."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

from smdebug.saving import singleton

ROOT = Path(__file__).parents[2]


def test_the_tensors_tell_the_good_network_from_the_bad_one(tmp_path):
    path = os.pathsep.join([str(ROOT / "layers/smdebug_core/python"), str(ROOT / "rules")])
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/tensor_analysis.py"), "--out-dir", str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error"},
    )
    assert done.stderr == ""
    losses = dict(re.findall(r"^(bad|good) +step  190: loss ([\d.]+)$", done.stdout, re.MULTILINE))
    assert float(losses["bad"]) > 10 * float(losses["good"])
    animations = sorted(one.name for one in tmp_path.glob("*.gif"))
    assert animations == [
        "activation_inputs.gif",
        "activation_outputs.gif",
        "gradients.gif",
        "gradients_comparison.gif",
        "layer_inputs.gif",
        "layer_outputs.gif",
        "weights.gif",
    ]
    for name in animations:
        with Image.open(tmp_path / name) as picture:
            assert picture.n_frames == 20
    for name in ("loss", "variance", "dead_units"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_the_notebook_is_the_script_and_its_cells_run_one_after_the_other(
    tmp_path, monkeypatch, capsys
):
    script = ROOT / "examples" / "tensor_analysis.py"
    spec = importlib.util.spec_from_file_location(
        "as_notebook", ROOT / "examples" / "as_notebook.py"
    )
    assert spec is not None
    assert spec.loader is not None
    making = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(making)
    kept = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert kept == making.text_of(script.read_text(encoding="utf-8")), (
        "make it again: examples/as_notebook.py"
    )

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMDEBUG_LOG_LEVEL", "error")
    monkeypatch.setattr(singleton, "_hook", None)  # no hook of another test
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in json.loads(kept)["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec", dont_inherit=True), names)
    assert len(list((tmp_path / "images").glob("*.gif"))) == 7
    assert "bad   step  190: loss" in capsys.readouterr().out
