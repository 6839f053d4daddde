"""The rule in `examples/custom_rule`, as the deployed application runs it."""

from __future__ import annotations

from pathlib import Path

from infra.custom_rules import rule_files
from tests.functions.custom_rules.watched import Watched

FOLDER = Path(__file__).parents[3] / "examples" / "custom_rule"
FILE = FOLDER / "sudden_jump.py"


def test_it_finds_the_loss_that_has_jumped_and_remembers_from_step_to_step(tmp_path):
    watched = Watched(tmp_path, FILE.read_text().partition("annotations\n")[2], "SuddenJump")
    watched.want({**watched.wanted, "parameters": {"factor": "5"}})
    for step, loss in enumerate((2.0, 1.0, 9.0, 8.0)):
        watched.save(step, tensors={"loss": loss, "gradient/fc": 100.0 * step})
        watched.settle()
    assert watched.attributes()["before"] == {"loss": 8.0}
    (found,) = watched.small.details("Rule Evaluation Condition Met")
    assert found["step"] == 2
    (evidence,) = found["evidence"]["worst"]
    assert (evidence["tensor"], evidence["value"], evidence["threshold"]) == ("loss", 9.0, 5.0)


def test_the_example_can_be_deployed_unchanged_and_is_not_by_default():
    (file,) = rule_files(FOLDER)
    assert file.rules == ("SuddenJump",)
    assert "SuddenJump" not in {
        rule for file in rule_files(FOLDER.parents[1] / "rules" / "custom") for rule in file.rules
    }
