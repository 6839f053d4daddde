"""The options of hooks: what each constructor takes and shows, and what counts as a choice of tensors."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import smdebug
from smdebug.config.constants import WRITE_PATIENCE_SECONDS_KEY, WRITE_QUEUE_MB_KEY
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.saving.hooks.options import HookOptions, checked_interval, signature_with, takes
from smdebug.storage.memory import MemoryStorage
from tests.saving.saved_files import EVERY_STEP, collections_of, names_at

WEIGHTS = {"w": np.ones(3), "gradient/w": np.ones(3)}


def saved_with(place, **options):
    with smdebug.Hook(str(place), save_config=EVERY_STEP, **options) as hook, hook.step():
        hook.get_collection("weights").include("^w$")
        hook.record_all({**WEIGHTS, "loss": 0.5})
    return [name for name in names_at(place, 0) if not name.startswith("smdebug/")]


@pytest.mark.parametrize(
    ("options", "saved"),
    [
        ({"include_collections": "gradients"}, ["gradient/w", "loss"]),
        ({"include_collections": ["gradients"]}, ["gradient/w", "loss"]),
        ({"include_collections": (name for name in ["gradients"])}, ["gradient/w", "loss"]),
        ({"include_regex": "^w$"}, ["w", "loss"]),
        ({"include_regex": ["^w$", "grad"]}, ["w", "gradient/w", "loss"]),
        ({"save_all": True}, ["w", "gradient/w", "loss"]),
        ({"save_all": "true"}, ["w", "gradient/w", "loss"]),
        ({"save_all": False}, ["loss"]),
    ],
)
def test_tensors_are_chosen_by_collections_patterns_or_all_at_once(options, saved, out_dir):
    assert saved_with(out_dir, **options) == saved


@pytest.mark.parametrize(
    ("options", "chooses"),
    [
        ({}, False),
        ({"save_all": False}, False),
        ({"include_collections": []}, True),
        ({"include_collections": "losses"}, True),
        ({"include_regex": "x"}, True),
        ({"save_all": True}, True),
        ({"save_config": {}}, True),
        ({"reduction_config": smdebug.ReductionConfig()}, True),
        ({"dry_run": True, "note": "x", "include_workers": "all"}, False),
    ],
)
def test_the_default_plan_is_followed_unless_an_option_chooses_tensors(options, chooses):
    made = HookOptions(MemoryStorage("run"), **options)
    assert made.chooses_tensors is chooses
    again = HookOptions(**made.as_arguments())
    assert again.chooses_tensors is chooses, "options that are made of others choose as they do"
    assert again.include_regex == made.include_regex
    assert again.include_workers == made.include_workers
    assert again.chooses_workers is made.chooses_workers is ("include_workers" in options)


@pytest.mark.parametrize(("workers", "all_of_them"), [("all", True), (" ALL ", True), ("one", False)])
def test_every_worker_saves_or_the_chief_alone(workers, all_of_them):
    assert HookOptions(include_workers=workers).save_all_workers is all_of_them


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reduction_config": 3}, SMDebugTypeError, "must be a ReductionConfig, not 3"),
        ({"checksum": "md5"}, SMDebugValueError, '"constant" or "tfrecord"'),
        ({"look_for_stop": -1}, SMDebugValueError, "look_for_stop must be a number of seconds"),
        ({"look_for_stop": float("nan")}, SMDebugValueError, "look_for_stop"),
        ({"dry_run": "perhaps"}, SMDebugValueError, "dry_run"),
    ],
)
def test_an_option_that_cannot_be_is_refused_when_the_hook_is_made(options, error, message):
    with pytest.raises(error, match=message):
        HookOptions(**options)
    HookOptions(look_for_stop=0)
    HookOptions(look_for_stop=None, checksum="tfrecord")


def test_a_step_in_so_many_is_a_whole_number():
    assert [checked_interval(steps) for steps in (None, 1, 1000)] == [None, 1, 1000]
    for steps in (0, -5, 2.0, "3", True):
        with pytest.raises(SMDebugValueError, match="one step in 1,000"):
            checked_interval(steps)


@dataclass(frozen=True)
class FrameOptions(HookOptions):
    """Those of a framework."""

    layers: str = "all"


class Frame:
    """A hook that keeps its options."""

    @takes(FrameOptions, positional=2)
    def __init__(self, options):
        self.options = options


def test_a_constructor_shows_the_options_as_its_parameters():
    shown = inspect.signature(Frame.__init__)
    assert list(shown.parameters)[:3] == ["self", "out_dir", "export_tensorboard"]
    kinds = [parameter.kind for parameter in shown.parameters.values()]
    assert kinds[:3] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 3
    assert set(kinds[3:]) == {inspect.Parameter.KEYWORD_ONLY}
    assert "layers" in shown.parameters
    assert shown.parameters["include_workers"].default == "one"
    assert type(shown.parameters["include_workers"].default) is str
    assert "options" not in shown.parameters

    def construct(self, first, *positional, **options):
        pass

    assert list(signature_with(HookOptions, construct).parameters)[:3] == ["self", "first", "out_dir"]


def test_a_constructor_takes_the_options_and_names_what_was_probably_meant():
    assert Frame("run", True, layers="some").options.layers == "some"
    assert Frame("run", True).options.export_tensorboard is True
    with pytest.raises(TypeError, match=r"Frame has no option 'layer'.*layers"):
        Frame("run", layer="some")
    with pytest.raises(TypeError, match="positional"):
        Frame("run", True, None)


def test_a_queue_and_a_patience_are_set_by_the_environment(monkeypatch, out_dir):
    monkeypatch.setenv(WRITE_QUEUE_MB_KEY, "3")
    monkeypatch.setenv(WRITE_PATIENCE_SECONDS_KEY, "7.5")
    with smdebug.Hook(str(out_dir)) as hook, hook.step():
        writer = hook.recorder.run.writer
        assert (writer.patience, writer.background._max_bytes) == (7.5, 3 << 20)


def test_collections_can_be_configured_until_the_first_step(out_dir):
    hook = smdebug.Hook(str(out_dir))
    assert not hook.prepared_collections
    assert hook.run_id == ""
    assert hook.has_default_configuration()
    assert "weights" in hook.get_collections()
    hook.get_collection("mine").include("^w")
    with pytest.raises(SMDebugTypeError, match="takes a Collection"):
        hook.add_collection("mine")
    with hook.step():
        hook.record("loss", 1.0)
        assert hook.prepared_collections
        assert hook.run_id
    hook.export_collections()
    assert collections_of(out_dir)["collections"]["mine"]["include_regex"] == ["^w"]
    hook.close()


@pytest.mark.parametrize("by_user", [False, True])
def test_what_a_hook_registers_itself_is_no_choice_of_the_user(by_user, out_dir):
    with smdebug.Hook(str(out_dir)) as hook:
        if by_user:
            hook.get_collection("weights").include("^a")
        hook.include_without_choosing(hook.get_collection("weights"), "^b")
        with hook.step():
            assert (hook.observations is None) is by_user, "the default plan is followed, or not"


def test_rules_and_hyperparameters_are_set_before_the_first_step(out_dir):
    with smdebug.Hook(str(out_dir)) as hook:
        hook.set_rules(["VanishingGradient"])
        hook.set_rules(["LossNotDecreasing"])
        hook.add_config({"rate": 0.1})
        with hook.step(), pytest.raises(smdebug.exceptions.SMDebugRuntimeError, match="to change its rules"):
            hook.set_rules(["VanishingGradient"])
    assert "LossNotDecreasing" in (out_dir / "rules.json").read_text()
    assert "VanishingGradient" not in (out_dir / "rules.json").read_text()
    assert '"rate": 0.1' in (out_dir / "origin.json").read_text()
