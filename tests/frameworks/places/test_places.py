"""One line in trainings of accelerate and Lightning Fabric, on two ranks."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug.pytorch as smd
from smdebug_default_rules.catalog import CATALOG
from tests.smdebug_default_rules.made_runs import findings_of

ROOT = Path(__file__).parents[3]
PARAMETERS = ["Sequential_0.weight", "Sequential_0.bias", "Sequential_2.weight", "Sequential_2.bias"]


def needs(package):
    is_there = importlib.util.find_spec(package) is not None
    return pytest.mark.skipif(not is_there, reason=f"needs {package}")


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        pytest.param("with_accelerate.py", [], marks=needs("accelerate")),
        pytest.param("with_fabric.py", ["copies"], marks=needs("lightning")),
        pytest.param("with_fabric.py", ["sharded"], marks=needs("lightning")),
    ],
)
def test_a_step_is_an_update_and_wrappers_change_no_name(tmp_path, script, arguments):
    paths = [ROOT / "layers" / "smdebug_core" / "python", ROOT / "rules"]
    run = tmp_path / "run"
    launched = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = subprocess.run(
        [*launched, str(Path(__file__).with_name(script)), str(run), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "leaves out" not in ended.stderr
    trial = smd.create_trial(str(run))
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.steps() == [*range(11), 15]  # 512 rows by 2 ranks, of 8 each and 2 passes to an update
    assert len(trial.series("loss")) == 16
    facts = trial.facts(6)
    assert (facts["backward_passes"], facts["gradients_were_reset"]) == (2, True)
    assert trial.measured_tensors("parameters") == PARAMETERS
    assert trial.measured_tensors("updates") == [f"update/{name}" for name in PARAMETERS]
    whole = trial.statistics(0, wholes=True)
    assert bool(whole.combined) == (arguments == ["sharded"])
    assert whole.row("gradient/Sequential_0.weight")["count"] == 16 * 8
    for rule in ("ReplicasDiffer", "RanksAlike", "AccumulationScale"):
        assert findings_of(CATALOG[rule].load()(trial), trial.steps()) == []
