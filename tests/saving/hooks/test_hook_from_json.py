"""A whole run from a JSON file, as SageMaker starts one."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.saving.hooks import singleton
from smdebug.trials import create_trial


@pytest.fixture
def hook_from(tmp_path, monkeypatch):
    def make(described):
        path = tmp_path / "debughookconfig.json"
        path.write_text(json.dumps({"LocalPath": str(tmp_path / "run"), **described}))
        monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path))
        return smdebug.Hook.create_from_json_file()

    return make


def train(hook, steps=6):
    with hook:
        for step in range(steps):
            with hook.step(modes.EVAL if step == 5 else modes.TRAIN):
                hook.record("loss", 1.0 / (step + 1))
                hook.record("gradient/w", np.arange(4.0))
                hook.record("relu", np.ones(2))


def test_sagemakers_configuration_saves_what_it_lists(hook_from, tmp_path):
    hook = hook_from(
        {
            "S3OutputPath": "s3://ignored",
            "HookParameters": {"train.save_interval": "2", "eval.save_interval": "1"},
            "CollectionConfigurations": [
                {
                    "CollectionName": "gradients",
                    "CollectionParameters": {
                        "save_interval": "3",
                        "reductions": "mean,abs_l1,median",
                        "save_raw_tensor": "False",
                    },
                },
                {"CollectionName": "mine", "CollectionParameters": {"include_regex": "relu"}},
            ],
        }
    )
    train(hook)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor("loss").steps(mode=modes.TRAIN) == [0, 2, 4]
    assert trial.tensor("loss").steps(mode=modes.EVAL) == [0]
    assert trial.tensor("gradient/w").steps() == [0, 3]
    assert trial.tensor("gradient/w").reduction_value(0, "l1", abs=True) == 6
    assert trial.tensor("gradient/w").reduction_value(3, "median") == 1.5
    assert trial.tensor("relu").steps() == [0, 2, 4, 5]


def test_one_collection_requested_twice_serves_both(hook_from, tmp_path):
    asked = [
        {"save_interval": "2", "reductions": "min"},
        {"save_interval": "4", "reductions": "max"},
    ]
    hook = hook_from(
        {
            "CollectionConfigurations": [
                {"CollectionName": "gradients", "CollectionParameters": each} for each in asked
            ]
        }
    )
    train(hook, steps=4)
    tensor = create_trial(str(tmp_path / "run")).tensor("gradient/w")
    assert tensor.steps() == [0, 2]
    assert tensor.reduction_values(2) == {("min", False): 0, ("max", False): 3}


def test_a_dry_run_can_be_requested(hook_from, tmp_path):
    hook = hook_from({"HookParameters": {"dry_run": "true", "save_all": "True"}})
    train(hook)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "collections",
        "training_job_end.ts",
    ]


def test_the_last_hook_is_the_hook_of_the_process(hook_from):
    hook = hook_from({})
    assert singleton.current_hook() is hook
    with pytest.raises(TypeError):
        singleton.set_hook("no hook")
    singleton.del_hook()
    assert singleton.current_hook() is None


def test_metrics_of_a_sagemaker_job_are_logged_by_mode(hook_from, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = hook_from({"HookParameters": {"save_interval": "1"}})
    with hook:
        with hook.step(modes.TRAIN):
            hook.record("loss", np.array([1.0, 3.0]))
            hook.record("weight", 1.0)
            hook.save_scalar("speed", 7, sm_metric=True, timestamp=1600000000)
            hook.save_scalar("other", 7)
        with hook.step(modes.EVAL):
            hook.record("loss", 5.0)
    (file,) = (tmp_path / "metrics").iterdir()
    logged = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["MetricName"], line["Value"]) for line in logged] == [
        ("loss_TRAIN", 2.0),
        ("speed_TRAIN", 7.0),
        ("loss_EVAL", 5.0),
    ]
    assert logged[1]["Timestamp"] == 1600000000


def test_names_that_mean_nothing_draw_a_warning_and_stop_no_training(tmp_path, capsys):
    file = tmp_path / "hook.json"
    file.write_text(
        json.dumps(
            {
                "LocalPath": str(tmp_path / "run"),
                "HookParameters": {"save_intervall": "1"},
                "CollectionConfigurations": [{"CollectionName": "weight"}],
            }
        )
    )
    with smdebug.Hook.create_from_json_file(str(file)) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("loss", 1.0)
    output = capsys.readouterr().out
    assert output.count("HookParameters has no save_intervall. Did you mean save_interval?") == 1
    assert "Did you mean weights?" in output


def test_an_option_that_does_not_exist_is_refused_with_the_one_that_was_meant(tmp_path):
    with pytest.raises(TypeError, match=r"no option 'save_al'. Did you mean save_all\?"):
        smdebug.Hook(tmp_path / "run", save_al=True)


def test_a_collection_that_does_not_exist_is_warned_of_once(hook_from, caplog):
    named = {"CollectionName": "weight", "CollectionParameters": {"save_intervall": "2"}}
    train(hook_from({"CollectionConfigurations": [named]}))
    said = [record.getMessage() for record in caplog.records if "Did you mean" in record.getMessage()]
    assert [message.split(".")[0] for message in said] == [
        "Collection weight has no save_intervall",
        "There is no collection weight, and no pattern that selects its tensors",
    ]
