"""The six reference runs, read as the library that wrote them read them.

Every key of every `<run>.expected.json` is looked at. What differs is one of `DEFECTS_OF_THE_OLD_READER`, and
only there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug.exceptions import SMDebugError, SMDebugTypeError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.trials import Trial, create_trial
from tests.support.looking import each

RUNS = Path(__file__).parent.parent / "golden" / "runs"
NAMES = sorted(path.name.removesuffix(".expected.json") for path in RUNS.glob("*.expected.json"))

DEFECTS_OF_THE_OLD_READER = {
    "a mode without steps": "tensor_names(mode=…) raised KeyError; it is []",
    "value and shape": "a shape record hid the value of its tensor; both are there",
    "reductions of x:0": "were only found under x; they are found under both",
    "reduction of a string": "raised numpy's own error; it is a typed one",
    "l2 of a matrix": "was the spectral norm, and ValueError above 2-D; it is √Σx²",
    "reduction that was not saved": "named the reduction as the tensor; it names the tensor",
}


def expected(run: str) -> dict[str, Any]:
    # NaN by its name, for it equals nothing.
    text = (RUNS / f"{run}.expected.json").read_text()
    return json.loads(text, parse_constant=str)


@cache
def trial(run: str) -> Trial:
    return create_trial(str(RUNS / run))


def seen(call: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call gives, as the expected files write it."""
    try:
        value = call(*args, **kwargs)
    except SMDebugError as error:
        return {"raises": type(error).__name__, "str": str(error)}
    return described(value) if isinstance(value, np.ndarray | np.generic) else value


def described(value: Any) -> dict[str, Any]:
    data = np.asarray(value).ravel().tolist()
    return {
        "data": [plain(x) for x in data],
        "dtype": str(value.dtype).replace("object", "O"),
        "pytype": type(value).__name__,
        "shape": list(value.shape),
    }


def plain(x: Any) -> Any:
    if isinstance(x, float) and not np.isfinite(x):
        return json.dumps(x)
    return str(x) if isinstance(x, complex) else x


def test_every_run_and_every_key_is_looked_at():
    assert len(NAMES) == 6
    looked_at = {
        "collections",
        "global_step_to_mode",
        "has_passed_step",
        "last_complete_step",
        "last_index_token",
        "loaded_all_steps",
        "modes",
        "num_workers",
        "path",
        "steps",
        "steps_incl_incomplete",
        "tensor_names",
        "tensor_names_by_collection",
        "tensor_names_by_global_step",
        "tensor_names_by_mode",
        "tensors",
        "workers",
    }
    assert {key for run in NAMES for key in expected(run)} == looked_at


@pytest.mark.parametrize("run", NAMES)
def test_the_run_as_a_whole_is_what_the_old_library_saw(run):
    reader, want = trial(run), expected(run)
    assert reader.path == str(RUNS / run)
    assert reader.name == want["path"]
    assert reader.workers() == want["workers"]
    assert sorted(mode.name for mode in reader.modes()) == want["modes"]
    assert reader.num_workers == want["num_workers"]
    assert reader.last_complete_step == want["last_complete_step"]
    assert reader.last_index_token == f"{RUNS / run}/{want['last_index_token']}"
    assert reader.loaded_all_steps is want["loaded_all_steps"]
    assert reader.tensor_names() == want["tensor_names"]
    assert reader.damaged_files == {}
    assert {
        name: sorted(collection.tensor_names) for name, collection in reader.collections().items()
    } == want["collections"]


@pytest.mark.parametrize("mode", list(ModeKeys), ids=lambda mode: mode.name)
@pytest.mark.parametrize("run", NAMES)
def test_the_steps_of_a_mode_are_what_the_old_library_saw(run, mode):
    reader, want = trial(run), expected(run)
    assert reader.steps(mode) == want["steps"][mode.name]
    with_incomplete = reader.steps(mode, show_incomplete_steps=True)
    assert with_incomplete == want["steps_incl_incomplete"][mode.name]


@pytest.mark.parametrize("mode", list(ModeKeys), ids=lambda mode: mode.name)
@pytest.mark.parametrize("run", NAMES)
def test_the_states_of_steps_are_what_the_old_library_saw(run, mode):
    reader, want = trial(run), expected(run)
    states = want["has_passed_step"][mode.name]
    assert {step: reader.has_passed_step(int(step), mode).name for step in states} == states


@pytest.mark.parametrize("run", NAMES)
def test_the_mode_and_its_step_of_each_step_are_what_the_old_library_saw(run):
    reader, want = trial(run), expected(run)
    assert want["global_step_to_mode"]
    for text, (mode_name, mode_step) in want["global_step_to_mode"].items():
        step, mode = int(text), ModeKeys[mode_name]
        assert reader.mode_modestep(step) == (mode, mode_step)
        assert reader.mode(step) is mode
        assert reader.mode_step(step) == mode_step
        assert reader.global_step(mode, mode_step) == step


@pytest.mark.parametrize("mode", list(ModeKeys), ids=lambda mode: mode.name)
@pytest.mark.parametrize("run", NAMES)
def test_the_names_in_a_mode_are_what_the_old_library_saw(run, mode):
    want = expected(run)
    names = want["tensor_names_by_mode"][mode.name]
    if "raises" in names:
        assert not want["steps"][mode.name], DEFECTS_OF_THE_OLD_READER["a mode without steps"]
        names = []
    assert trial(run).tensor_names(mode=mode) == names


@pytest.mark.parametrize("run", NAMES)
def test_the_names_at_each_step_are_what_the_old_library_saw(run):
    reader, want = trial(run), expected(run)
    for text, names in each(want["tensor_names_by_global_step"].items(), at_least=2):
        step = int(text)
        mode, mode_step = reader.mode_modestep(step)
        assert reader.tensor_names(step=step) == names
        assert reader.tensor_names(step=mode_step, mode=mode) == names


@pytest.mark.parametrize("run", NAMES)
def test_the_names_in_each_collection_are_what_the_old_library_saw(run):
    reader, want = trial(run), expected(run)
    for name, names in each(want["tensor_names_by_collection"].items()):
        assert reader.tensor_names(collection=name) == names
        assert reader.tensor_names(collection=reader.collection(name)) == names


def tensors() -> Iterator[tuple[str, str]]:
    for run in NAMES:
        for name in expected(run)["tensors"]:
            yield run, name


@pytest.mark.parametrize(("run", "name"), list(tensors()))
def test_each_tensor_is_what_the_old_library_saw(run, name):
    tensor, want = trial(run).tensor(name), expected(run)["tensors"][name]
    assert tensor.name == name
    assert tensor.original_name == want["original_name"]
    for mode in ModeKeys:
        in_mode = want["modes"][mode.name]
        assert tensor.steps(mode) == in_mode["steps"]
        assert tensor.steps(mode, show_incomplete_steps=True) == in_mode["steps_incl_incomplete"]
        assert tensor.prev_steps(4, 2, mode) == in_mode["prev_steps_of_4"]
        for step, at_step in in_mode["values"].items():
            check_step(tensor, int(step), mode, at_step)


def check_step(tensor: Any, step: int, mode: ModeKeys, want: dict[str, Any]) -> None:
    known = {"default", "by_worker", "reduction_value_l2_abs", "reduction_value_mean"}
    assert set(want) <= known | {"reductions", "shape", "workers"}
    assert tensor.workers(step, mode) == want["workers"]
    shape = seen(tensor.shape, step, mode)
    assert (list(shape) if isinstance(shape, tuple) else shape) == want["shape"]

    value = seen(tensor.value, step, mode)
    if "raises" in want["default"] and "raises" not in value:  # value and shape
        assert want["default"]["raises"] == "TensorUnavailableForStep"
        assert tensor.name == "weight/dense:0"
        assert value["shape"] == want["shape"]
    elif "raises" in want["default"]:  # with reductions of x:0, the text goes on with a hint
        assert value["raises"] == want["default"]["raises"]
        assert value["str"].startswith(want["default"]["str"])
    else:
        assert value == want["default"]
    for worker, by_worker in want.get("by_worker", {}).items():
        assert seen(tensor.value, step, mode, worker) == by_worker

    reductions = {
        ("abs_" if magnitude else "") + name: described(reduction)
        for (name, magnitude), reduction in tensor.reduction_values(step, mode).items()
    }
    if reductions != want["reductions"]:  # reductions of x:0
        plain = tensor.trial.tensor(tensor.name.removesuffix(":0"))
        assert plain is not tensor
        assert tensor.reduction_values(step, mode) == plain.reduction_values(step, mode)
    check_computed(tensor, step, mode, "mean", False, want["reduction_value_mean"])
    check_computed(tensor, step, mode, "l2", True, want["reduction_value_l2_abs"])


def check_computed(
    tensor: Any, step: int, mode: ModeKeys, name: str, magnitude: bool, want: dict[str, Any]
) -> None:
    call = tensor.reduction_value, step, name, mode
    if want.get("raises") == "UFuncTypeError":  # reduction of a string
        with pytest.raises(SMDebugTypeError):
            call[0](*call[1:], abs=magnitude)
        return
    got = seen(*call, abs=magnitude)
    if want.get("raises") == "TensorUnavailableForStep":
        if "raises" in got:  # reduction that was not saved
            assert got["raises"] == "TensorUnavailableForStep"
            assert got["str"].startswith(f"Value for tensor {tensor.name} is not available")
        else:  # value and shape, reductions of x:0
            assert tensor.name.endswith(":0")
        return
    saved = (name, magnitude) in tensor.reduction_values(step, mode)
    if name == "l2" and not saved and tensor.value(step, mode).ndim >= 2:  # l2 of a matrix
        value = tensor.value(step, mode).astype(np.float64)
        assert got["data"] == pytest.approx([np.sqrt((value**2).sum())], rel=1e-6)
        return
    assert got == want


def test_the_old_readers_defects_are_the_ones_the_reference_names():
    notes = (RUNS / "README.md").read_text()
    for word in ("raw+shape saved", "filed under", "KeyError", "spectral norms", "string tensor"):
        assert word in notes
    assert len(DEFECTS_OF_THE_OLD_READER) == 6
    with pytest.raises(TensorUnavailableForStep, match=r"^Value for tensor weight/dense is"):
        trial("single_worker").tensor("weight/dense").reduction_value(0, "mean")
