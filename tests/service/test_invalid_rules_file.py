"""Invalid rules.json: each error names the entry, and the valid entries are still read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.exceptions import RulesFileError, SMDebugValueError
from smdebug.service.rules_file import (
    MAX_BYTES,
    MAX_RULES,
    RulesFile,
    in_our_form,
    parse_rules,
    read_rules,
)
from tests.service.rules_files import FILE, ours, parse, problem_of, tornasole


def test_two_different_rules_with_the_same_name_are_refused():
    entries = [{"name": "a", "rule": "AllZero"}, {"name": "a", "rule": "ExplodingTensor"}]
    assert "rules (a): another rule with other settings has this name" in problem_of(entries)


def test_an_invalid_entry_does_not_affect_the_others():
    read = read_rules(["AllZero", {"name": "lost", "rul": "X"}, "ExplodingTensor"], file=FILE)
    assert [rule.rule for rule in read.rules] == ["AllZero", "ExplodingTensor"]
    assert [problem.entry for problem in read.problems] == ["rules[1] (lost)"]
    assert "Did you mean 'rule'?" in read.trouble


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ours(paramters={}), "unknown key 'paramters'. Did you mean 'parameters'?"),
        (ours(rule="Vanishing Gradient"), "the rule must be the name of a class"),
        ({"rules": [{"name": "a"}]}, "rules[0] (a): 'rule' is missing"),
        (ours(name="../../other"), "contains forbidden characters"),
        (ours(name=".."), "contains forbidden characters"),
        (ours(name=""), "1 to 256 characters"),
        (ours(name="x" * 257), "1 to 256 characters"),
        (ours(name="two\nlines"), "contains forbidden characters"),
        (ours(parameters=[1]), "parameters must be an object, not a list"),
        (ours(parameters={"a": {}}), "parameter a must be a string, a number"),
        (ours(parameters={"a-b": 1}), "'a-b' is not a valid parameter name"),
        (ours(parameters={"a": "x" * 3000}), "3000 characters, at most 2048 are allowed"),
        (ours(parameters={"a": "\ud800"}), "half a character"),
        (ours(source="rule.py"), "source must be an address like s3://bucket/path, not 'rule.py'"),
        (ours(source="s3://bucket/rule.zip"), "source must be a Python file"),
        (ours(source="s3://bucket/a/../../b.py"), "source must be an address like s3://bucket"),
        (ours(other_trials=["my-job"]), "other_trials must be an address like s3://bucket"),
        (
            ours(other_trials=["s3://bucket/a/../b"]),
            "other_trials must be an address like s3://bucket",
        ),
        (ours(start_step=-1), "start_step must be a step number, not -1"),
        (ours(start_step=True), "start_step must be a step number, not True"),
        (ours(start_step=10, end_step=10), "no step lies in its range"),
        (ours(actions=[{"name": "reboot"}]), "unknown action 'reboot'"),
        (ours(actions=[{"name": "email", "to": "x"}]), "the action email has no option 'to'"),
        (ours(actions="{"), "the actions are not valid JSON"),
        (ours(repeat="daily"), "repeat must be 'every_step'"),
        (ours(logging_level="LOUD"), "logging_level must be one of"),
        (tornasole(**{"start-step": "soon"}), "start-step must be a step number"),
        ({"rules_specification": [{"RuleNmae": "X"}]}, "Did you mean 'RuleName'?"),
        (
            {"DebugRuleConfigurations": [{"RuleConfigurationName": "a"}]},
            "lacks 'rule_to_invoke'",
        ),
        ({"DebugRuleConfiguration": []}, "Did you mean 'DebugRuleConfigurations'?"),
        ({"rules": [], "rules_specification": []}, "both rules and rules_specification"),
        ({"version": 2, "rules": []}, "unknown version 2; this library reads 1"),
        ({"rules": {}}, "rules must be a list, not an object"),
        (7, "rules must be a list, not a number"),
        ([7], "rules[0]: a rule must be an object, not a number"),
        (["AllZero"] * (MAX_RULES + 1), f"at most {MAX_RULES} are allowed"),
    ],
)
def test_an_error_names_the_invalid_entry_and_what_is_valid(content, message):
    assert message in problem_of(content)
    assert problem_of(content).startswith(FILE)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe\xff",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"rules": [NaN]}',
        b"9" * 5000,
        b" " * (MAX_BYTES + 1),
        b'{"version": 1, "rules": ["AllZero"',
    ],
)
def test_invalid_json_is_refused_as_a_whole(data):
    with pytest.raises(SMDebugValueError, match=r"rules\.json"):
        parse_rules(data, file=FILE)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "rule",
                    "rules",
                    "parameters",
                    "actions",
                    "source",
                    "end_step",
                    "RuleConfigurationName",
                    "RuleParameters",
                    "rule_to_invoke",
                    "RuleName",
                    "DebugRuleConfigurations",
                    "rules_specification",
                    "RuntimeConfigurations",
                    "action_json",
                    "start-step",
                    "other_trial_0",
                    "other-trials-paths",
                    "version",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_any_content_gives_valid_rules_or_a_typed_error(content):
    try:
        read = read_rules(content, file=FILE)
    except RulesFileError as problem:
        read = RulesFile(problems=(problem,))
    assert all(len(str(problem)) < 1000 for problem in read.problems)
    for rule in read.rules:
        assert rule.rule.isidentifier()
        assert not set("/\\") & set(rule.id)
        json.dumps(rule.to_dict(), allow_nan=False).encode()
    assert parse(in_our_form(read.rules)) == read.rules


def test_a_rules_file_error_survives_pickling():
    import pickle

    error = RulesFileError(FILE, "rules[0]", "no")
    assert str(pickle.loads(pickle.dumps(error))) == f"{FILE}: rules[0]: no"
