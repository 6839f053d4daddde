"""Names that do not exist are refused before a script runs, with the one that was meant."""

from __future__ import annotations

import json

import pytest

from smdebug.config.unknown_names import COLLECTIONS, unknown_names
from smdebug.saving.place.places import unused
from tests.cli.processes import in_a_shell

SCRIPT = "print('the script runs')\n"


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return str(tmp_path / "train.py")


def configured(tmp_path, **described):
    file = tmp_path / "hook.json"
    file.write_text(json.dumps(described))
    return str(file)


WRONG = {
    "a collection": ({"CollectionConfigurations": [{"CollectionName": "weight"}]}, "weights"),
    "a parameter": ({"HookParameters": {"save_intervall": "5"}}, "save_interval"),
    "one of a mode": ({"HookParameters": {"evl.save_interval": "5"}}, "eval.save_interval"),
    "a section": ({"HookParameter": {}}, "HookParameters"),
    "one of a collection": (
        {
            "CollectionConfigurations": [
                {"CollectionName": "losses", "CollectionParameters": {"reduction": "min"}}
            ]
        },
        "reductions",
    ),
    "a rule": (
        {
            "DebugRuleConfigurations": [
                {
                    "RuleConfigurationName": "v",
                    "RuleParameters": {"rule_to_invoke": "VanishinGradient"},
                }
            ]
        },
        "VanishingGradient",
    ),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_run_and_doctor_refuse_what_does_not_exist_and_suggest_what_was_meant(what, script, tmp_path, ask):
    described, meant = WRONG[what]
    file = configured(tmp_path, **described)
    result = in_a_shell("run", "--config", file, "--out-dir", str(tmp_path / "run"), script)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"Did you mean {meant}?" in result.stderr
    assert not (tmp_path / "run").exists()
    answer = ask("doctor", "--offline", "--config", file, "--json")
    (check,) = [item for item in answer.json if item["what"] == "hook configuration"]
    assert (answer.code, check["state"]) == (1, "wrong")
    assert f"Did you mean {meant}?" in check["hint"]


def test_several_names_are_refused_in_one_readable_line(script, tmp_path):
    collections = [{"CollectionName": "weight"}, {"CollectionName": "bias"}]
    file = configured(tmp_path, HookParameter={}, CollectionConfigurations=collections)
    refused = in_a_shell("run", "--config", file, script)
    meant = ("HookParameters", "weights", "biases")
    assert [f"Did you mean {name}?" in refused.stderr for name in meant] == [True] * 3
    assert "\\n" not in refused.stderr


def test_run_suggests_collections_and_options(script, tmp_path):
    for words, meant in (
        (("--collections", "weight,losses"), "weights"),
        (("--colections", "weights"), "--collections"),
        (("--out-dir", str(tmp_path / "run"), "--save-intervall=5"), "--save-interval"),
    ):
        result = in_a_shell("run", *words, script)
        assert (result.returncode, result.stdout) == (2, ""), words
        assert f"Did you mean {meant}?" in result.stderr


def test_options_of_the_script_are_its_own(script, tmp_path):
    result = in_a_shell("run", "--out-dir", str(tmp_path / "run"), script, "--colections", "x")
    assert (result.returncode, "the script runs" in result.stdout) == (0, True)


def test_a_run_in_which_nothing_is_trained_says_so(script, tmp_path):
    result = in_a_shell("run", "--out-dir", str(tmp_path / "run"), script)
    assert result.stdout == "the script runs\n"
    assert result.stderr.count("no training of PyTorch, Keras or XGBoost was seen in") == 1


def test_a_place_that_is_used_gets_a_number_unless_an_option_says_otherwise(script, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "training_job_end.ts").touch()
    result = in_a_shell("run", "--out-dir", str(tmp_path / "run"), script)
    assert result.returncode == 0
    assert f"this one is saved to {tmp_path / 'run-2'}" in result.stdout
    assert "is continued" in in_a_shell("run", "--resume", "--out-dir", str(tmp_path / "run"), script).stdout
    refused = in_a_shell("run", "--resume", "--overwrite", "--out-dir", str(tmp_path / "run"), script)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--overwrite or --resume" in refused.stderr


def test_a_default_place_that_is_used_gets_a_number(tmp_path):
    assert unused(tmp_path / "train-1") == tmp_path / "train-1"
    (tmp_path / "train-1").mkdir()
    (tmp_path / "train-1-2").mkdir()
    assert unused(tmp_path / "train-1") == tmp_path / "train-1-3"


def test_every_known_name_is_accepted():
    assert {"weights", "metrics", "trees"} <= set(COLLECTIONS)
    described = {
        "LocalPath": "x",
        "S3OutputPath": "s3://b",
        "HookParameters": {"Save_Interval": "3", "train.save_steps": "1", "save_all": "true"},
        "CollectionConfigurations": [
            *({"CollectionName": name} for name in COLLECTIONS),
            {"CollectionName": "mine", "CollectionParameters": {"include_regex": "relu"}},
        ],
        "DebugRuleConfigurations": [],
    }
    assert unknown_names(described) == []
    assert unknown_names({"HookParameters": 3, "CollectionConfigurations": "x"}) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing-here"], "There is neither a run nor a command 'nothing-here'."),
        (["runs", ".", "--where", "lr<"], "'lr<' lacks a value"),
        (["watch", ".", "--interval", "abc"], "'abc' is not a number"),
        (["local", "--port", "x"], "'x' is not a whole number"),
        (["evaluate", ".", "--start-step", "9", "--end-step", "9"], "No step is left to evaluate"),
    ],
)
def test_wrong_words_are_refused_in_a_sentence(ask, words, sentence):
    answer = ask(*words)
    assert answer.code == 2
    assert sentence in answer.err
