"""A hook shows its options to `help()`, to editors and to type checkers."""

import inspect
from importlib import import_module
from importlib.util import find_spec

import pytest

import smdebug

HOOKS = [
    ("torch", "smdebug.pytorch", "Hook"),
    ("keras", "smdebug.tensorflow", "KerasHook"),
    ("tensorflow", "smdebug.tensorflow", "SessionHook"),
    ("xgboost", "smdebug.xgboost", "Hook"),
    ("mxnet", "smdebug.mxnet", "Hook"),
    ("jax", "smdebug.jax", "Hook"),
    ("transformers", "smdebug.huggingface", "Callback"),
    ("lightning", "smdebug.lightning", "Callback"),
]
INSTALLED = [(package, name) for needed, package, name in HOOKS if find_spec(needed)]


@pytest.mark.parametrize(("package", "name"), INSTALLED, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_a_hook_names_all_that_it_takes(package, name):
    takes = inspect.signature(getattr(import_module(package), name)).parameters
    assert all(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in takes.values())
    of_any_hook = inspect.signature(smdebug.Hook).parameters
    for setting in of_any_hook.keys() - {"worker", "num_workers"}:
        assert takes[setting].default == of_any_hook[setting].default
        assert takes[setting].annotation != inspect.Parameter.empty


@pytest.mark.parametrize(("package", "name"), INSTALLED, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_a_hook_hands_on_all_that_it_takes(package, name, tmp_path):
    hook_class = getattr(import_module(package), name)
    made = hook_class(
        tmp_path / "run",
        True,
        str(tmp_path / "board"),
        True,
        None,
        smdebug.SaveConfig(save_interval=7),
        "some.*name",
        ["biases"],
        True,
        "all",
        run_id="a-run",
        checksum="tfrecord",
        rules=["VanishingGradient"],
        agree=max,
        on_stop=print,
        look_for_stop=3.0,
    )
    hook = getattr(made, "hook", made)
    assert (hook.tensorboard_dir, hook.dry_run) == (str(tmp_path / "board"), True)
    assert hook.save_config == smdebug.SaveConfig(save_interval=7)
    assert hook.include_regex == ["some.*name"]
    assert "biases" in hook.include_collections
    assert hook.save_all
    assert hook.save_all_workers
    assert (hook.options.run_id, hook.options.checksum) == ("a-run", "tfrecord")
    assert b"VanishingGradient" in hook._rules
    assert (hook.agree, hook.on_stop, hook.options.look_for_stop) == (max, print, 3.0)
