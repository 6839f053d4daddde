"""When to save."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config.collection import Collection
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys


def saved_steps(schedule, up_to=30):
    return [step for step in range(up_to) if schedule.should_save_step(step)]


def test_every_fifth_step_from_start_to_before_end():
    assert saved_steps(SaveConfigMode(5, start_step=10, end_step=25)) == [10, 15, 20]


def test_save_steps_are_saved_besides_the_interval():
    assert saved_steps(SaveConfigMode(10, save_steps=[3, 12])) == [0, 3, 10, 12, 20]
    assert SaveConfigMode(save_steps=[3]).should_save_step(500)


def test_save_steps_lie_outside_start_and_end_too():
    assert saved_steps(SaveConfigMode(10, start_step=5, end_step=15, save_steps=[2, 29])) == [
        2,
        10,
        29,
    ]


@given(
    interval=st.integers(1, 50),
    start=st.integers(0, 50),
    end=st.none() | st.integers(0, 50),
    steps=st.lists(st.integers(0, 60)),
    step=st.integers(0, 60),
)
def test_a_step_is_saved_by_the_interval_or_by_name(interval, start, end, steps, step):
    by_interval = step >= start and (end is None or step < end) and step % interval == 0
    schedule = SaveConfigMode(interval, start, end, steps)
    assert schedule.should_save_step(step) == (by_interval or step in steps)


@pytest.mark.parametrize("spelled", ["7", 7, 7.0, np.int64(7), " 7 "])
def test_numbers_may_be_strings(spelled):
    assert SaveConfigMode(save_interval=spelled).save_interval == 7


@pytest.mark.parametrize("spelled", ["1, 2", "[1, 2]", [1, 2], (1, 2), ["1", "2"], np.array([1, 2])])
def test_save_steps_may_be_a_list_or_a_string(spelled):
    assert SaveConfigMode(save_steps=spelled).save_steps == [1, 2]


@pytest.mark.parametrize("nothing", ["", None, [], "[]"])
def test_no_save_steps_is_an_empty_list_of_its_own(nothing):
    first, second = SaveConfigMode(save_steps=nothing), SaveConfigMode(save_steps=nothing)
    assert first.save_steps == []
    assert first.save_steps is not second.save_steps


@pytest.mark.parametrize(
    "wrong",
    [
        {"save_interval": 0},
        {"save_interval": -1},
        {"save_interval": "often"},
        {"save_interval": 2.5},
        {"save_interval": True},
        {"start_step": "x"},
        {"end_step": []},
        {"save_steps": 3},
        {"save_steps": ["x"]},
        {"save_steps": [1, True]},
        {"save_steps": {1: 2}},
    ],
)
def test_what_is_not_a_schedule_is_refused_by_name(wrong):
    (field,) = wrong
    with pytest.raises(SMDebugValueError, match=field):
        SaveConfigMode(**wrong)
    with pytest.raises(SMDebugValueError, match=field):
        SaveConfig(**wrong)


def test_without_modes_every_mode_gets_the_same_but_not_one_object():
    config = SaveConfig(save_interval=3, save_steps=iter([1]))
    schedules = [config.get_save_config(mode) for mode in ModeKeys]
    assert schedules == [SaveConfigMode(3, save_steps=[1])] * 4
    assert len({id(schedule.save_steps) for schedule in schedules}) == 4


def test_a_mode_nobody_set_has_to_be_merged_first():
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(2)})
    with pytest.raises(SMDebugValueError, match="EVAL"):
        config.should_save_step(ModeKeys.EVAL, 0)

    config.merge_default_save_config(SaveConfig({ModeKeys.EVAL: SaveConfigMode(7)}))

    assert [config.get_save_config(mode).save_interval for mode in ModeKeys] == [2, 7, 500, 500]


def test_the_callers_dictionary_is_left_alone():
    modes = {ModeKeys.TRAIN: SaveConfigMode(2)}
    SaveConfig(modes)
    assert list(modes) == [ModeKeys.TRAIN]


def test_modes_are_mode_keys_and_values_are_schedules():
    with pytest.raises(SMDebugValueError, match="with a mode"):
        SaveConfig({"TRAIN": SaveConfigMode()})
    with pytest.raises(SMDebugValueError, match="TRAIN"):
        SaveConfig({ModeKeys.TRAIN: 5})
    with pytest.raises(SMDebugValueError):
        SaveConfig([5])
    with pytest.raises(SMDebugValueError):
        SaveConfig().set_save_config(ModeKeys.TRAIN, {"save_interval": 5})


@pytest.mark.parametrize("key", ["TRAIN", "train", ModeKeys.TRAIN])
@pytest.mark.parametrize("value", [{"save_interval": "3"}, SaveConfigMode(3)])
def test_from_dict_takes_names_and_dictionaries(key, value):
    assert SaveConfig.from_dict({key: value}).get_save_config(ModeKeys.TRAIN) == SaveConfigMode(3)


def test_from_dict_fills_in_defaults_but_leaves_unmentioned_modes_open():
    config = SaveConfig.from_dict({"TRAIN": {"start_step": 1}, "EVAL": None}, {"save_interval": 10})
    assert config.get_save_config(ModeKeys.TRAIN) == SaveConfigMode(10, start_step=1)
    assert config.mode_save_configs[ModeKeys.EVAL] is None
    assert SaveConfig.from_dict(None) is None
    with pytest.raises(SMDebugValueError, match="TRAINING"):
        SaveConfig.from_dict({"TRAINING": {}})
    with pytest.raises(SMDebugTypeError):
        SaveConfig.from_dict([1])
    with pytest.raises(SMDebugValueError):
        SaveConfig.from_dict({"TRAIN": 3})


def test_parse_takes_what_people_pass():
    config = SaveConfig(save_interval=3)
    assert SaveConfig.parse(None) == SaveConfig()
    assert SaveConfig.parse(config) is config
    assert SaveConfig.parse(SaveConfigMode(3)) == config
    assert SaveConfig.parse({ModeKeys.TRAIN: SaveConfigMode(3)}).get_save_config(
        ModeKeys.TRAIN
    ) == SaveConfigMode(3)
    with pytest.raises(SMDebugTypeError):
        SaveConfig.parse(10)


def test_json_keeps_the_order_of_modes_it_was_given():
    config = SaveConfig({ModeKeys.GLOBAL: SaveConfigMode(3), ModeKeys.TRAIN: SaveConfigMode(2)})
    assert list(config.to_json_dict()) == ["GLOBAL", "TRAIN", "EVAL", "PREDICT"]
    assert list(SaveConfig().to_json_dict()) == ["TRAIN", "EVAL", "PREDICT", "GLOBAL"]
    assert json.dumps(SaveConfigMode(3).to_json_dict()) == (
        '{"save_interval": 3, "save_steps": [], "start_step": 0, "end_step": null}'
    )


@given(
    st.dictionaries(
        st.sampled_from(ModeKeys),
        st.none()
        | st.builds(SaveConfigMode, st.integers(1), st.integers(0), save_steps=st.lists(st.integers(0))),
    )
)
def test_a_save_config_comes_back_from_its_json(modes):
    config = SaveConfig(modes)
    assert SaveConfig.from_json(config.to_json()) == config


def test_equality_is_by_value_and_nothing_is_hashable():
    assert SaveConfigMode(3) == SaveConfigMode("3")
    assert SaveConfig(save_interval=3) != SaveConfig(save_interval=4)
    assert SaveConfig() != "x"
    assert SaveConfigMode() != "x"
    with pytest.raises(TypeError):
        hash(SaveConfig())
    with pytest.raises(TypeError):
        hash(SaveConfigMode())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"start_step": -3}, "start_step must not be negative, but is -3"),
        ({"end_step": "-1"}, "end_step must not be negative, but is -1"),
        ({"save_steps": [3, -1]}, "save_steps must not be negative, but holds -1"),
        ({"save_steps": "-2"}, "save_steps must not be negative, but holds -2"),
    ],
)
def test_negative_steps_are_refused_with_what_to_do(given, problem):
    for configuration in (SaveConfig, SaveConfigMode):
        with pytest.raises(SMDebugValueError, match=f"{problem}: steps count from 0. "):
            configuration(**given)


def test_an_old_run_that_was_saved_with_negative_steps_can_be_read():
    schedule = {"save_interval": 5, "start_step": -3, "end_step": -1, "save_steps": [-1, 2]}
    content = {"name": "c", "include_regex": [], "save_config": {"TRAIN": schedule}}
    read = Collection.from_dict(content).save_config.get_save_config(ModeKeys.TRAIN)
    assert (read.start_step, read.end_step, read.save_steps) == (0, 0, [2])
