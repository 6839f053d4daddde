"""What a scan says of scripts, notebooks and estimators."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smdebug.migrating import Scan, Verdict, scan
from smdebug.service.rules_file import parse_rules
from tests.seeds.blocks import BLOCKS

ESTIMATOR = """
from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
from sagemaker.pytorch import PyTorch

estimator = PyTorch(
    entry_point="train.py",
    debugger_hook_config=DebuggerHookConfig(
        s3_output_path="s3://bucket/runs",
        hook_parameters={"save_interval": 50, "train.save_interval": "10"},
        collection_configs=[CollectionConfig(name="weights", parameters={"reductions": "min,max"})],
    ),
    rules=[
        Rule.sagemaker(rule_configs.vanishing_gradient(), rule_parameters={"threshold": "1e-8"}),
        Rule.custom(
            name="Mine", image_uri="x", instance_type="ml.t3.medium", volume_size_in_gb=30,
            source="s3://bucket/mine.py", rule_to_invoke="MyRule",
            collections_to_save=[CollectionConfig("losses")], rule_parameters={"limit": 3},
        ),
    ],
)
"""


def scanned(tmp_path: Path, text: str, name: str = "script.py") -> Scan:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return scan([file])


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "!"}, *code]})


def verdicts(result: Scan) -> list[tuple[int, str]]:
    return [(finding.place.line, finding.verdict.value) for finding in result.findings]


def replacement(result: Scan, line: int) -> str:
    (finding,) = (f for f in result.findings if f.place.line == line)
    return finding.replacement


# Scripts


def test_a_script_for_the_old_library_works_unchanged(tmp_path):
    result = scanned(
        tmp_path,
        "import smdebug.pytorch as smd\n"
        "from smdebug.trials import create_trial\n"
        "from smdebug.rules.generic import VanishingGradient\n"
        "from smdebug.exceptions import *\n"
        "from smdebug.pytorch.hook import Hook\n"
        "hook = smd.Hook(out_dir='x', save_config=smd.SaveConfig(save_interval=10))\n"
        "trial = create_trial('x', range_steps=(0, 10))\n",
    )
    assert verdicts(result) == [(n, "works") for n in range(1, 8)]
    assert result.conversions == ()


def test_code_that_has_nothing_to_do_with_it_is_not_reported(tmp_path):
    assert scanned(tmp_path, "import os\nprint(os.name)\nimport sagemaker\n").findings == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("from smdebug.profiler.analysis.utils import x", "Remove it."),
        ("from tornasole.pytorch import TornasoleHook", "from smdebug.pytorch import Hook"),
        (
            "from tornasole.core.writer import FileWriter",
            "from smdebug.core.writer import FileWriter",
        ),
        ("from smdebug.trials import create_trail", "Did you mean create_trial?"),
        ("import smdebug\nsmdebug.SaveConfig(save_intervall=3)", "Use save_interval."),
        ("import smdebug.mxnet as smd\nsmd.SaveConfig(save_interval=0)", "save_interval=1"),
        ("from smdebug.trials import create_trial as t\nt('x', profiler=True)", "Remove it."),
        ("from sagemaker.debugger import Rule", "Remove it."),
    ],
)
def test_a_line_that_changes_names_its_replacement(tmp_path, line, expected):
    result = scanned(tmp_path, f"{line}\n")
    last = 1 + line.count("\n")
    assert (last, "changes") in verdicts(result)
    assert replacement(result, last) == expected


def test_scanning_runs_nothing(tmp_path):
    result = scanned(tmp_path, f"import smdebug\nopen({str(tmp_path / 'made')!r}, 'w')\n1 / 0\n")
    assert verdicts(result) == [(1, "works")]
    assert not (tmp_path / "made").exists()


# Estimators


def test_an_estimator_becomes_hook_json_and_rules_json(tmp_path):
    result = scanned(tmp_path, ESTIMATOR)
    (conversion,) = result.conversions
    assert conversion.place.line == 5
    hook = json.loads(conversion.files["debughookconfig.json"])
    assert hook == {
        "LocalPath": "s3://bucket/runs/script/debug-output",
        "HookParameters": {"save_interval": "50", "train.save_interval": "10"},
        "CollectionConfigurations": [
            {"CollectionName": "weights", "CollectionParameters": {"reductions": "min,max"}},
            {"CollectionName": "gradients"},
            {"CollectionName": "losses"},
        ],
    }
    rules = parse_rules(conversion.files["rules.json"].encode(), file="rules.json")
    assert [(rule.name, rule.rule, rule.source) for rule in rules] == [
        ("VanishingGradient", "VanishingGradient", None),
        ("Mine", "MyRule", "s3://bucket/mine.py"),
    ]
    assert [dict(rule.parameters) for rule in rules] == [{"threshold": "1e-8"}, {"limit": "3"}]


def test_names_stand_for_what_was_assigned_to_them_last(tmp_path):
    text = ESTIMATOR.replace("rules=[", "rules=rules, tensorboard_output_config=board) or (x:=[")
    text = (
        "from sagemaker.debugger import TensorBoardOutputConfig\n"
        "name = 'AllZero'\n"
        "rules = []\n"
        "rules = [{'RuleName': name, 'RuntimeConfigurations': {}}]\n"
        "board = TensorBoardOutputConfig(s3_output_path='s3://' + 'bucket')\n" + text
    ).replace("    ],\n)\n", "    ])\n")
    files = scanned(tmp_path, text).conversions[0].files
    assert json.loads(files["rules.json"])["rules"] == [{"name": "AllZero", "rule": "AllZero"}]
    assert json.loads(files["tensorboardoutputconfig.json"]) == {"LocalPath": "s3://bucket"}


def test_actions_of_rules_are_converted(tmp_path):
    result = scanned(
        tmp_path,
        "from sagemaker.debugger import Rule, rule_configs\n"
        "rule = Rule.sagemaker(rule_configs.loss_not_decreasing(), actions=rule_configs.ActionList(\n"
        "    rule_configs.StopTraining(), rule_configs.Email('me@example.org')))\n",
    )
    (rule,) = json.loads(result.conversions[0].files["rules.json"])["rules"]
    assert rule["actions"] == [
        {"name": "stoptraining"},
        {"name": "email", "endpoint": "me@example.org"},
    ]


def test_a_job_that_boto3_creates_is_converted(tmp_path):
    result = scanned(
        tmp_path,
        "client.create_training_job(\n"
        "    TrainingJobName='resnet',\n"
        "    DebugHookConfig={'S3OutputPath': 's3://bucket/runs'},\n"
        "    DebugRuleConfigurations=[{'RuleConfigurationName': 'a', 'RuleEvaluatorImage': 'x',\n"
        "        'RuleParameters': {'rule_to_invoke': 'AllZero'}}])\n",
    )
    (rule,) = json.loads(result.conversions[0].files["rules.json"])["rules"]
    assert rule == {"name": "a", "rule": "AllZero"}


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("PyTorch(**options)", 7),
        ("PyTorch(rules=make_rules())", 7),
        ("PyTorch(rules=rules)", 7),
        ("PyTorch(debugger_hook_config=DebuggerHookConfig(s3_output_path=f's3://{bucket}'))", 7),
        (
            "PyTorch(rules=[Rule.custom('a', 'x', 'y', 1, source='rules/a.py', rule_to_invoke='A')])",
            7,
        ),
    ],
)
def test_what_only_running_the_code_shows_is_reported_with_its_line(tmp_path, code, line):
    head = (
        "from sagemaker.debugger import DebuggerHookConfig, Rule, rule_configs\n"
        "from sagemaker.pytorch import PyTorch\n"
        "rules = []\n"
        "for name in ('a', 'b'):\n"
        "    rules.append(name)\n"
        "def train(bucket, options):\n"
    )
    result = scanned(tmp_path, f"{head}    return {code}\nimport smdebug\n")
    assert (line, "unclear") in verdicts(result)
    assert (8, "works") in verdicts(result)


def test_a_debugger_that_is_switched_off_is_not_a_configuration(tmp_path):
    text = "from sagemaker.pytorch import PyTorch\nPyTorch(debugger_hook_config=False)\n"
    result = scanned(tmp_path, text)
    assert (result.findings, result.conversions) == ((), ())


# Bad input


def test_a_script_that_does_not_parse_is_reported_and_the_rest_is_scanned(tmp_path):
    result = scanned(
        tmp_path,
        "import smdebug\nprint 'Python 2'\nfor x in y\n    pass\n"
        "from smdebug.trials import create_trial\ntrial = create_trial(\n    path='x',\n)\n",
    )
    assert verdicts(result) == [
        (1, "works"),
        (2, "unreadable"),
        (3, "unreadable"),
        (5, "works"),
        (6, "works"),
    ]


def test_deeply_nested_code_is_scanned(tmp_path):
    long_sum = " + ".join(["name"] * 900)
    text = f"import smdebug.pytorch as smd\nsmd.Hook(out_dir={long_sum})\n"
    assert verdicts(scanned(tmp_path, text)) == [(1, "works"), (2, "works")]
    estimator = f"client.create_training_job(DebugHookConfig={{'S3OutputPath': {long_sum}}})\n"
    assert (1, "unclear") in verdicts(scanned(tmp_path, estimator))


def test_a_notebook_that_is_not_json_is_reported_and_other_files_are_scanned(tmp_path):
    (tmp_path / "a.ipynb").write_text('{"cells": [\n  oops\n]}')
    (tmp_path / "b.ipynb").write_text("[1]")
    (tmp_path / "c.py").write_text("import smdebug\n")
    (tmp_path / "d.py").write_bytes(b"# \xff\xfe\x00")
    result = scan([tmp_path])
    assert [(Path(f.place.file).name, f.place.line, f.verdict.value) for f in result.findings] == [
        ("a.ipynb", 2, "unreadable"),
        ("b.ipynb", 1, "unreadable"),
        ("c.py", 1, "works"),
        ("d.py", 1, "unreadable"),
    ]


def test_cells_share_their_names_and_magics_are_tolerated(tmp_path):
    text = notebook(
        "%matplotlib inline\n!pip install smdebug\n! pip install smdebug-serverless\n",
        "%%bash\nrm -rf / ;;\n",
        "%%time\nimport smdebug.tensorflow as smd\n",
        "hook = smd.KerasHook('x')\nsmd?\nprint hook\n",
    )
    result = scanned(tmp_path, text, "n.ipynb")
    assert [(f.place.cell, *v) for f, v in zip(result.findings, verdicts(result), strict=True)] == [
        (1, 2, "changes"),
        (3, 2, "works"),
        (4, 1, "works"),
        (4, 3, "unreadable"),
    ]


# The documents of the original


@pytest.fixture(scope="module")
def scans(tmp_path_factory) -> dict[str, Scan]:
    """The scan of each document, as a notebook of its code blocks; not all of them are Python."""
    folder = tmp_path_factory.mktemp("documents")
    blocks_by_document: dict[str, list[str]] = {}
    for name, text in BLOCKS.items():
        blocks_by_document.setdefault(name.partition("-")[0], []).append(text)
    return {
        document: scanned(folder, notebook(*blocks), f"document_{document}.ipynb")
        for document, blocks in blocks_by_document.items()
    }


def changing_code(result: Scan) -> set[str]:
    return {finding.code for finding in result.findings if finding.verdict is Verdict.CHANGES}


def converted(result: Scan, file: str) -> list[str]:
    return [conversion.files[file] for conversion in result.conversions]


def test_code_of_the_documents_that_has_to_change_is_named(scans):
    assert changing_code(scans["000"]) == set()
    assert {"pip install smdebug", "rule = Rule.sagemaker("} <= changing_code(scans["004"])
    assert any(code.startswith("path = estimator.latest_job") for code in changing_code(scans["002"]))


def test_most_code_of_the_documents_works(scans):
    assert sum(result.count(Verdict.WORKS) for result in scans.values()) >= 40


def test_rules_of_the_documents_are_converted(scans):
    files = [*converted(scans["001"], "rules.json"), *converted(scans["004"], "rules.json")]
    rules = [rule["rule"] for text in files for rule in json.loads(text)["rules"]]
    assert set(rules) == {"CustomGradientRule", "ExplodingTensor"}


def test_hooks_of_the_documents_are_converted(scans):
    first, second = map(json.loads, converted(scans["002"], "debughookconfig.json"))
    everything = {"include_regex": ".*", "save_interval": "100"}
    collections = [{"CollectionName": "all", "CollectionParameters": everything}]
    assert first == second == {"CollectionConfigurations": collections}


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_a_block_by_itself_is_scanned_as_a_script(tmp_path, name):
    for finding in scanned(tmp_path, BLOCKS[name]).findings:
        assert 1 <= finding.place.line <= BLOCKS[name].count("\n") + 1
        assert finding.message or finding.verdict is Verdict.WORKS
