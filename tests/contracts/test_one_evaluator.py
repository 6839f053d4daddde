"""Awkward rules have the same outcome wherever they are evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from functions.evaluation import rule_bench
from smdebug.cli.main import main
from smdebug.files.names import event_key
from smdebug.rules.loading import load_rule_file
from smdebug.runs.evaluation import rule_steps
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.runs.evaluation.rule_results import RuleResult
from smdebug.runs.live_run import LiveRun
from smdebug.runs.opening import open_run
from smdebug.service.records import RuleConfiguration
from smdebug.ui.following.reading import RunReader
from tests.functions.custom_rules.watched import RUN, Watched
from tests.functions.saver import Saver
from tests.reports.reading import answer_in

STEPS = range(5)
MARKED = np.arange(100, 132, dtype=np.float32)
RULES = """
import os
import sys

from smdebug.rules import Rule


class Reads(Rule):
    def value(self, step, name="gradient/fc"):
        return float(self.base_trial.tensor(name).value(step).reshape(-1)[-1])


class ReadsNamesOnly(Rule):
    def invoke_at_step(self, step):
        return "never" in self.base_trial.tensor_names(step=step)


class MeetsDamage(Reads):
    def invoke_at_step(self, step):
        return self.value(step, "marked") > 0 and step > 2


class Exits(Reads):
    def invoke_at_step(self, step):
        if step == 2:
            sys.exit(0)
        return self.value(step) < 0


class EndsItsProcess(Reads):
    def invoke_at_step(self, step):
        if step == 2:
            os._exit(0)
        return self.value(step) < 0


class Forks(Reads):
    def invoke_at_step(self, step):
        os.fork()
        return self.value(step) > 0 and step == 3


class JudgesTheEnd(Reads):
    def invoke_at_step(self, step):
        return self.value(step) < 0

    def invoke_at_end(self, step):
        return True


class ComparesRuns(Rule):
    def invoke_at_step(self, step):
        ours, theirs = (trial.tensor("gradient/fc").value(step)[0] for trial in self.trials)
        return ours != theirs


class AttachesLate(Reads):
    def invoke_at_step(self, step):
        return self.value(step) > 0


class Counts(Reads):
    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.seen = 0

    def invoke_at_step(self, step):
        self.seen += self.value(step) > 0
        return self.seen > 3


class NeedsWhatIsNotSaved(Reads):
    def invoke_at_step(self, step):
        return self.value(step, "never") > 0


class Passes(Reads):
    def invoke_at_step(self, step):
        return self.value(step) < 0
"""


class Judged(NamedTuple):
    """What came of a rule on the run."""

    verdict: str
    steps_found: tuple[int, ...] = ()
    says: str = ""


EXPECTED = {
    "ReadsNamesOnly": Judged("nothing to check"),
    "MeetsDamage": Judged("found", (3, 4)),
    "Exits": Judged("failed", says="at step 2: the rule called sys.exit(0)"),
    "EndsItsProcess": Judged("failed", says="at step 2: "),
    "Forks": Judged("found", (3,)),
    "JudgesTheEnd": Judged("found", (4,)),
    "ComparesRuns": Judged("found", (3,)),
    "AttachesLate": Judged("found", (2, 3, 4)),
    "Counts": Judged("found", (3, 4)),
    "NeedsWhatIsNotSaved": Judged("nothing to check"),
    "Passes": Judged("passed"),
}
MORE: Mapping[str, dict[str, Any]] = {
    "AttachesLate": {"start_step": 2},
    "ComparesRuns": {"other_trials": ["s3://runs/other"]},
}


class Run(NamedTuple):
    """A run, another one that it is compared with, and the file of the rules."""

    place: str
    other: str
    file: str

    def configuration(self, rule: str) -> RuleConfiguration:
        more = {**MORE.get(rule, {})}
        if "other_trials" in more:
            more["other_trials"] = (self.other,)
        return RuleConfiguration(rule, rule, **more)


def save(saver: Saver, other: bool = False, then: Callable[[], None] = lambda: None) -> None:
    for step in STEPS:
        first = 7 if other and step == 3 else 0.5
        fc = np.array([first, 1], np.float32)
        saver.save(step, {"gradient/fc": fc, "marked": MARKED})
        then()


def damage(place: Any) -> None:
    """Flip a bit in the value that only one rule reads, at step 1."""
    key = event_key(1, "worker_0")
    data = bytearray(place.read(key))
    data[data.index(MARKED.tobytes()) + 17] ^= 4
    place.write(key, bytes(data))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "rules.py").write_text(RULES)
    watched = Watched(folder)  # for its storage
    save(watched.saver)
    damage(watched.place)
    watched.saver.end()
    other = Saver(watched.small.place("other")).begin()
    save(other, other=True)
    other.end()
    watched.place.delete("rules.json")
    places = (watched.place.location, watched.small.place("other").location)
    return Run(*places, str(folder / "rules.py"))


def judged(result: RuleResult) -> Judged:
    if result.error:
        return Judged("failed", says=result.error)
    if result.has_found:
        return Judged("found", result.steps_found)
    return Judged("passed" if result.has_seen else "nothing to check")


# On this machine


def in_a_notebook(run: Run, rule: str) -> Judged:
    """What the diagnosis says, in the words and the table that a notebook shows."""
    found = diagnose(open_run(run.place), [run.configuration(rule)], file=run.file)
    if rule in found.failed:
        assert f"{rule} failed: " in found._repr_html_()
        return Judged("failed", says=found.failed[rule])
    if found.issues:
        assert rule in found._repr_html_()
        return Judged("found", found.results[0].steps_found)
    assert rule in found._repr_html_()
    return Judged("passed" if rule in found.passed else "nothing to check")


def in_two_processes(run: Run, rule: str) -> Judged:
    rules = [run.configuration(rule)]
    (result,) = evaluate(open_run(run.place), rules, file=run.file, jobs=2, worth_a_process=2)
    return judged(result)


def beside_a_training(run: Run, rule: str) -> Judged:
    live = LiveRun(run.place, [run.configuration(rule)], run.file)
    live.advance()
    assert live.following is not None
    (result,) = live.following.results
    return judged(result)


def by_the_command(run: Run, rule: str) -> Judged:
    more = MORE.get(rule, {})
    words = ["evaluate", run.place, "--rule-file", run.file, "--rule", rule, "--json"]
    words += ["--start-step", str(more.get("start_step", 0))]
    words += ["--other-run", run.other] if "other_trials" in more else []
    with redirect_stdout(StringIO()) as printed:
        code = main(words)
    (answer,) = json.loads(printed.getvalue())
    if answer["error"]:
        assert code == 3
        return Judged("failed", says=answer["error"])
    if answer["steps_found"]:
        return Judged("found", tuple(answer["steps_found"]))
    return Judged("nothing to check" if answer["not_checked"] else "passed")


@pytest.mark.parametrize("rule", EXPECTED)
@pytest.mark.parametrize("way", [in_a_notebook, in_two_processes, beside_a_training, by_the_command])
def test_on_this_machine_the_outcome_is(run: Run, rule: str, way: Callable[[Run, str], Judged]):
    answer, expected = way(run, rule), EXPECTED[rule]
    assert answer[:2] == expected[:2]
    assert answer.says.startswith(expected.says)


# On the page and in a report

# A file of rules names runs to compare with by their address in S3, so this one is evaluated without it.
REPORTED = [rule for rule in EXPECTED if rule != "ComparesRuns"]


def shown(page: Any, rule: str) -> Judged:
    """What a page says of the rule."""
    (answer,) = (each for each in page["rules"] if each["name"] == rule)
    verdict = answer["state"].replace("not checked", "nothing to check")
    says = answer["sentence"].removeprefix(f"{rule} failed: ") if verdict == "failed" else ""
    return Judged(verdict, tuple(answer["steps_found"]), says)


@pytest.fixture(scope="module")
def report(run: Run) -> Any:
    """What a report says that evaluates them all."""
    page, rules = Path(run.file).with_name("report.html"), Path(run.file).with_name("rules.json")
    own = [run.configuration(rule).to_dict() for rule in REPORTED]
    rules.write_text(json.dumps({"default_rules": False, "rules": own}))
    words = ["report", run.place, "--rule-file", run.file, "--rules", str(rules), "--output", str(page)]
    with redirect_stdout(StringIO()):
        assert main(words) == 3  # some of them fail
    return answer_in(page.read_text())


@pytest.mark.parametrize("rule", REPORTED)
def test_in_a_report_the_outcome_is(report: Any, rule: str):
    answer, expected = shown(report, rule), EXPECTED[rule]
    assert answer[:2] == expected[:2]
    assert answer.says.startswith(expected.says)


# Deployed


def deployed(watched: Watched, rule: str) -> Judged:
    other = Saver(watched.small.place("other")).begin()
    save(other, other=True)
    other.end()
    # What a rule remembers goes from one evaluation to the next: the steps come one at a time.
    save(watched.saver, then=watched.settle if rule == "Counts" else lambda: None)
    damage(watched.place)
    watched.end()
    (record,) = (
        record
        for group in watched.small.index.groups.all_of(RUN)
        for record in group.rules
        if record.name == "mine"
    )
    status, found = record.status.value, tuple(dict.fromkeys(watched.found))
    if status == "Error":
        return Judged("failed", says=record.reason)
    if status == "IssuesFound":
        return Judged("found", found)
    return Judged("nothing to check" if record.last_good is None else "passed")


@pytest.mark.parametrize("rule", EXPECTED)
def test_of_a_deployed_rule_of_a_user_the_outcome_is(tmp_path: Path, rule: str):
    more = {**MORE.get(rule, {}), "parameters": {}, "repeat": "every_step"}
    answer, expected = deployed(Watched(tmp_path, RULES, rule, **more), rule), EXPECTED[rule]
    assert answer[:2] == expected[:2]
    if rule != "EndsItsProcess":  # it is tried twice, which its message says
        assert answer.says.startswith(expected.says)


# Built-in rules: these stand in the catalog for a test. One that ends its process would end the caller, too.

BUILT_IN = [rule for rule in EXPECTED if rule != "EndsItsProcess"]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules.py").write_text(RULES)
    classes = vars(load_rule_file(str(tmp_path / "rules.py")))

    class Entry(NamedTuple):
        name: str

        def load(self) -> Any:
            return classes[self.name]

    monkeypatch.setattr(rule_bench, "find_rule", Entry)
    monkeypatch.setattr(rule_bench, "check", lambda configuration, catalog: None)
    monkeypatch.setattr(rule_steps, "find_rule", Entry)


@pytest.mark.usefixtures("catalog")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("rule", BUILT_IN)
def test_of_a_deployed_built_in_rule_the_outcome_is(tmp_path: Path, rule: str):
    more = {**MORE.get(rule, {}), "parameters": {}, "repeat": "every_step", "source": None}
    answer, expected = deployed(Watched(tmp_path, rule=rule, **more), rule), EXPECTED[rule]
    assert answer[:2] == expected[:2]
    assert answer.says.startswith(expected.says)


@pytest.mark.usefixtures("catalog")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("rule", BUILT_IN)
def test_of_a_built_in_rule_on_the_page_the_outcome_is(run: Run, rule: str):
    reader = RunReader(run.place, [run.configuration(rule)], is_alone=True)
    while reader.advance(1):
        pass
    answer, expected = shown(reader.verdict, rule), EXPECTED[rule]
    assert answer[:2] == expected[:2]
    assert answer.says.startswith(expected.says)
