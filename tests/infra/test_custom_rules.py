"""Custom rules: found by parsing their files, deployed as one function each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from infra import custom_rules, names
from infra.custom_rules import RuleFile, rule_files
from infra.packaging.assets import ROOT
from infra.settings import Architecture, Settings, SettingsError
from tests.infra.conftest import RULE, Stack

TWO_RULES = """
import smdebug.rules
from smdebug.rules import Rule as Base
raise RuntimeError("this is not run at deployment")


class First(smdebug.rules.Rule): ...
class Second(First): ...
class Helper: ...
"""


def test_rules_are_found_by_parsing_their_files_not_by_running_them(tmp_path: Path):
    (tmp_path / "two_rules.py").write_text(TWO_RULES)
    (tmp_path / "_helpers.py").write_text("no rule")
    (tmp_path / "README.md").write_text("no rule")
    (file,) = rule_files(tmp_path)
    assert file.rules == ("First", "Second")
    assert file.id == "TwoRules"
    assert file.lock is None


def test_a_lock_file_beside_a_rule_file_is_used(tmp_path: Path):
    (tmp_path / "mine.py").write_text(RULE)
    (tmp_path / "mine.requirements.txt").write_text("")
    (file,) = rule_files(tmp_path)
    assert file.lock == tmp_path / "mine.requirements.txt"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.py": "x = 1"}, "a.py defines no rule"),
        ({"a.py": "class ("}, "a.py is not valid Python"),
        ({"a.py": RULE, "b.py": RULE}, "LossTooSmooth is defined in .*a.py and in .*b.py"),
        (
            {f"r{n}.py": RULE for n in range(26)},
            "has 26 rule files, and at most 25 can be deployed",
        ),
        (
            {"a.py": "".join(f"class Rule{n:02}(Rule): pass\n" for n in range(32))},
            "defines 32 rules, whose names and functions take up to 2432 bytes, and 2400 fit",
        ),
    ],
)
def test_a_folder_that_cannot_be_deployed_is_refused(tmp_path: Path, files: dict[str, str], message: str):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError, match=message):
        rule_files(tmp_path)


def test_every_rule_file_has_its_own_function_beside_the_sandbox(full_stack: Stack, default_stack: Stack):
    def running_rules(stack: Stack) -> int:
        functions = stack.of("AWS::Lambda::Function").values()
        return sum(
            function["Handler"] == "functions.handlers.run_custom_rule.handler" for function in functions
        )

    assert running_rules(full_stack) == running_rules(default_stack) + 1
    mine = full_stack.function("CustomRulesLossTooSmooth")
    assert mine["Environment"]["Variables"] == {names.RULE_FILE: "custom/loss_too_smooth.py"}


def test_ingest_claim_and_sweep_know_the_function_of_each_rule(full_stack: Stack, default_stack: Stack):
    for who in ("Ingest", "Claim", "Sweep"):
        rules = full_stack.function(who)["Environment"]["Variables"][names.CUSTOM_RULES]
        assert json.loads(full_stack.text(rules))["LossTooSmooth"].startswith("<DebuggerCustomRulesLoss")
        none = default_stack.function(who)["Environment"]["Variables"][names.CUSTOM_RULES]
        assert json.loads(none) == {}


def test_rules_are_loaded_from_the_bucket_and_where_the_settings_allow(full_stack: Stack):
    variables = full_stack.function("Claim")["Environment"]["Variables"]
    sources = ["s3://my-runs/rule-sources/", "s3://elsewhere/rules/"]
    assert json.loads(variables[names.RULE_SOURCES]) == sources
    assert full_stack.text(variables[names.CUSTOM_RULE_SANDBOX]).startswith("<DebuggerCustomRulesSandbox")


def test_the_workflow_may_call_every_function_with_rules(
    rules_folder: Path, synthesize: Callable[..., Stack]
):
    stack = synthesize(Settings(custom_rules=rules_folder))
    (machine,) = stack.of("AWS::StepFunctions::StateMachine").values()
    may = [
        statement
        for statement in stack.statements_of(machine["RoleArn"]["Fn::GetAtt"][0])
        if statement["Action"] == "lambda:InvokeFunction"
    ]
    (callable_,) = [{arn["Fn::GetAtt"][0] for arn in statement["Resource"]} for statement in may]
    running = {
        name
        for name, function in stack.of("AWS::Lambda::Function").items()
        if function["Handler"] == "functions.handlers.run_custom_rule.handler"
    }
    assert len(running) == 2
    assert running < callable_


def test_the_code_of_a_rule_file_contains_the_file_and_the_functions(tmp_path: Path):
    (tmp_path / "mine.py").write_text(RULE)
    fill = custom_rules.filling(RuleFile(tmp_path / "mine.py", ("LossTooSmooth",)), Architecture.ARM64)
    fill(tmp_path / "out")
    assert (tmp_path / "out" / "custom" / "mine.py").read_text() == RULE
    assert (tmp_path / "out" / "functions" / "__init__.py").exists()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"custom", "functions"}


def test_requirements_without_hashes_are_refused(tmp_path: Path):
    (tmp_path / "mine.py").write_text(RULE)
    (tmp_path / "mine.requirements.txt").write_text("scipy==1.16.0\n")
    fill = custom_rules.filling(RuleFile(tmp_path / "mine.py", ("LossTooSmooth",)), Architecture.ARM64)
    with pytest.raises(SettingsError, match="has no hashes"):
        fill(tmp_path / "out")


def test_the_rule_files_of_this_checkout_can_be_deployed():
    assert isinstance(rule_files(ROOT / "rules" / "custom"), list)
