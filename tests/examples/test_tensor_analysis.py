"""The story of the original's notebook runs, and tells the good network from the bad one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

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
