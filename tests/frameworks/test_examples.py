"""The examples run, and leave runs that can be read."""

from importlib.util import find_spec

import pytest

from smdebug.trials import create_trial
from tests.frameworks.scripts import ROOT, python

EXAMPLES = ROOT / "examples" / "frameworks"
NEEDS = {
    "pytorch_loop": ["torch"],
    "keras_fit": ["keras", "tensorflow"],
    "tensorflow_tape": ["keras", "tensorflow"],
    "xgboost_train": ["xgboost"],
    "huggingface_trainer": ["transformers", "torch"],
    "lightning_fit": ["lightning", "torch"],
    "jax_flax": ["jax", "flax", "optax"],
    "mxnet_gluon": ["mxnet"],
}
HERE = [name for name, needed in NEEDS.items() if all(map(find_spec, needed))]


def test_there_is_a_list_of_all_of_them():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*NEEDS, "unchanged"}


@pytest.mark.parametrize("name", HERE)
def test_an_example_trains_and_saves(name, tmp_path):
    run = tmp_path / "run"
    done = python(EXAMPLES / f"{name}.py", "--out-dir", run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
    trial = create_trial(str(run))
    assert len(trial.steps()) > 2
    assert trial.loaded_all_steps
