"""`smdebug backtest` and `smdebug replay` as commands."""

from __future__ import annotations

import io
import json
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from smdebug.backtesting import kept_rows
from smdebug.backtesting.backtest import Backtest
from smdebug.backtesting.kept_rows import KeptRows, RowWriter
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import FOUND, PASSED, Row
from smdebug.backtesting.summary import overview
from smdebug.cli.runs.backtest_command import print_verdicts
from smdebug.runs.requests.annotating import annotate
from smdebug.service.backtests import Execution
from smdebug.storage import open_storage
from tests.backtesting.deployed.folder_account import FolderAccount
from tests.backtesting.many_runs import make_run, make_runs, write_rule
from tests.cli.conftest import Ask
from tests.rules.made_runs import MadeRun


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Make six runs and a rule in the current folder; return the words that both commands begin with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_runs(tmp_path / "runs", 6)
    write_rule(tmp_path / "rule.py")
    return "backtest", "runs", "-j", "1"


def test_the_table_shows_the_runs_that_did_not_pass_and_the_sums(ask: Ask, words: tuple[str, ...]):
    Path("labels.csv").write_text("run,label\nruns/run-00,failing\nrun-01,fine\n")
    answer = ask(*words, "--rule-file", "rule.py", "--labels", "labels.csv")
    lines = answer.out.splitlines()
    assert answer.code == 0
    assert [line.split()[0] for line in lines[1:3]] == ["runs/run-00", "runs/run-03"]
    assert "4 verdicts more" in lines[3]
    assert (
        "2 of 6 runs with findings, 4 passed; of failing runs 1 of 1 found, of healthy runs 0 of 1"
        in lines[4]
    )
    again = ask(*words, "--rule-file", "rule.py", "--all-runs")
    assert len([line for line in again.out.splitlines() if line.startswith("runs/")]) == 6
    assert "6 of 6 runs had been judged before" in again.out


def test_labels_of_no_run_are_named(
    ask: Ask, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    names = [f"gone-{number}" for number in range(6)]
    Path("labels.csv").write_text("run,label\nrun-00,failing\n" + "".join(f"{name},ok\n" for name in names))
    answer = ask(*words, "--rule-file", "rule.py", "--labels", "~/labels.csv", "--json")
    assert answer.code == 0
    assert (
        "no judged run has 6 of its 7 names: gone-0, gone-1, gone-2, gone-3, gone-4 and 1 more" in answer.err
    )
    assert answer.json["rules"][0]["failing"] == 1
    Path("labels.csv").write_text("run,label\n")
    assert "labels.csv has no labels" in ask(*words, "--rule-file", "rule.py", "--labels", "labels.csv").err


def test_tags_of_no_run_are_named(ask: Ask, words: tuple[str, ...]):
    annotate(open_storage("runs/run-00"), {"tags": ["nan"]}, "")
    words = (*words, "--rule-file", "rule.py")
    answer = ask(*words, "--failing-tag", "nan", "--healthy-tag", "fin")
    assert answer.code == 0
    assert answer.err.splitlines() == ["No judged run has the tag fin"]
    assert "of failing runs 1 of 1 found" in answer.out
    assert "tag" not in ask(*words).err


def test_a_table_in_which_all_passed_has_no_head(ask: Ask, words: tuple[str, ...]):
    Path("labels.csv").write_text("run,label\nrun-01,fine\n")
    answer = ask("backtest", "runs/run-01", "--rule-file", "rule.py", "--labels", "labels.csv")
    first, second = answer.out.splitlines()
    assert first == "No findings in 1 verdict; --all-runs shows them"
    assert "0 of 1 run with findings, 1 passed; of healthy runs 0 of 1 found; " in second
    shown = ask("backtest", "runs/run-01", "--rule-file", "rule.py", "--all-runs")
    assert shown.out.splitlines()[1].startswith("runs/run-01  ✓")


def test_findings_come_before_what_was_not_checked(ask: Ask, words: tuple[str, ...]):
    answer = ask(
        *words, "--rule-file", "rule.py", "--rule", "LossSpike", "--rule", "StuckLoss", "-o", "t.html"
    )
    shown = [line.split()[:2] for line in answer.out.splitlines()[1:9]]
    found = [["runs/run-00", "LossSpike"], ["runs/run-03", "LossSpike"]]
    assert shown == [*found, *(["runs/run-0" + str(number), "StuckLoss"] for number in range(6))]
    page = Path("t.html").read_text()
    assert page.index("<td>runs/run-03</td><td>LossSpike") < page.index("<td>runs/run-00</td><td>StuckLoss")


def test_all_rows_are_read_once_to_show_some_of_them(
    ask: Ask, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    """With a set of rules there are many, and by then the processes have ended and the cores are idle."""
    read: list[int] = []
    at = KeptRows._at
    monkeypatch.setattr(KeptRows, "_at", lambda rows, start: read.append(int(start)) or at(rows, start))
    shown = ask(*words, "--rule-file", "rule.py", "--rule", "LossSpike", "--rule", "StuckLoss")
    assert "LossSpike: 2 of 6 runs with findings" in shown.out
    assert len(read) == len(set(read)) == 12


def test_a_table_without_runs_says_why(ask: Ask, words: tuple[str, ...]):
    answer = ask(*words, "--rule-file", "rule.py", "--where", "steps>100")
    assert answer.code == 0
    assert answer.out.startswith("None of 6 runs satisfies --where: `smdebug runs` shows their values")
    make_run(Path("old/a"), [2.0])
    for file in Path("old").rglob("*"):
        os.utime(file, (1e9, 1e9))
    answer = ask("backtest", "old", "--expr", "loss > 1", "--since", "1d", "--where", "steps=1")
    assert answer.out.startswith("None of 1 run satisfies --where and --since: ")


def test_a_place_without_runs_says_whether_it_is_empty(ask: Ask, words: tuple[str, ...]):
    Path("other").mkdir()
    for command in (("backtest", "--rule", "StuckLoss"), ("runs",)):
        answer = ask(*command, "nowhere")
        assert answer.code == 3
        assert "nowhere: the place is empty or does not exist." in answer.err
    Path("other/note.txt").touch()
    assert "other.\n" in ask("backtest", "--rule", "StuckLoss", "other").err


class Counted(io.StringIO):
    """Counts the lines that it is given and keeps none; notes what is held once there are so many."""

    lines, held = 0, -1

    def __init__(self, notes_at: int):
        super().__init__()
        self._notes_at = notes_at

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        if self.lines >= self._notes_at and self.held < 0:
            self.held = held_by("backtesting", "cli")
        return len(text)


def held_by(*rooms: str) -> int:
    """The bytes that these rooms of the library hold; threads of other tests have theirs elsewhere."""
    of_rooms = [tracemalloc.Filter(True, f"*/smdebug/{room}/*") for room in rooms]
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(of_rooms).traces)


@pytest.mark.parametrize("status", [FOUND, PASSED])
def test_all_runs_are_shown_in_as_much_memory_as_few(monkeypatch: pytest.MonkeyPatch, status: str):
    monkeypatch.setattr(kept_rows, "_IN_MEMORY", 10_000)
    held: dict[int, int] = {}
    for number in (200, 4_200):
        writer = RowWriter()
        for each in range(number):
            writer.add(each, [Row(f"runs/{each:07}", "LossSpike", status, first_finding="loss: 4 (limit 3)")])
        table = Backtest(writer.in_order(), runs=number)
        out = Counted(notes_at=number)
        tracemalloc.start()
        try:
            with monkeypatch.context() as patched:
                patched.setattr(sys, "stdout", out)
                print_verdicts(table, overview(table.rows), Question(()), all_runs=True)
        finally:
            tracemalloc.stop()
        assert out.lines == number + 2  # and the head, and the sum
        held[number] = out.held
    assert min(held.values()) > 0  # it looked
    assert held[4_200] < held[200] + 4_000 * 20  # bytes, fewer than a line has


def test_cancelling_says_in_json_what_was_ended(
    ask: Ask, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    account = FolderAccount(tmp_path)
    monkeypatch.setattr("smdebug.service.backtests.connect_backtests", lambda stack: account)
    words = (words[0], str(tmp_path / "runs"), "--rule", "LossSpike", "--deployed", "--json")
    assert ask(*words, "--cancel").json == {"cancelled": None}
    started = ask(*words)
    assert started.code == 0, started.err
    (name,) = account.executions
    account.executions[name] = Execution("RUNNING")
    assert ask(*words, "--cancel").json == {"cancelled": name}
    assert account.executions[name].status == "ABORTED"


def test_the_files_and_the_json_hold_the_same_rows(ask: Ask, words: tuple[str, ...]):
    answer = ask(*words, "--rule-file", "rule.py", "--json", "-o", "table.json", "-o", "table.html")
    assert answer.json["rows"] == json.loads(Path("table.json").read_text())["rows"]
    assert answer.json["rules"][0]["fires"] == 2
    assert "times the last" in Path("table.html").read_text()


def test_a_difference_between_two_versions_and_a_failure_have_their_exit_codes(
    ask: Ask, words: tuple[str, ...]
):
    write_rule(Path("older.py"), factor=6)
    answer = ask(*words, "--rule-file", "rule.py", "--against", "older.py")
    assert answer.code == 1
    assert "runs/run-00 LossSpike: NoIssuesFound → IssuesFound: step 20: now loss" in answer.out
    assert "1 of 6 verdicts differ from the older version, and the findings of 1 more" in answer.out
    write_rule(Path("fails.py"), first="1 / 0")
    assert ask(*words, "--rule-file", "fails.py").code == 3


@pytest.mark.parametrize("text", ["los > 1", "lsos > 1 and loss > 0", 'stat("los", mean) > 1'])
def test_a_series_that_no_run_has_is_named_with_those_that_there_are(
    ask: Ask, words: tuple[str, ...], text: str
):
    answer = ask(*words, "--expr", text)
    assert answer.code == 3
    assert answer.err.startswith("No run has the ")
    assert "Did you mean loss? There are loss." in answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_series_that_one_run_has_is_no_misspelt_one(ask: Ask, words: tuple[str, ...]):
    run = MadeRun(Path("runs/run-09"))
    run.save(0, {"reward": np.array([1.0], np.float32)})
    run.end()
    answer = ask(*words, "--expr", "reward > 2")
    assert (answer.code, answer.err) == (0, "")
    assert "6 without a verdict" in answer.out


def test_runs_in_which_nothing_was_checked_have_not_passed(ask: Ask, words: tuple[str, ...]):
    assert ask(*words, "--rule", "VanishingGradient").code == 3
    both = ask(*words, "--rule-file", "rule.py", "--rule", "LossSpike", "--rule", "VanishingGradient")
    assert both.code == 0


def test_an_expression_needs_no_rule(ask: Ask, words: tuple[str, ...]):
    answer = ask(*words, "--expr", "loss > 4 * lag(loss, 1)")
    assert answer.code == 0
    assert "loss / lag(loss, 1) 4.737 (limit 4)" in answer.out


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ((), "Name a rule"),
        (("--collect", "nightly-2026-01-31"), "--collect takes no PLACES"),
        (("--rule-file", "nowhere.py"), "no file nowhere.py"),
        (("--rule-file", "rule.py", "--set", "faktor=2"), "faktor"),
        (("--rule-file", "rule.py", "--set", "factor=four"), "float: 'four'. LossSpike takes factor\n"),
        (("--rule", "VanishingGradient", "--set", "threshold=x"), "VanishingGradient takes threshold, "),
        (
            ("--rule-file", "rule.py", "--rule-file", "b.py"),
            "--rule-file takes one FILE, not 2: rule.py, b.py",
        ),
        (("--expr", "loss > 1", "--expr", "loss > 2"), "--expr takes one CONDITION, not 2"),
        (("--rule-file", "rule.py", "--since", "yesterday"), "--since takes"),
        (("--rule-file", "rule.py", "--since", f"{'9' * 400}d"), "--since takes"),
        (("--rule-file", "rule.py", "--since", "2999-01-01"), "is in the future"),
        (("--rule-file", "rule.py", "--timeout", "nan"), "not a finite number"),
        (("--rule-file", "rule.py", "--timeout", "1e300"), "not in the range"),
        (("--rule-file", "rule.py", "--deployed", "--budget", "nan"), "not a finite number"),
        (("--rule-file", "rule.py", "-o", "table.xlsx"), ".parquet"),
        (("--rule-file", "rule.py", "--expr", "loss > 1"), "cannot be combined"),
        (("--expr", "loss >"), "ends too early"),
        (("--rule", "StuckLoss", "--against", "rule.py"), "--against needs --rule-file"),
    ],
)
def test_a_wrong_call_is_refused_before_any_run_is_judged(
    ask: Ask, words: tuple[str, ...], more: tuple[str, ...], problem: str
):
    answer = ask(*words, *more)
    assert answer.code == 2
    assert problem in answer.err


def test_a_replay_shows_the_state_before_and_after(ask: Ask, words: tuple[str, ...], tmp_path: Path):
    make_run(tmp_path / "one", [2.0, 1.0, 8.0])
    answer = ask("replay", "one", "--at", "20", "--rule", "LossSpike", "--rule-file", "rule.py")
    assert answer.code == 1
    assert "after 2 steps: found" in answer.out
    assert "last: 1.0 → 8.0" in answer.out
    passed = ask("replay", "one", "--at", "10", "--rule", "LossSpike", "--rule-file", "rule.py")
    assert (passed.code, "after 1 step: passed" in passed.out) == (0, True)
    of_set = ask("replay", "one", "--at", "10", "--rule", "Default")
    assert (of_set.code, "Default is a set of rules" in of_set.err) == (2, True)


@pytest.mark.parametrize(
    ("raised", "said"), [("1 / 0", "ZeroDivisionError: division by zero"), ("exit(3)", "sys.exit(3)")]
)
def test_whatever_the_constructor_of_a_rule_raises_is_said(
    ask: Ask, words: tuple[str, ...], raised: str, said: str
):
    code = Path("rule.py").read_text().replace("self.last = None", raised)
    Path("fails.py").write_text(code)
    answer = ask(*words, "--rule-file", "fails.py", "--limit", "1")
    assert (answer.code, "LossSpike cannot be created: " in answer.out, said in answer.out) == (
        3,
        True,
        True,
    )
    for command in ("evaluate",), ("replay", "--at", "10"):
        answer = ask(*command, "runs/run-00", "--rule", "LossSpike", "--rule-file", "fails.py")
        assert (answer.code, "LossSpike cannot be created: " in answer.err, said in answer.err) == (
            2,
            True,
            True,
        )


def test_an_older_version_must_have_the_rule(ask: Ask, words: tuple[str, ...]):
    Path("older.py").write_text(Path("rule.py").read_text().replace("class LossSpike", "class Spike"))
    answer = ask(*words, "--rule-file", "rule.py", "--against", "older.py")
    assert answer.code == 2
    assert "older.py defines no rule 'LossSpike', but Spike" in answer.err
