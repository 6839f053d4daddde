"""A hook can bring the rules of its run along."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import SaveConfig
from smdebug.exceptions import (
    RulesFileError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    StorageUnavailable,
)
from smdebug.saving.hooks import singleton
from smdebug.service.records import RuleConfiguration
from smdebug.service.rules_file import parse_rules
from smdebug.storage.memory import MemoryStorage

SAGEMAKER = [
    {
        "RuleConfigurationName": "vanishing",
        "RuleEvaluatorImage": "x",
        "RuleParameters": {"rule_to_invoke": "VanishingGradient", "threshold": "1e-5"},
    }
]


class InOrder(MemoryStorage):
    """A place that records the order in which its objects were written."""

    def __init__(self):
        super().__init__()
        self.order = []

    def write(self, key, data):
        self.order.append(key)
        super().write(key, data)

    def create(self, key):
        self.order.append(key)
        return super().create(key)


def train(hook):
    with hook:
        for _ in range(2):
            with hook.step():
                hook.record("loss", np.ones(1))


def rules_in(storage):
    return parse_rules(storage.read("rules.json"), file="rules.json")


def test_rules_are_written_before_anything_else():
    storage = InOrder()
    configured = RuleConfiguration("mine", "Mine", source="s3://bucket/mine.py")
    train(
        smdebug.Hook(
            storage,
            save_config=SaveConfig(save_interval=1),
            rules=[
                "AllZero",
                {"rule": "ExplodingTensor", "parameters": {"only_nan": True}},
                configured,
            ],
        )
    )
    # But for the claim of a place that processes share, which is not part of the run.
    assert next(key for key in storage.order if key != "claim.smd") == "rules.json"
    assert storage.order.count("rules.json") == 1
    assert len(storage.order) > 5
    assert rules_in(storage) == (
        RuleConfiguration("AllZero", "AllZero"),
        RuleConfiguration("ExplodingTensor", "ExplodingTensor", {"only_nan": "True"}),
        configured,
    )


@pytest.mark.parametrize(
    "rules",
    [
        "VanishingGradient",
        {"rule": "VanishingGradient"},
        RuleConfiguration("VanishingGradient", "VanishingGradient"),
    ],
)
def test_one_rule_needs_no_list(rules):
    storage = MemoryStorage()
    train(smdebug.Hook(storage, rules=rules))
    assert rules_in(storage) == (RuleConfiguration("VanishingGradient", "VanishingGradient"),)


def test_without_rules_nothing_is_written_and_without_any_the_run_has_none():
    storage = MemoryStorage()
    train(smdebug.Hook(storage))
    assert not storage.exists("rules.json")
    storage = MemoryStorage()
    train(smdebug.Hook(storage, rules=[]))
    assert rules_in(storage) == ()


def test_only_the_chief_writes_them():
    storage = InOrder()
    hooks = [
        smdebug.Hook(storage, rules=["AllZero"], worker=rank, num_workers=2, include_workers="all")
        for rank in (1, 0)
    ]
    hooks[0].step()
    assert "rules.json" not in storage.order
    hooks[1].step()
    assert storage.order.count("rules.json") == 1
    for hook in hooks:
        hook.close()


def test_a_dry_run_writes_none():
    storage = MemoryStorage()
    train(smdebug.Hook(storage, rules=["AllZero"], dry_run=True))
    assert not storage.exists("rules.json")


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ([{"rule": "AllZero", "paramters": {}}], RulesFileError),
        ([7], RulesFileError),
        (7, SMDebugTypeError),
        (b"AllZero", SMDebugTypeError),
        ({"DebugRuleConfigurations": [{}]}, RulesFileError),
    ],
)
def test_invalid_rules_are_refused_by_the_constructor(rules, error):
    with pytest.raises(error):
        smdebug.Hook(MemoryStorage(), rules=rules)


def test_rules_can_be_set_until_the_run_begins():
    storage = MemoryStorage()
    hook = smdebug.Hook(storage, rules=["AllZero"])
    hook.set_rules(["ExplodingTensor"])
    hook.step()
    with pytest.raises(SMDebugRuntimeError, match=r"change rules\.json"):
        hook.set_rules(["AllZero"])
    hook.close()
    assert [rule.rule for rule in rules_in(storage)] == ["ExplodingTensor"]


def test_a_storage_that_refuses_them_does_not_stop_the_training(capsys):
    class Full(MemoryStorage):
        def write(self, key, data):
            if key == "rules.json":
                raise StorageUnavailable("here", "it is full")
            super().write(key, data)

    storage = Full()
    train(smdebug.Hook(storage, rules=["AllZero"]))
    assert "No rules watch this run" in capsys.readouterr().out
    assert list(storage.list("index/"))


@pytest.mark.parametrize("by_environment", [True, False])
def test_sagemakers_rule_configurations_in_the_json_are_written_as_they_are(
    tmp_path, monkeypatch, by_environment
):
    path = tmp_path / "debughookconfig.json"
    run = tmp_path / "run"
    path.write_text(json.dumps({"LocalPath": str(run), "DebugRuleConfigurations": SAGEMAKER}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(path) if by_environment else "/nowhere")
    train(smdebug.Hook.create_from_json_file(None if by_environment else str(path)))
    singleton.del_hook()
    assert json.loads((run / "rules.json").read_text()) == {"DebugRuleConfigurations": SAGEMAKER}
    (rule,) = parse_rules((run / "rules.json").read_bytes(), file="rules.json")
    assert rule == RuleConfiguration("vanishing", "VanishingGradient", {"threshold": "1e-5"})


def test_a_rule_that_will_find_nothing_to_check_is_named_with_what_to_add(tmp_path, capsys):
    rules = [
        "VanishingGradient",
        "LossNotDecreasing",
        {"rule": "AllZero", "parameters": {"collection_names": "weights"}},
        {"name": "mine", "rule": "Mine", "source": "s3://my-bucket/mine.py"},
    ]
    with smdebug.Hook(tmp_path / "run", rules=rules, include_collections=["losses"]) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("loss", 1.0)
    output = capsys.readouterr().out
    assert output.count("will find nothing to check") == 1
    assert "Rule VanishingGradient" in output
    assert 'include_collections=["gradients"]' in output


@pytest.mark.parametrize("options", [{"save_all": True}, {"include_regex": "gradient"}])
def test_a_hook_that_saves_by_patterns_is_left_in_peace(tmp_path, options, capsys):
    with (
        smdebug.Hook(tmp_path / "run", rules=["VanishingGradient"], **options) as hook,
        hook.step(),
    ):
        hook.record("loss", 1.0)
    assert "nothing to check" not in capsys.readouterr().out
