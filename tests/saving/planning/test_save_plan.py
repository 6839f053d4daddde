"""The plan: which tensors are saved at which steps."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config.collection import Collection
from smdebug.config.keys import NON_REDUCTION_COLLECTIONS
from smdebug.config.reduction_config import Reduction, ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys
from smdebug.saving.planning import save_plan
from smdebug.saving.planning.default_plan import DefaultPlan, ReplicaPlan
from smdebug.saving.planning.save_plan import NO_MEMBERS, SavePlan, without_tensors

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def every(interval):
    return SaveConfig(save_interval=interval)


def collection(name, regex, interval=1, **settings):
    return Collection(name, [regex], save_config=every(interval), **settings)


def wanted(plan, tensor, step=0, mode=TRAIN):
    return plan.wanted(tensor, plan.of_mode(mode).due(step))


def test_a_tensor_is_wanted_where_a_collection_of_it_is_due():
    plan = SavePlan([collection("weights", "^w", 3), collection("losses", "loss", 2)])
    assert [step for step in range(8) if wanted(plan, "w0", step)] == [0, 3, 6]
    assert [step for step in range(8) if wanted(plan, "loss", step)] == [0, 2, 4, 6]
    assert wanted(plan, "other") is None
    assert plan.of_mode(TRAIN).due(1) == NO_MEMBERS


def test_modes_have_schedules_of_their_own():
    modes = SaveConfig({TRAIN: SaveConfigMode(5), EVAL: SaveConfigMode(2, start_step=2)})
    plan = SavePlan([Collection("c", "x", save_config=modes)])
    assert [step for step in range(6) if wanted(plan, "x", step)] == [0, 5]
    assert [step for step in range(6) if wanted(plan, "x", step, EVAL)] == [2, 4]
    assert [s for s in (0, 250, 500) if wanted(plan, "x", s, ModeKeys.PREDICT)] == [0, 500]


schedules = st.builds(
    SaveConfigMode,
    save_interval=st.integers(1, 9),
    start_step=st.integers(0, 12),
    end_step=st.none() | st.integers(13, 20),
    save_steps=st.lists(st.integers(0, 25), max_size=3),
)


@given(st.lists(schedules, max_size=3), st.integers(-1, 30))
def test_the_plan_knows_how_long_nothing_will_be_due(configured, step):
    plan = SavePlan(
        Collection(f"c{number}", "x", save_config=SaveConfig(dict.fromkeys(ModeKeys, schedule)))
        for number, schedule in enumerate(configured)
    ).of_mode(TRAIN)
    idle = plan.idle_after(step)
    coming = range(step + 1, step + 1 + min(idle, 50))
    assert not any(map(plan.due, coming))
    assert idle > 50 or plan.due(step + 1 + idle)
    assert idle <= 50 or not any(map(plan.due, range(step + 1, step + 100)))


@given(st.integers(0, 3000), st.integers(-1, 3000))
def test_a_plan_that_is_counted_from_a_later_step_is_the_same_from_there(first, step):
    plans = [DefaultPlan([]), DefaultPlan([])]
    plans[1].count_from(first)
    for mode in (TRAIN, ModeKeys.GLOBAL):
        plan, counted = (plan.of_mode(mode) for plan in plans)
        assert counted.due(first + step) == plan.due(step)
        assert counted.idle_after(first + step) == plan.idle_after(step)
    assert plans[1].of_mode(EVAL).due(0) == plans[0].of_mode(EVAL).due(0)


def test_gradients_and_optimizer_variables_belong_to_training():
    plan = SavePlan([collection("gradients", "g"), collection("optimizer_variables", "o")])
    for tensor in ("g", "o"):
        assert wanted(plan, tensor)
        assert wanted(plan, tensor, mode=ModeKeys.GLOBAL)
        assert not wanted(plan, tensor, mode=EVAL)
        assert not wanted(plan, tensor, mode=ModeKeys.PREDICT)


def test_another_collection_saves_gradients_in_evaluation_too():
    plan = SavePlan([collection("gradients", "g"), collection("all", ".*")])
    assert wanted(plan, "g", mode=EVAL)


def test_a_tensor_is_written_once_with_what_all_its_collections_want():
    first = collection("one", "x", reduction_config=ReductionConfig(["min", "max"]))
    other = collection("other", "x", reduction_config=ReductionConfig(["max"], norms=["l2"], save_shape=True))
    both = wanted(SavePlan([other, first]), "x")
    assert both.reductions == (Reduction("min"), Reduction("max"), Reduction("l2"))
    assert both.shape
    assert not both.raw
    assert wanted(SavePlan([first, other, collection("raw", "x")]), "x").raw


def test_without_a_reduction_config_the_value_is_saved():
    assert wanted(SavePlan([collection("c", "x")]), "x").raw
    nothing = collection("c", "x", reduction_config=ReductionConfig(), save_histogram=False)
    assert wanted(SavePlan([nothing]), "x").nothing


@pytest.mark.parametrize("name", sorted(NON_REDUCTION_COLLECTIONS))
def test_losses_and_similar_scalars_are_saved_unchanged(name):
    plan = SavePlan([collection(name, "x", reduction_config=ReductionConfig(["min"]))])
    assert wanted(plan, "x").raw
    assert not wanted(plan, "x").reductions
    assert wanted(plan, "x").histogram_of is None


def test_the_histogram_is_filed_under_the_first_collection_that_wants_one():
    first = collection("a", "x", save_histogram=False)
    plan = SavePlan([collection("c", "x"), first, collection("b", "x"), collection("losses", "x")])
    assert wanted(plan, "x").histogram_of == "b"
    assert wanted(plan, "x").is_scalar
    assert wanted(plan, "x").is_metric


def test_only_included_collections_are_saved_unless_all_is():
    collections = [collection("a", "x"), collection("b", "y"), collection("all", "z")]
    some = SavePlan.prepared(collections, ["a"])
    assert wanted(some, "x")
    assert not wanted(some, "y")
    everything = SavePlan.prepared(collections, ["all"])
    assert wanted(everything, "y")


def test_a_custom_collection_without_a_selection_is_left_out():
    collections = [Collection("mine"), Collection("losses"), Collection("x", tensor_names=["x"])]
    assert without_tensors(collections, ["losses"]) == {"mine"}
    plan = SavePlan.prepared(collections, ["mine", "losses", "x"], built_in=["losses"])
    assert {each.name for each in plan.collections(-1)} == {"losses", "x"}


def test_a_regex_that_does_not_compile_is_refused_before_the_training():
    with pytest.raises(SMDebugValueError, match=re.escape("(x")):
        SavePlan([collection("c", "(x")])


def test_a_tensor_may_be_added_to_a_collection_by_its_name():
    plan = SavePlan([Collection("c", tensor_names=["x(1"], save_config=every(1))])
    assert wanted(plan, "x(1")
    assert [c.name for c in plan.collections(plan.members("x(1"))] == ["c"]


def test_names_are_not_remembered_forever(monkeypatch):
    monkeypatch.setattr(save_plan, "NAMES_REMEMBERED", 10)
    plan = SavePlan([collection("c", "x")])
    for number in range(100):
        assert wanted(plan, f"x{number}")
    assert len(plan._members) <= 10


schedules = st.builds(
    SaveConfigMode,
    st.integers(1, 7),
    st.integers(0, 9),
    st.none() | st.integers(0, 15),
    st.lists(st.integers(0, 20), max_size=3),
)


@given(st.lists(schedules, max_size=6), st.integers(0, 20), st.sampled_from(ModeKeys))
def test_the_plan_agrees_with_each_save_config(modes, step, mode):
    collections = [
        Collection(f"c{number}", f"^t{number}$", save_config=SaveConfig(dict.fromkeys(ModeKeys, each)))
        for number, each in enumerate(modes)
    ]
    plan = SavePlan(collections)
    due = plan.of_mode(mode).due(step)
    for number, each in enumerate(modes):
        assert bool(plan.wanted(f"t{number}", due)) == each.should_save_step(step)


def test_of_a_step_whose_times_alone_are_due_no_other_worker_keeps_a_tensor():
    plan = ReplicaPlan([collection("losses", "loss", 10)])
    whole = plan.of_mode(ModeKeys.TRAIN).due(0)
    wanted = {
        name: plan.planned(name, whole) is not None
        for name in ("dense/weight", "dense_input_0", "gradient/dense/weight", "dense_output_0")
    }
    assert wanted == {
        "dense/weight": True,
        "dense_input_0": True,
        "gradient/dense/weight": False,
        "dense_output_0": False,
    }
    assert plan.planned("dense/weight", plan.times_only) is None
