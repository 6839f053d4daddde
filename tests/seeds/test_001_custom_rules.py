"""Debugging SageMaker Training Jobs with Tornasole: a custom rule, its required tensors, its upload."""

from __future__ import annotations

import json
import os

import boto3
import numpy as np
import pytest

from smdebug.trials import create_trial
from tests.rules.made_runs import made_run
from tests.seeds.blocks import Story, runs
from tests.smdebug_rules.support import fires_at


@pytest.fixture
def trial():
    steps = {0: {"gradient/w": [1.0, -2.0]}, 50: {"gradient/w": np.array([30.0, -30.0])}}
    return made_run(steps).trial()


@runs("001-10", "001-11")
def test_a_custom_rule_reads_the_tensors_of_a_collection(trial):
    story = Story()
    story.run_as_class("001-10", "001-11")
    rule = story["CustomGradientRule"]
    assert fires_at(rule(trial)) == [50]
    assert fires_at(rule(trial, threshold="0.5")) == [0, 50]
    assert fires_at(rule(trial, threshold="31")) == []


@runs("001-12", "001-13", "001-14")
def test_the_tensors_of_a_custom_rule_are_fetched_first(trial):
    story = Story()
    story.run_as_class("001-10", "001-13", "001-14")
    rule = story["CustomGradientRule"](trial, threshold="20.0")
    assert fires_at(rule) == [50]
    rule.req_tensors.clear()
    tensors = Story(self=rule, tname="gradient/w", step_num=50).run("001-12")
    assert [tensor.name for tensor in tensors] == ["gradient/w"]
    assert rule.req_tensors.get_tensor_steps() == [50]


@runs("001-15")
def test_a_rule_specification_holds_the_arguments_of_the_rule(trial):
    story = Story()
    story.run("001-15")
    (specification,) = story["rules_specification"]
    assert json.loads(json.dumps(specification)) == specification
    made = Story()
    made.run_as_class("001-10", "001-11")
    rule = made[specification["RuleName"]](trial, **specification["RuntimeConfigurations"])
    assert rule.threshold == 20.0


@runs("001-03", "001-04")
def test_a_rule_file_is_uploaded_to_the_bucket_of_the_user(tmp_path, monkeypatch, s3):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "my_custom_rule.py").write_text("# a rule\n")
    (tmp_path / "notebook").mkdir()
    monkeypatch.chdir(tmp_path / "notebook")
    story = Story(boto3=boto3, os=os, REGION="eu-west-1")
    # The document's handle of the opened file is left to the interpreter to close.
    opened = []

    def open_and_remember(*args):
        opened.append(open(*args))  # noqa: PTH123, SIM115
        return opened[-1]

    story.names["open"] = open_and_remember
    story.run("001-03", "001-04")
    for file in opened:
        file.close()
    assert story["SOURCE_S3_URI"].endswith("-eu-west-1/rules/my_custom_rule.py")
    body = s3.get_object(Bucket=story["BUCKET"], Key=story["PREFIX"])["Body"].read()
    assert body == b"# a rule\n"


def test_the_first_block_is_a_rule_only_with_a_condition(run_path):
    story = Story()
    story.run("001-10")
    with pytest.raises(TypeError, match="invoke_at_step"):
        story["CustomGradientRule"](create_trial(run_path))
