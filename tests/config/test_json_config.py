"""Hooks from JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config import json_config
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import SMDebugValueError
from smdebug.mode_keys import ModeKeys


class RecordedHook:
    """An object with a hook's constructor, which shows its arguments."""

    def __init__(self, **arguments):
        self.arguments = arguments
        self.collection_manager = CollectionManager(create_default=True)

    def schedule(self, collection=None, mode=ModeKeys.TRAIN):
        config = self.arguments["save_config"]
        if collection:
            config = self.collection_manager.get(collection, create=False).save_config
        return config.get_save_config(mode)


@pytest.fixture
def hook_from(tmp_path):
    def make(described, **more):
        path = tmp_path / "hook.json"
        path.write_text(described if isinstance(described, str) else json.dumps(described))
        return json_config.create_hook_from_json_config(RecordedHook, str(path), **more)

    return make


def configured(name, **parameters):
    return {"CollectionName": name, "CollectionParameters": parameters}


def test_an_empty_object_is_the_default_hook(hook_from):
    assert hook_from({}).arguments == {
        "out_dir": "/opt/ml/output/tensors",
        "export_tensorboard": False,
        "tensorboard_dir": None,
        "dry_run": False,
        "reduction_config": None,
        "save_config": SaveConfig(),
        "include_regex": None,
        "include_collections": None,
        "include_workers": "one",
        "save_all": False,
    }


@pytest.mark.parametrize("nothing", [None, {}])
def test_null_says_nothing(hook_from, nothing):
    described = {"HookParameters": nothing, "CollectionConfigurations": nothing and []}
    assert hook_from(described).arguments == hook_from({}).arguments


def test_everything_may_be_a_string(hook_from):
    arguments = hook_from(
        {
            "LocalPath": "/tensors",
            "S3OutputPath": "s3://ignored",
            "HookParameters": {
                "save_interval": "4",
                "TRAIN.save_interval": "2",
                "start_step": 1,
                "save_steps": "7, 9",
                "reductions": "min,abs_l1,L2,median",
                "save_raw_tensor": "True",
                "save_shape": "true",
                "include_regex": "relu, tanh",
                "save_all": "True",
                "dry_run": "true",
                "export_tensorboard": "TRUE",
                "tensorboard_dir": "/board",
                "include_workers": "all",
            },
        }
    ).arguments
    assert arguments["out_dir"] == "/tensors"
    assert arguments["save_config"].get_save_config(ModeKeys.TRAIN) == SaveConfigMode(2, 1, save_steps=[7, 9])
    assert arguments["save_config"].get_save_config(ModeKeys.EVAL) == SaveConfigMode(4, 1, save_steps=[7, 9])
    assert arguments["reduction_config"] == ReductionConfig(
        ["min", "median"], norms=["l2"], abs_norms=["l1"], save_raw_tensor=True, save_shape=True
    )
    assert arguments["include_regex"] == ["relu", "tanh"]
    assert arguments["include_workers"] == "all"
    assert (arguments["save_all"], arguments["dry_run"]) == (True, True)
    assert (arguments["export_tensorboard"], arguments["tensorboard_dir"]) == (True, "/board")


@pytest.mark.parametrize("steps", [[1, 2], "1,2", "[1, 2]", ["1", "2"]])
def test_save_steps_may_be_a_list(hook_from, steps):
    hook = hook_from({"HookParameters": {"save_steps": steps}})
    assert hook.schedule().save_steps == [1, 2]
    assert hook_from({"HookParameters": {"save_steps": ""}}).schedule().save_steps == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("relu", ["relu"]),
        ("relu,tanh", ["relu", "tanh"]),
        ("a{1,2}, (b,c), [d,e], f\\,g", ["a{1,2}", "(b,c)", "[d,e]", "f\\,g"]),
        ('["a,b", "c"]', ["a,b", "c"]),
        (["a,b", "c"], ["a,b", "c"]),
        ("[1]", ["[1]"]),
        ("[(],x", ["[(]", "x"]),
        ("\\(,x", ["\\(", "x"]),
        ("(,x", ["(", "x"]),
        ("", []),
        ("[]", []),
    ],
)
def test_a_comma_inside_a_regex_stays_there(hook_from, written, meant):
    described = {"CollectionConfigurations": [configured("c", include_regex=written)]}
    assert hook_from(described).collection_manager.get("c").include_regex == meant


def test_configuring_a_collection_includes_it(hook_from):
    hook = hook_from({"CollectionConfigurations": [{"CollectionName": "a"}, configured("b")]})
    assert hook.arguments["include_collections"] == ["a", "b"]


def test_the_nearest_word_counts(hook_from):
    hook = hook_from(
        {
            "HookParameters": {"save_interval": 11, "train.save_interval": 7, "start_step": 3},
            "CollectionConfigurations": [
                configured("plain"),
                configured("own", save_interval=5),
                configured("both", **{"save_interval": 5, "train.save_interval": 2}),
            ],
        },
        default_values={"save_interval": 99, "end_step": 50},
    )

    def intervals(name):
        return [hook.schedule(name, mode).save_interval for mode in (ModeKeys.TRAIN, ModeKeys.EVAL)]

    assert intervals("plain") == [7, 11]
    assert intervals("own") == [5, 5]
    assert intervals("both") == [2, 5]
    assert hook.schedule("both").start_step == 3
    assert hook.schedule("both").end_step == 50


def test_defaults_reach_collections_without_an_interval_of_their_own(hook_from):
    hook = hook_from(
        {"CollectionConfigurations": [configured("trees")]}, default_values={"save_interval": 10}
    )
    assert hook.schedule("trees").save_interval == 10
    assert hook.schedule().save_interval == 10


levels = st.dictionaries(
    st.sampled_from(["train.save_interval", "eval.save_interval", "save_interval"]),
    st.integers(1, 99),
)


@given(levels, levels, st.sampled_from([ModeKeys.TRAIN, ModeKeys.EVAL]))
def test_precedence(of_hook, of_collection, mode):
    name = f"{mode.name.lower()}.save_interval"
    words = [
        level[key] for level in (of_collection, of_hook) for key in (name, "save_interval") if key in level
    ]
    described = {
        "HookParameters": of_hook,
        "CollectionConfigurations": [configured("c", **of_collection)],
    }
    manager = CollectionManager()
    hook_params = json_config.collect_hook_config_params(described)
    json_config.add_collections_to_manager(manager, described, hook_params)
    schedule = manager.get("c").save_config.get_save_config(mode)
    assert schedule.save_interval == (words[0] if words else 500)


def test_flags_alone_leave_the_rest_as_it_was(hook_from):
    shape = {"HookParameters": {"save_shape": "True"}}
    assert hook_from(shape).arguments["reduction_config"] == ReductionConfig(
        save_raw_tensor=True, save_shape=True
    )
    hook = hook_from(
        {
            "HookParameters": {"reductions": "min"},
            "CollectionConfigurations": [
                configured("raw", save_raw_tensor="true"),
                configured("max", reductions="max"),
                configured("same"),
            ],
        }
    )
    reductions = {c.name: c.reduction_config for c in hook.collection_manager.collections.values()}
    assert reductions["raw"] == ReductionConfig(["min"], save_raw_tensor=True)
    assert reductions["max"] == ReductionConfig(["max"])
    assert reductions["same"] is None


def test_one_collection_asked_for_twice_is_merged(hook_from):
    hook = hook_from(
        {
            "CollectionConfigurations": [
                configured("c", save_interval=4, reductions="min", include_regex="x", start_step=8),
                configured("c", save_interval=6, reductions="max", include_regex="x,y", end_step=9),
                configured("c", save_histogram="false", save_steps="1"),
            ]
        }
    )
    merged = hook.collection_manager.get("c")
    assert hook.arguments["include_collections"] == ["c"]
    assert merged.save_config.get_save_config(ModeKeys.TRAIN) == SaveConfigMode(4, 0, None, [1])
    assert merged.reduction_config == ReductionConfig(["min", "max"], save_raw_tensor=True)
    assert merged.include_regex == ["x", "y"]
    assert merged.save_histogram is True


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        ({"CollectionConfigurations": [{}]}, "CollectionName"),
        ({"CollectionConfigurations": {"a": 1}}, "CollectionConfigurations"),
        ({"HookParameters": []}, "HookParameters"),
        ({"HookParameters": {"save_interval": 0}}, "save_interval"),
        ({"HookParameters": {"save_steps": "a"}}, "save_steps"),
        ({"HookParameters": {"save_all": "perhaps"}}, "save_all"),
        ({"HookParameters": {"reductions": "middle"}}, "middle"),
        ("[1]", "hook.json"),
        ("{", "hook.json"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(hook_from, described, problem):
    with pytest.raises(SMDebugValueError, match=problem):
        hook_from(described)


def test_the_file_is_found_through_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text('{"LocalPath": "/x"}')
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
    assert json_config.get_json_config_as_dict() == {"LocalPath": "/x"}
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        json_config.get_json_config_as_dict()


def test_sagemakers_other_files(tmp_path, monkeypatch):
    path = tmp_path / "tensorboard.json"
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(path))
    assert json_config.get_tensorboard_dir_from_json_config() is None
    path.write_text('{"LocalPath": "/board"}')
    assert json_config.get_tensorboard_dir_from_json_config() == "/board"
    path.write_text("[]")
    assert json_config.get_tensorboard_dir_from_json_config() is None
    assert json_config.get_node_id_from_resource_config() is None


def test_a_mode_is_a_mode():
    with pytest.raises(SMDebugValueError):
        json_config.parse_save_config_dict({}, mode="train")
