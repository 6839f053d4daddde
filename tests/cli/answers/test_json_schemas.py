"""The JSON schema of each command's answer; `ask` holds the answers of all other tests against it."""

from __future__ import annotations

import json
import subprocess
import sys

import jsonschema
import pytest

from smdebug.backtesting.deployed.plan import Estimate
from smdebug.cli.commands import COMMANDS
from smdebug.cli.json_answers.schemas import DOCUMENTS, LINES, schema_of
from tests.cli.conftest import failing_run
from tests.support.answers import problems_of

ANSWERING = [*DOCUMENTS, *LINES]


def test_every_command_has_a_schema():
    assert sorted(ANSWERING) == sorted(COMMANDS)


@pytest.mark.parametrize("command", ANSWERING)
def test_it_is_a_schema_whose_forms_are_all_described(command):
    schema = schema_of(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert command in schema["title"]
    assert [name for name, form in schema["$defs"].items() if not form["description"]] == []


@pytest.mark.parametrize("command", sorted(ANSWERING))
def test_the_command_prints_it(command, ask):
    answer = ask(command, "--json-schema")
    assert (answer.code, json.loads(answer.out), answer.err) == (0, schema_of(command), "")


BROKEN = """
from smdebug.rules import Rule

class Broken(Rule):
    def invoke_at_step(self, step):
        raise ZeroDivisionError("no rows")
"""
CHECK = {"what": "numpy", "state": "good", "found": "2.4", "hint": ""}


@pytest.mark.parametrize(
    ("command", "wrong", "where"),
    [
        ("doctor", [{**CHECK, "state": 3}], "0.state"),
        ("doctor", [{name: CHECK[name] for name in ("what", "state", "found")}], "0"),
        ("doctor", [{**CHECK, "more": ""}], "0"),
        ("plot", {"output": "x", "bytes": 1.5, "left_out": []}, "bytes"),
        ("import", {"imported": [], "failed": [{"source": "x", "name": None, "error": ""}]}, "failed.0.name"),
        ("policy", {"policy": {}}, ""),
    ],
)
def test_an_answer_of_another_form_is_noticed(command, wrong, where):
    assert where in {place for place, _ in problems_of(command, wrong)}


@pytest.mark.parametrize("number", [0.5, 3, "NaN", "Infinity", "-Infinity", None])
def test_a_number_that_json_lacks_is_text(number):
    answer = {"runs": 1, "chunks": 1, "steps": 1, "dollars": number, "seconds": 1.0}
    answer |= {"bundled": 0, "dollars_bundled": 0.1, "writes_bundles": True, "slows_live_runs": False}
    assert bool(problems_of("backtest", answer)) == (number is None)


def test_what_a_later_release_adds_is_no_error_for_who_reads_by_the_schema():
    validator = jsonschema.Draft202012Validator(schema_of("doctor"))
    assert validator.is_valid([{**CHECK, "more": ""}])
    assert not validator.is_valid([{**CHECK, "hint": None}])


def test_the_answer_of_a_dry_run_has_the_form_of_its_schema():
    assert problems_of("backtest", Estimate(3, 1, 30, 0.25, 12.5, 2, 0.125).to_dict()) == set()


def test_the_other_answers_of_a_command_have_the_form_of_its_schema_too(ask, tmp_path):
    """`ask` checks what is printed with `--json`; the other files have the first form of each command."""
    entry = ask("rules", "VanishingGradient", "--json")
    assert entry.json["name"] == "VanishingGradient"
    for words in ((), ("--trust",)):
        printed = ask("policy", "s3://runs/vision/", "--for", "eks", *words)
        assert problems_of("policy", printed.json) == set()

    failing_run(tmp_path / "run")
    (tmp_path / "broken.py").write_text(BROKEN)
    rule = ("--rule-file", tmp_path / "broken.py", "--rule", "Broken")
    watched = ask("watch", tmp_path / "run", "--once", "--json", *rule)
    (failed,) = [line for line in map(json.loads, watched.out.splitlines()) if line["event"] == "failed"]
    assert (failed["rule"], "no rows" in failed["error"]) == ("Broken", True)


def test_what_a_run_of_a_script_writes_has_the_form_of_its_schema(tmp_path):
    (tmp_path / "script.py").write_text("print('no training')")
    words = ("--out-dir", "run", "--json", "done.json", "script.py")
    subprocess.run([sys.executable, "-m", "smdebug.run", *words], cwd=tmp_path, check=True)
    assert problems_of("run", json.loads((tmp_path / "done.json").read_text())) == set()
    assert problems_of("run", {"runs": ["a", "b"]}) == set()
    assert problems_of("run", {"runs": [1]}) == {("runs.0", "1 is not of type 'string'")}
