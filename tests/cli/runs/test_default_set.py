"""`smdebug evaluate` with the default set, and what it shows of rules that had nothing to check."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import smdebug
from smdebug.cli.answers.diagnosis_output import print_in_short
from smdebug.files.observations import FACTS
from smdebug.rules.rule_sets import default_rules
from tests.rules.made_runs import MadeRun

DEFAULT_SET = {
    "__init__.py": "",
    "catalog.py": """
from smdebug_rules.catalog import RuleEntry

CATALOG = {
    name: RuleEntry(name, "smdebug_default_rules.rules", "A rule.")
    for name in ("LearningRateJump", "LossSpike", "NeedsLabels", "Steady")
}
""",
    "rules.py": """
from smdebug.rules import Finding, Rule

class LearningRateJump(Rule):
    cause = "learning rate"
    advice = {"learning rate": ("Undo the change of the learning rate.",)}

    def invoke_at_step(self, step):
        message = "the learning rate of group 0 rose from 0.01 to 0.04"
        self.findings = [Finding("lr/0", message=message, since=20)]
        return step >= 30

class LossSpike(Rule):
    cause = "spike"

    def invoke_at_step(self, step):
        self.findings = [Finding("loss", "loss", 9.0, 3.0, message="loss jumped")]
        return step == 30

class NeedsLabels(Rule):
    def invoke_at_step(self, step):
        self.not_checked = "no labels were saved"
        return False

class Steady(Rule):
    def invoke_at_step(self, step):
        self.looked = True
        return False
""",
}


@pytest.fixture
def default_set(tmp_path, monkeypatch):
    """A small default set in place of the installed one."""
    place = tmp_path / "installed" / "smdebug_default_rules"
    place.mkdir(parents=True)
    for name, text in DEFAULT_SET.items():
        (place / name).write_text(text)
    for module in [name for name in sys.modules if name.startswith("smdebug_default_rules")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(place.parent)
    yield
    for module in [name for name in sys.modules if name.startswith("smdebug_default_rules")]:
        del sys.modules[module]


@pytest.fixture
def observed(tmp_path):
    run = MadeRun(tmp_path / "observed")
    for step in range(0, 50, 10):
        run.save(step, {FACTS: np.zeros(1, np.uint8), "loss": np.float32(1)})
    run.end()
    return tmp_path / "observed"


def test_without_rules_the_default_set_gives_one_diagnosis(ask, observed, default_set):
    answer = ask("evaluate", observed)
    assert answer.code == 1
    assert answer.out.splitlines()[:5] == [
        "✗ The learning rate is wrong, since step 20",
        "  The learning rate of group 0 rose from 0.01 to 0.04.",
        "  Where     lr/0; steps 20 to 40",
        "  Symptoms  The loss or an input jumps, at step 30: loss jumped (updates that are too large throw "
        "the weights",
        "            out of their range)",
    ]
    assert "Try       Undo the change of the learning rate." in answer.out
    assert "docs/rules.md#learningratejump" in answer.out
    assert "✓ 1 rule passed: Steady." in answer.out
    assert "– Not checked: NeedsLabels: no labels were saved." in answer.out
    assert "LossSpike detected" not in answer.out
    assert "LossSpike detected" in ask("evaluate", observed, "--all-steps").out


def test_each_result_in_json_has_the_issues_that_it_belongs_to(ask, observed, default_set):
    results = {result["rule"]: result for result in ask("evaluate", observed, "--json").json}
    (issue,) = results["LossSpike"]["issues"]
    assert results["LearningRateJump"]["issues"] == [issue]
    assert (issue["cause"], issue["since"], issue["rules"]) == (
        "learning rate",
        20,
        ["LearningRateJump"],
    )
    assert issue["try"] == ["Undo the change of the learning rate."]
    assert [symptom["cause"] for symptom in issue["symptoms"]] == ["spike"]
    assert results["NeedsLabels"]["not_checked"] == "no labels were saved"
    assert (results["Steady"]["issues"], results["Steady"]["not_checked"]) == ([], None)


def test_of_tensors_that_are_unknown_to_the_default_rules_nothing_is_checked(ask, tmp_path):
    run = MadeRun(tmp_path / "unknown")
    run.save(0, {"something": np.ones(3, np.float32)})
    run.end()
    answer = ask("evaluate", tmp_path / "unknown")
    assert answer.code == 3
    assert f"Not checked: {len(default_rules())} rules: the run holds nothing that the default" in answer.out
    assert "--rule usual" in " ".join(answer.out.split())


def test_a_run_of_chosen_tensors_is_judged_by_the_default_rules(ask, failing):
    answer = ask("evaluate", failing, "--reasons")
    assert answer.code == 0
    assert "GradientFlow" in answer.out
    assert "The tensors of this run were chosen. A hook that gets only a path" in answer.out
    results = ask("evaluate", failing, "--json").json
    assert {result["rule"] for result in results} == {*default_rules()}


def test_a_run_whose_tensors_nobody_chose_is_not_said_to_have_chosen_ones(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "loop")) as hook:
        for step in range(3):
            with hook.step():
                hook.record("loss", 1 / (step + 1))
    answer = ask("evaluate", tmp_path / "loop")
    assert "rules not checked" in answer.out
    assert "were chosen" not in answer.out


def test_many_reasons_for_unchecked_rules_are_shown_on_request(ask, observed, tmp_path):
    file = tmp_path / "needy.py"
    file.write_text(
        "from smdebug.rules import Rule\n"
        + "".join(
            f"class Needs{part}(Rule):\n"
            f"    def invoke_at_step(self, step):\n"
            f"        self.not_checked = 'no {part} were saved'\n"
            f"        return False\n"
            for part in ("Labels", "Inputs", "Outputs", "Gradients")
        )
    )
    short = ask("evaluate", observed, "--rule-file", file, "--no-default-rules", "--short").out
    assert " ".join(short.split()) == (
        "– 4 rules not checked: NeedsLabels, NeedsInputs, NeedsOutputs, NeedsGradients. "
        "The run lacks the data that they check; --reasons shows which."
    )
    whole = ask("evaluate", observed, "--rule-file", file, "--no-default-rules", "--short", "--reasons").out
    assert whole.splitlines() == [
        f"– Not checked: Needs{part}: no {part} were saved."
        for part in ("Labels", "Inputs", "Outputs", "Gradients")
    ]


def test_a_default_rule_is_also_evaluated_alone(ask, observed, default_set):
    answer = ask("evaluate", observed, "--rule", "lossspike", "--rule", "ExplodingTensor")
    assert answer.code == 1
    assert "LossSpike detected a problem at step 30 (1 of 5 steps)." in answer.out
    assert "ExplodingTensor passed" in answer.out


def test_the_default_set_is_listed_apart(ask, default_set):
    names = {rule["name"]: rule["set"] for rule in ask("rules", "--json").json}
    assert (names["LossSpike"], names["VanishingGradient"]) == ("default", None)
    out = ask("rules").out
    assert out.index("The default set") < out.index("LossSpike") < out.index("VanishingGradient")
    assert "Undo the change of the learning rate." in ask("rules", "learningratejump").out


def test_many_rules_that_passed_are_counted_and_named_on_request(capsys):
    names = [f"Fine{number}" for number in range(7)]
    missing = {f"Needs{number}": f"no part {number} was saved" for number in range(7)}
    print_in_short(names, missing, shown_by="--reasons shows which.")
    counted = capsys.readouterr().out.splitlines()
    assert counted[0] == "✓ 7 rules passed."
    assert counted[1].startswith("– 7 rules not checked. The run lacks the data that they check;")
    print_in_short(names[:6], {}, shown_by="--reasons shows which.")
    assert capsys.readouterr().out == f"✓ 6 rules passed: {', '.join(names[:6])}.\n"
    print_in_short(names, missing)
    named = " ".join(capsys.readouterr().out.split())
    assert all(name in named for name in (*names, *missing))
