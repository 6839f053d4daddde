from __future__ import annotations

import pytest

from smdebug.rules.rule_invoker import main
from tests.rules.made_runs import made_run


@pytest.fixture
def path(tmp_path):
    steps = {step: {"loss": [5.0 - step], "gradient/w": [0.0 if step == 2 else 1.0]} for step in range(4)}
    made_run(steps, tmp_path / "run")
    return str(tmp_path / "run")


@pytest.fixture
def other_path(tmp_path):
    made_run({0: {"loss": [5.0]}, 1: {"loss": [9.0]}}, tmp_path / "other")
    return str(tmp_path / "other")


@pytest.fixture
def rule_file(tmp_path):
    file = tmp_path / "my_rule.py"
    file.write_text(
        "from smdebug.rules import Rule\n"
        "class Helper:\n"
        "    pass\n"
        "class MyRule(Rule):\n"
        "    def __init__(self, base_trial, limit, flag='False'):\n"
        "        super().__init__(base_trial)\n"
        "        self.limit = float(limit)\n"
        "    def invoke_at_step(self, step):\n"
        "        loss = self.base_trial.tensor('loss').value(step)[0]\n"
        "        self.findings.append({'tensor': 'loss', 'value': loss})\n"
        "        return loss > self.limit\n"
    )
    return str(file)


def run(capsys, *argv):
    code = main(list(argv))
    output = capsys.readouterr()
    lines = [line for line in output.out.splitlines() if not line.startswith("[")]
    return code, lines, output.err


def test_what_a_rule_finds_is_reported_and_the_exit_code_is_1(path, capsys):
    code, lines, errors = run(capsys, "--trial-dir", path, "--rule-name", "vanishinggradient")
    assert (code, errors) == (1, "")
    assert lines == [
        "step 2: gradient/w: the mean of |gradient| is 0, below 1e-07",
        f"VanishingGradient on {path}: findings at 1 of 4 steps (0 to 3): 2.",
    ]


def test_the_exit_code_is_0_when_nothing_is_found(path, capsys):
    code, lines, errors = run(capsys, "--trial-dir", path, "--rule-name", "LossNotDecreasing")
    assert (code, errors) == (0, "")
    assert lines == [
        f"LossNotDecreasing on {path}: nothing to check at 4 steps (0 to 3).",
        "Skipped at some step: loss: no loss from 10 steps earlier to compare with.",
    ]


@pytest.mark.parametrize(
    "options",
    [
        ["--tensor_regex", "w$", "--num_steps", "2"],
        ["--tensor-regex=w$", "--num-steps=2"],
        ["--num_steps", "2", "--tensor_regex", "w$", "--start-step", "0"],
    ],
)
def test_any_parameter_of_the_rule_is_an_option(path, capsys, options):
    code, lines, _ = run(capsys, "--trial-dir", path, "--rule-name", "UnchangedTensor", *options)
    assert code == 1
    assert lines[0] == "step 1: gradient/w: unchanged at steps 0, 1"


def test_a_flag_without_a_value_is_true(path, capsys):
    code, _, _ = run(capsys, "--trial-dir", path, "--rule-name", "ExplodingTensor", "--only_nan")
    assert code == 0


def test_a_negative_number_is_a_value(rule_file, path, capsys):
    code, *_ = run(capsys, "--trial-dir", path, "--rule-file", rule_file, "--limit", "-1")
    assert code == 1


def test_steps_can_be_restricted(path, capsys):
    argv = ["--trial-dir", path, "--rule-name", "VanishingGradient"]
    code, lines, _ = run(capsys, *argv, "--start-step", "1", "--end-step", "2")
    assert code == 0
    assert lines == [f"VanishingGradient on {path}: passed at 1 step (1)."]


def test_the_first_finding_can_be_the_last(rule_file, path, capsys):
    argv = ["--trial-dir", path, "--rule-file", rule_file, "--limit", "0"]
    code, lines, _ = run(capsys, *argv, "--raise-rule-eval-cond-exception", "true")
    assert code == 1
    assert len(lines) == 2
    code, lines, _ = run(capsys, *argv, "--raise-rule-eval-cond-exception", "False")
    assert len(lines) == 5


@pytest.mark.parametrize("separator", [",", ";"])
def test_other_trials_are_opened(path, other_path, capsys, separator):
    argv = ["--trial-dir", path, "--rule-name", "SimilarAcrossRuns", "--include", "loss"]
    code, lines, _ = run(capsys, *argv, "--other-trials", f"{other_path}{separator}{path}")
    assert code == 1
    assert lines[0] == "step 1: loss: differs from run other by up to 5"


@pytest.mark.parametrize("option", ["--other_trial", "--other-trial", "--other_trials"])
def test_another_trial_is_opened_by_the_name_that_the_rule_has_for_it(path, other_path, capsys, option):
    argv = ["--trial-dir", path, "--rule-name", "SimilarAcrossRuns", option, other_path]
    code, lines, _ = run(capsys, *argv)
    assert (code, lines[0]) == (1, "step 1: loss: differs from run other by up to 5")


def test_a_rule_of_your_own_is_taken_from_its_file(path, rule_file, capsys):
    argv = ["--trial-dir", path, "--rule-file", rule_file, "--limit", "3.5"]
    code, lines, _ = run(capsys, *argv, "--rule-name", "myrule")
    assert code == 1
    assert lines[:2] == ["step 0: loss: value 5", "step 1: loss: value 4"]


def test_the_rules_are_listed_and_described(capsys):
    code, lines, _ = run(capsys, "--list")
    assert code == 0
    assert "VanishingGradient" in lines[0]
    code, lines, _ = run(capsys, "--describe", "lossnotdecreasing")
    assert code == 0
    assert lines[0] == "LossNotDecreasing"
    assert any("--min_difference (float, default 0.0)" in line for line in lines)


def test_the_help_begins_with_the_command_and_has_examples_and_exit_codes(capsys):
    code, lines, _ = run(capsys, "--help")
    assert code == 0
    assert lines[0] == (
        "usage: python -m smdebug.rules.rule_invoker --trial-dir PATH --rule-name NAME "
        "[--PARAMETER VALUE ...]"
    )
    codes = [line.split()[0] for line in lines[lines.index("exit codes:") + 1 :] if line]
    assert codes == ["0", "1", "2", "3", "130"]
    assert any("--rule-name VanishingGradient --threshold 1e-6" in line for line in lines)


ASKED_WRONGLY = {
    "no rule": ([], "--rule-name is missing; --list lists the built-in rules"),
    "no run": (["--rule-name", "AllZero"], "--trial-dir is missing"),
    "misspelt rule": (["--rule-name", "VanishingGradients"], "Did you mean VanishingGradient?"),
    "no such rule": (["--rule-name", "zzz"], "VanishingGradient, "),
    "misspelt parameter": (
        ["--rule-name", "VanishingGradient", "--treshold", "1"],
        "VanishingGradient takes no parameter 'treshold'. Did you mean threshold?",
    ),
    "bad value": (
        ["--rule-name", "VanishingGradient", "--threshold", "tiny", "--trial-dir", "RUN"],
        "threshold must be a number, not 'tiny'",
    ),
    "selector missing": (
        ["--rule-name", "AllZero", "--trial-dir", "RUN"],
        "AllZero needs collection_names or tensor_regex",
    ),
    "given twice": (
        ["--rule-name", "VanishingGradient", "--threshold", "1", "--threshold=2"],
        "--threshold is given twice",
    ),
    "bad flag": (
        ["--rule-name", "AllZero", "--raise-rule-eval-cond-exception", "maybe"],
        "--raise-rule-eval-cond-exception must be True or False, not 'maybe'",
    ),
    "a stray value": (["--rule-name", "VanishingGradient", "5"], "'5' follows no option"),
    "other trial missing": (
        ["--rule-name", "SimilarAcrossRuns", "--trial-dir", "RUN"],
        "pass its trial as other_trial",
    ),
    "no use for others": (
        ["--rule-name", "VanishingGradient", "--trial-dir", "RUN", "--other-trials", "RUN"],
        "VanishingGradient takes no other trials",
    ),
    "no number": (["--start-step", "x"], "invalid int value: 'x'"),
    "no file": (["--rule-file", "/no/such/rule.py"], "There is no file /no/such/rule.py"),
    "not in the file": (["--rule-file", "FILE", "--rule-name", "MyRole"], "Did you mean MyRule?"),
    "parameter missing": (["--rule-file", "FILE", "--trial-dir", "RUN"], "MyRule needs --limit"),
    "bad value of a custom rule": (
        ["--rule-file", "FILE", "--trial-dir", "RUN", "--limit", "x"],
        "MyRule cannot be created: could not convert string to float: 'x'",
    ),
    "bad action": (
        ["--rule-name", "VanishingGradient", "--trial-dir", "RUN", "--action_json", "{"],
        "The actions are not valid JSON",
    ),
}


@pytest.mark.parametrize("case", ASKED_WRONGLY)
def test_what_is_wrong_is_reported_in_one_line_and_the_exit_code_is_2(case, path, rule_file, capsys):
    argv, complaint = ASKED_WRONGLY[case]
    argv = [{"RUN": path, "FILE": rule_file}.get(item, item) for item in argv]
    code, _, errors = run(capsys, *argv)
    assert code == 2
    assert errors.startswith("error: ")
    assert complaint in errors
    assert errors.count("\n") == 1


def test_a_file_that_cannot_be_loaded_is_named(tmp_path, capsys):
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_that_name\n")
    code, _, errors = run(capsys, "--rule-file", str(broken))
    assert code == 2
    assert "broken.py cannot be loaded: ModuleNotFoundError" in errors


def test_a_run_that_cannot_be_read_is_exit_code_3(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SMDEBUG_TRIAL_WAIT_SECONDS", "0")
    code, _, errors = run(capsys, "--trial-dir", str(tmp_path / "none"), "--rule-name", "VanishingGradient")
    assert code == 3
    assert errors.startswith("error: ")


def test_a_rule_that_breaks_is_exit_code_3_after_the_summary(path, tmp_path, capsys):
    file = tmp_path / "breaking.py"
    file.write_text(
        "from smdebug.rules import Rule\n"
        "class Breaking(Rule):\n"
        "    def invoke_at_step(self, step):\n"
        "        return self.base_trial.tensor('loss').value(step).item() / (2 - step) > 9\n"
    )
    code, lines, errors = run(capsys, "--trial-dir", path, "--rule-file", str(file))
    assert code == 3
    assert errors == "error: Breaking failed: ZeroDivisionError: float division by zero\n"
    assert lines == [f"Breaking on {path}: passed at 2 steps (0 to 1)."]
