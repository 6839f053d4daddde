"""A run saved by the hook beside the one that the old library saved of the same training."""

import json
from pathlib import Path

import numpy as np
import pytest

from smdebug import ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.saving.hooks.hook import CallbackHook
from smdebug.trials import create_trial

GOLDEN = Path(__file__).parents[2] / "golden" / "runs" / "single_worker"
COLLECTIONS = "collections/000000000/worker_0_collections.json"
SEQUENCE = [modes.TRAIN] * 7 + [modes.EVAL] * 3 + [modes.GLOBAL] * 4
IN_TRAINING = "gradient/dense/kernel:0"


class NumpyHook(CallbackHook):
    """As the hook that saved the golden run."""

    def __init__(self, out_dir):
        regexes = {
            "all": [],
            "default": [],
            "weights": ["^weight"],
            "gradients": ["^gradient"],
            "biases": ["^bias"],
            "losses": ["^loss"],
        }
        manager = CollectionManager({name: Collection(name, r) for name, r in regexes.items()})
        super().__init__(
            manager,
            ["losses"],
            out_dir=out_dir,
            include_collections=["weights", "gradients", "biases", "custom", "types"],
            save_config=SaveConfig(
                {
                    modes.TRAIN: SaveConfigMode(2),
                    modes.EVAL: SaveConfigMode(1),
                    modes.GLOBAL: SaveConfigMode(3, start_step=3),
                }
            ),
        )

    def _get_default_collections(self):
        return ["all", "default", "weights", "gradients", "biases", "losses"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The golden training once more: the same values are offered at the same steps."""
    golden = create_trial(str(GOLDEN))
    out_dir = tmp_path_factory.mktemp("runs") / "single_worker"
    described = json.loads((GOLDEN / COLLECTIONS).read_text())["collections"]
    hook = NumpyHook(str(out_dir))
    hook.add_collection(Collection.from_dict({**described["custom"], "tensor_names": []}))
    hook.add_collection(Collection.from_dict({**described["types"], "tensor_names": []}))
    hook.get_collection("weights").reduction_config = ReductionConfig(
        norms=["l2"], save_raw_tensor=True, save_shape=True
    )
    hook.get_collection("gradients").reduction_config = ReductionConfig.from_dict(
        described["gradients"]["reduction_config"]
    )
    with hook:
        for step, mode in enumerate(SEQUENCE):
            hook.step(mode)
            names = [name for name in golden_names(step) if name in golden.tensor_names()]
            for name in dict.fromkeys(names):
                if not name.startswith("scalar/") and name != "my_custom":
                    hook.record(name, golden.tensor(name).value(step))
                if name == "bias/dense":
                    hook.record(IN_TRAINING, np.ones((4, 3), np.float32))
            if "t_f16" in names:
                hook.record("t_empty", np.zeros(0))
    return out_dir


def golden_names(step, root=GOLDEN):
    path = root / f"index/000000000/{step:012}_worker_0.json"
    if not path.exists():
        return []
    return [entry["tensorname"] for entry in json.loads(path.read_text())["tensor_payload"]]


def index_files(root):
    return sorted(path.relative_to(root) for path in (root / "index").glob("*/*.json"))


def test_the_same_steps_are_saved(saved):
    assert index_files(saved) == index_files(GOLDEN)


def test_the_collections_file_is_the_same_but_for_what_we_add_to_meta(saved):
    ours = json.loads((saved / COLLECTIONS).read_text())
    theirs = (GOLDEN / COLLECTIONS).read_text()
    added = {"run_id", "training_run", "closed", "last_step", "steps_written", "file_crc32c"}
    assert ours["_meta"].keys() == {"num_workers", *added}
    ours["_meta"] = {"num_workers": ours["_meta"]["num_workers"]}
    assert json.dumps(ours) == theirs


@pytest.mark.parametrize("index_file", index_files(GOLDEN), ids=lambda path: path.stem)
def test_each_index_file_is_the_same_but_for_the_keys_we_add(saved, index_file):
    ours = json.loads((saved / index_file).read_text())
    theirs = json.loads((GOLDEN / index_file).read_text())
    assert {key: ours["meta"][key] for key in theirs["meta"]} == theirs["meta"]
    assert ours["shape_payload"] == theirs["shape_payload"]
    recorded = [
        entry
        for entry in theirs["tensor_payload"]
        if not entry["tensorname"].startswith(("scalar/", "my_custom"))
    ]
    assert names_and_lengths(ours["tensor_payload"]) == names_and_lengths(recorded)


def names_and_lengths(payload):
    return [(entry["tensorname"], entry["length"]) for entry in payload]


def test_the_values_are_the_same(saved):
    ours, theirs = create_trial(str(saved)), create_trial(str(GOLDEN))
    compared = 0
    for name in set(ours.tensor_names()) - {"gradient/dense/kernel", IN_TRAINING, "weight/dense"}:
        for step in ours.tensor(name).steps():
            mine, golden = ours.tensor(name).value(step), theirs.tensor(name).value(step)
            assert mine.dtype == golden.dtype
            np.testing.assert_array_equal(mine, golden)
            compared += 1
    assert compared > 40
