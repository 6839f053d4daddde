"""The framework packages, with and without their frameworks."""

import importlib
import sys

import numpy as np
import pytest

from smdebug.exceptions import FrameworkMissing, SMDebugNotImplementedError, SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.saving.hooks import framework, singleton
from smdebug.trials import create_trial

HOOKS = [
    ("pytorch", "torch", "Hook"),
    ("mxnet", "mxnet", "Hook"),
    ("xgboost", "xgboost", "Hook"),
    ("tensorflow", "tensorflow", "KerasHook"),
    ("tensorflow", "tensorflow", "SessionHook"),
    ("tensorflow", "tensorflow", "EstimatorHook"),
    ("huggingface", "huggingface", "Callback"),
    ("lightning", "lightning", "Callback"),
    ("jax", "jax", "Hook"),
]
SHARED = [
    "Collection",
    "CollectionKeys",
    "SaveConfig",
    "SaveConfigMode",
    "ReductionConfig",
    "modes",
    "create_trial",
    "get_hook",
    "set_hook",
    "del_hook",
]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Remove hooks of earlier tests, and import the modules that need a framework again."""
    monkeypatch.setattr(singleton, "_hook", None)
    for package in dict.fromkeys(package for package, _, _ in HOOKS):
        for name in ("hook", "keras", "session", "base_hook", "callback"):
            monkeypatch.delitem(sys.modules, f"smdebug.{package}.{name}", raising=False)
            home = f"smdebug.compatibility.{package}.{name}"  # of the hook that only old code uses
            monkeypatch.delitem(sys.modules, home, raising=False)
        found = importlib.import_module(f"smdebug.{package}")
        for name in ("Hook", "KerasHook", "SessionHook", "EstimatorHook", "Callback"):
            monkeypatch.delitem(vars(found), name, raising=False)


@pytest.fixture
def missing(monkeypatch):
    monkeypatch.setattr(framework, "find_spec", lambda module: None)


@pytest.mark.parametrize("package", ["pytorch", "mxnet", "xgboost", "tensorflow"])
def test_what_needs_no_framework_is_there_without_it(package, missing):
    smd = importlib.import_module(f"smdebug.{package}")
    for name in SHARED:
        assert getattr(smd, name) is not None
        assert name in smd.__all__
    assert smd.modes is ModeKeys
    assert smd.create_trial is create_trial
    with pytest.raises(AttributeError):
        smd.nothing_like_it
    assert smd.get_hook is importlib.import_module(f"smdebug.{package}.singleton_utils").get_hook


@pytest.mark.parametrize(("package", "extra", "name"), HOOKS)
def test_without_the_framework_a_hook_says_what_to_install(package, extra, name, missing):
    smd = importlib.import_module(f"smdebug.{package}")
    with pytest.raises(ImportError, match=rf"pip install .*\[{extra}\]") as caught:
        getattr(smd, name)
    assert isinstance(caught.value, FrameworkMissing)
    assert caught.value.extra == extra


def test_without_the_framework_only_making_a_hook_fails(missing):
    torch = importlib.import_module("smdebug.pytorch")
    assert torch.get_hook() is None
    with pytest.raises(FrameworkMissing):
        torch.get_hook(create_if_not_exists=True)


@pytest.mark.parametrize(
    ("package", "collection", "members", "others"),
    [
        ("pytorch", "weights", ["Net_blk.0.weight"], ["gradient/Net_weight"]),
        ("pytorch", "losses", ["CrossEntropyLoss_output_0"], ["CrossEntropyLoss_input_1"]),
        ("mxnet", "losses", ["softmaxcrossentropyloss10_output_0"], ["loss0_input_0"]),
        ("xgboost", "metrics", ["train-rmse", "eval_2-ndcg@5", "0-auc"], ["predictions"]),
        ("xgboost", "losses", ["train-rmse", "v1-logloss"], ["train-auc", "train-map"]),
        (
            "xgboost",
            "average_shap",
            ["average_shap/a", "average_shap/bias_b"],
            ["average_shap/bias"],
        ),
        ("xgboost", "full_shap", ["full_shap/f/"], ["full_shap/bias"]),
        ("tensorflow", "losses", ["loss", "val_loss"], ["gradients/loss"]),
        (
            "tensorflow",
            "weights",
            ["dense/weights/dense/kernel:0", "weights/dense/kernel:0"],
            ["weights/d/bias:0"],
        ),
    ],
)
def test_default_collections_know_their_members(package, collection, members, others):
    from smdebug.config.patterns import matches_any

    manager = importlib.import_module(f"smdebug.{package}.collection").CollectionManager()
    regexes = manager.get(collection, create=False).include_regex
    assert [name for name in members + others if matches_any(name, regexes)] == members


def test_collections_come_back_from_their_file(tmp_path):
    manager_class = importlib.import_module("smdebug.pytorch.collection").CollectionManager
    manager = manager_class()
    again = manager_class.load_from_string(manager.to_json())
    assert again == manager
    assert list(manager_class(create_default=False).collections) == []


def test_frameworks_add_their_own_things_to_collections():
    class Named:
        name = "dense"

    mxnet = importlib.import_module("smdebug.mxnet.collection").Collection("c")
    mxnet.add_block_tensors(Named(), inputs=True, outputs=True)
    assert mxnet.include_regex == ["dense_input_", "dense_output_"]

    tensorflow = importlib.import_module("smdebug.tensorflow.collection").Collection("c")
    tensorflow.add([Named(), [Named()]])
    tensorflow.add_for_mode(Named())
    tensorflow.add_keras_layer(Named(), inputs=True)
    assert tensorflow.tensor_names == {"dense"}
    assert tensorflow.include_regex == ["^dense/inputs", "^dense/outputs"]
    with pytest.raises(TypeError):
        tensorflow.add(3)
    with pytest.raises(SMDebugNotImplementedError):
        tensorflow.get_tensors()


def test_questions_about_frameworks():
    torch = importlib.import_module("smdebug.pytorch.utils")
    assert torch.get_reduction_of_data("max", np.array([1, -3]), "x", abs=True) == 3
    assert isinstance(torch.is_pt_1_9(), bool)
    xgboost = importlib.import_module("smdebug.xgboost.utils")
    assert isinstance(xgboost.is_xgb_1_7_and_later(), bool)

    tensorflow = importlib.import_module("smdebug.tensorflow.utils")
    cluster = '{"ps": ["a"], "worker": ["b", "c"], "chief": ["d"]}'
    described = f'{{"cluster": {cluster}, "task": {{"type": "worker", "index": "1"}}}}'
    config = tensorflow.load_tf_config_json(described)
    assert tensorflow.is_parameter_server_strategy(config)
    assert tensorflow.get_worker_id_from_tf_config(config) == "worker_1"
    assert tensorflow.get_num_workers_from_tf_config(config) == 3
    assert tensorflow.get_chief_worker_from_tf_config(config) == "chief_0"
    assert tensorflow.load_tf_config_json("x") is None
    for question in (
        tensorflow.get_worker_id_from_tf_config,
        tensorflow.get_chief_worker_from_tf_config,
    ):
        with pytest.raises(SMDebugValueError):
            question({})
