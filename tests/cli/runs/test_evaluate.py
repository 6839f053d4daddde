"""`smdebug evaluate` and `smdebug rules`: built-in rules and rules from files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from smdebug.rules.rule_sets import default_rules
from tests.cli.conftest import failing_run
from tests.rules.made_runs import MadeRun

CUSTOM = """
from smdebug.rules import Finding, Rule

class LargeLoss(Rule):
    def __init__(self, base_trial, limit="1.5"):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        loss = self.base_trial.tensor("loss").reduction_value(step, "mean")
        if loss > self.limit:
            self.findings.append(Finding("loss", "mean", loss, self.limit))
        return bool(self.findings)

class Broken(LargeLoss):
    def invoke_at_step(self, step):
        raise KeyError("it has no such thing")
"""


def test_findings_are_printed_and_set_the_exit_code(ask, failing):
    answer = ask("evaluate", failing, "--rule", "vanishinggradient")
    assert answer.code == 1
    assert "detected a problem at 6 of 10 steps (40 to 90)" in answer.out
    assert "step 40: gradient/fc: the mean of |gradient| is 1e-09, below 1e-07" in answer.out
    well = ask("evaluate", failing, "--rule", "VanishingGradient", "--set", "threshold=1e-12")
    assert (well.code, "✓" in well.out) == (0, True)
    (result,) = ask("evaluate", failing, "--rule", "VanishingGradient", "--end-step", 60, "--json").json
    assert (result["status"], result["steps_found"]) == ("IssuesFound", [40, 50])


def test_several_processes_find_what_one_finds(failing):
    """LossNotDecreasing remembers steps, VanishingGradient does not: both come out the same."""
    from smdebug.runs.evaluation.evaluating import evaluate

    rules = ["VanishingGradient", "LossNotDecreasing"]
    alone = evaluate(failing, rules, jobs=1)
    together = evaluate(failing, rules, jobs=2, worth_a_process=4)
    assert [item.processes for item in together] == [2, 1]
    for item, other in zip(alone, together, strict=True):
        assert item.to_dict() | {"seconds": 0, "processes": 0} == other.to_dict() | {
            "seconds": 0,
            "processes": 0,
        }


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_rule_runs_its_end_check_in_any_number_of_processes(ask, tmp_path, jobs):
    from smdebug.mode_keys import ModeKeys

    run = MadeRun(tmp_path / "run")
    for step in range(40):
        mode = ModeKeys.TRAIN if step < 38 else ModeKeys.EVAL
        run.save(step, {"loss": np.float32(1 if step < 38 else 5)}, mode=mode)
    asked = ("evaluate", tmp_path / "run", "--rule", "Overfit", "-j", jobs)
    assert ask(*asked).code == 3  # nothing was checked so far, and it may go on
    run.end()
    answer = ask(*asked)
    assert answer.code == 1
    assert "detected a problem at step 39 (1 of 40 steps)" in answer.out
    assert "step 39: validation loss 5 is 400.0% above training loss" in answer.out
    assert ask(*asked, "--end-step", 39).code == 3


def test_a_rule_that_begins_to_remember_late_is_evaluated_in_order(ask, failing, tmp_path):
    """It is found out after processes have begun, and what they output of later steps does not count."""
    from smdebug.runs.evaluation.evaluating import evaluate

    source = """
from smdebug.rules import Rule

class Counts(Rule):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.seen = 0

    def invoke_at_step(self, step):
        if step >= 50:
            self.seen += 1
        return self.seen >= 3
"""
    (tmp_path / "counts.py").write_text(source)
    (found,) = evaluate(failing, ["Counts"], file=tmp_path / "counts.py", jobs=2, worth_a_process=4)
    assert (found.processes, found.steps_found) == (2, (70, 80, 90))


def test_rules_are_loaded_from_a_rule_file(ask, failing, tmp_path):
    (tmp_path / "own.py").write_text(CUSTOM)
    found = ask("evaluate", failing, "--rule-file", tmp_path / "own.py", "--rule", "LargeLoss", "--json")
    assert (found.code, found.json[0]["steps_found"]) == (1, [0, 10, 20, 30, 40])
    broken = ask("evaluate", failing, "--rule-file", tmp_path / "own.py", "--rule", "Broken")
    assert (broken.code, "Broken failed: at step 0: KeyError" in broken.out) == (3, True)
    missing = ask("evaluate", failing, "--rule-file", tmp_path / "none.py")
    assert (missing.code, "There is no file" in missing.err) == (2, True)


def test_rules_are_loaded_from_a_rules_json(ask, failing, tmp_path):
    configurations = [
        {"RuleConfigurationName": "fc", "RuleParameters": {"rule_to_invoke": "VanishingGradient"}}
    ]
    (tmp_path / "rules.json").write_text(json.dumps({"DebugRuleConfigurations": configurations}))
    named, *default = ask("evaluate", failing, "--rules", tmp_path / "rules.json", "--json").json
    assert (named["name"], named["status"]) == ("fc", "IssuesFound")
    assert {rule["name"] for rule in default} == {*default_rules()}
    shutil.copy(tmp_path / "rules.json", failing / "rules.json")
    (alone,) = ask("evaluate", failing, "--no-default-rules", "--json").json
    assert alone["name"] == "fc"


def test_all_means_every_rule_without_required_parameters(ask, failing):
    results = ask("evaluate", failing, "--rule", "all", "--json").json
    names = {result["rule"] for result in results}
    assert {"VanishingGradient", "LossNotDecreasing"} <= names
    assert "SimilarAcrossRuns" not in names


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--rule", "VanishingGradients"], "Did you mean VanishingGradient?"),
        (["--rule", "VanishingGradient", "--set", "treshold=1"], "Did you mean threshold?"),
        (["--rule", "VanishingGradient", "--set", "threshold"], "takes NAME=VALUE"),
        (
            ["--rule", "VanishingGradient", "--rule", "AllZero", "--set", "threshold=1"],
            "--set needs the rule's name",
        ),
        (["--set", "threshold=1"], "--set requires --rule"),
        (["--rule", "SimilarAcrossRuns"], "compares with another run"),
        (["--rule", "VanishingGradient", "--end-step", "x"], "not a whole number"),
    ],
)
def test_a_usage_error_is_one_sentence(ask, failing, options, complaint):
    answer = ask("evaluate", failing, *options)
    assert answer.code == 2
    assert complaint in answer.err
    assert "Traceback" not in answer.err


def test_a_rule_can_compare_with_another_run(ask, failing, tmp_path):
    failing_run(tmp_path / "again")
    options = [
        "--rule",
        "SimilarAcrossRuns",
        "--set",
        "include=.*",
        "--other-run",
        tmp_path / "again",
    ]
    assert ask("evaluate", failing, *options).code == 0


def test_rules_are_listed_and_described(ask):
    names = [item["name"] for item in ask("rules", "--json").json]
    assert names[:1] == ["VanishingGradient"]
    answer = ask("rules", "lossnotdecreasing")
    assert (answer.code, "increase_threshold_percent" in answer.out) == (0, True)
    assert "smdebug evaluate ./my-run --rule LossNotDecreasing" in answer.out
    assert "What to try" in answer.out
    assert "Change the learning rate by a factor of 3" in answer.out
    assert ask("rules", "Nope").code == 2


ENDS = """
import os
import signal
from smdebug.rules import Rule

class Ends(Rule):
    def invoke_at_step(self, step):
        if step >= 20:
            {ends}
        return False
"""


@pytest.mark.parametrize("options", [(), ("--jobs", "2")])
@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ("os._exit(0)", "its process ended without an answer (exit code 0)"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "its process was ended by SIGKILL; it may need more memory",
        ),
    ],
)
def test_a_rule_that_ends_its_process_has_failed(ask, failing, tmp_path, ends, why, options):
    (tmp_path / "ends.py").write_text(ENDS.format(ends=ends))
    answer = ask("evaluate", failing, "--rule-file", tmp_path / "ends.py", "--rule", "Ends", *options)
    assert answer == (3, f"! Ends failed: at step 20: {why}\n", "")


def test_a_rule_that_forks_speaks_once(ask, failing, tmp_path):
    (tmp_path / "forks.py").write_text(
        "import os\nfrom smdebug.rules import Rule\n"
        "class Forks(Rule):\n    def invoke_at_step(self, step):\n"
        "        os.fork()\n        return True\n"
    )
    answer = ask("evaluate", failing, "--rule-file", tmp_path / "forks.py", "--rule", "Forks")
    assert answer.code == 1
    assert answer.out.count("Forks detected a problem at 10 of 10 steps") == 1


def test_a_rule_that_exits_has_failed_and_a_file_that_does_cannot_be_loaded(ask, failing, tmp_path):
    (tmp_path / "exits.py").write_text(
        "import sys\nfrom smdebug.rules import Rule\n"
        "class Exits(Rule):\n    def invoke_at_step(self, step):\n        sys.exit(0)\n"
    )
    answer = ask("evaluate", failing, "--rule-file", tmp_path / "exits.py", "--rule", "Exits")
    assert answer == (3, "! Exits failed: at step 0: the rule called sys.exit(0)\n", "")
    (tmp_path / "gone.py").write_text("import sys\nsys.exit(0)\n")
    answer = ask("evaluate", failing, "--rule-file", tmp_path / "gone.py")
    assert (answer.code, "gone.py cannot be loaded: SystemExit" in answer.err) == (2, True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_rule_prints_is_not_in_the_document(failing, tmp_path, jobs):
    (tmp_path / "prints.py").write_text(
        "from smdebug.rules import Rule\nprint('loaded')\n"
        "class Prints(Rule):\n    def invoke_at_step(self, step):\n        print(f'at {step}\\n', end='')\n"
    )
    script = (
        "import sys\nfrom smdebug.runs.evaluation import evaluating\n"
        "if __name__ == '__main__':\n"
        "    evaluating.evaluate.__kwdefaults__['worth_a_process'] = 2\n"
        "    from smdebug.cli.main import main\n"
        f"    sys.exit(main(['evaluate', {str(failing)!r}, '--rule-file', "
        f"{str(tmp_path / 'prints.py')!r}, '--no-default-rules', '--json', '-j', '{jobs}']))\n"
    )
    (tmp_path / "asks.py").write_text(script)
    process = subprocess.run(
        [sys.executable, tmp_path / "asks.py"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    (result,) = json.loads(process.stdout)
    assert (result["looked"], result["processes"]) == (10, jobs)
    assert {"loaded", "at 0", "at 90"} <= set(process.stderr.splitlines())


def test_usual_are_the_rules_that_evaluated_every_run_before(ask, failing):
    results = ask("evaluate", failing, "--rule", "usual", "--json").json
    assert [result["rule"] for result in results] == [
        "ExplodingTensor",
        "VanishingGradient",
        "LossNotDecreasing",
        "WeightUpdateRatio",
    ]


def test_all_writes_a_page_on_trees_only_for_a_run_of_xgboost(ask, failing):
    ask("evaluate", failing, "--rule", "all")
    assert not (failing / "rule-output").exists()


def test_a_damaged_tensor_is_left_out_and_the_rule_continues(ask, tmp_path):
    """Its file is counted, and the run has not passed."""
    place = tmp_path / "damaged"
    failing_run(place)
    (file,) = (place / "events" / "000000000020").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(bytes(content))
    answer = ask("evaluate", place, "--rule", "ExplodingTensor", "--rule", "VanishingGradient", "--json")
    by_name = {result["rule"]: result for result in answer.json}
    assert by_name["VanishingGradient"]["steps_found"] == [40, 50, 60, 70, 80, 90]
    assert by_name["VanishingGradient"]["error"] is None
    assert [gap["step"] for gap in by_name["ExplodingTensor"]["left_out"]] == [20]
    alone = ask("evaluate", place, "--rule", "ExplodingTensor")
    assert (alone.code, "1 event file is damaged" in alone.err) == (3, True)


def test_a_rule_that_failed_does_not_look_like_a_finding(ask, failing, tmp_path):
    (tmp_path / "own.py").write_text(CUSTOM)
    answer = ask("evaluate", failing, "--rule-file", tmp_path / "own.py", "--rule", "Broken")
    assert answer.out.startswith("! Broken failed")
