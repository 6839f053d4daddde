"""A rule on all runs: the table, what is done twice, and runs that are not as they should be."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdebug import Hook, SaveConfig
from smdebug.backtesting import judging_process
from smdebug.backtesting.backtest import Backtest, Options, backtest
from smdebug.backtesting.labels import Labels
from smdebug.backtesting.question import Question
from smdebug.backtesting.rows import Row
from smdebug.exceptions import MissingCollectionFiles, SMDebugCustomerError, SMDebugValueError
from smdebug.files.names import event_key, index_key
from smdebug.runs import evaluate
from smdebug.runs.conditions import parse_condition
from smdebug.runs.requests.annotating import annotate
from smdebug.storage import open_storage
from tests.backtesting.many_runs import make_run, make_runs, write_rule
from tests.rules.made_runs import MadeRun

ENTRY = ({"rule": "LossSpike", "parameters": {}},)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return make_runs(tmp_path / "runs", 6)


@pytest.fixture
def rule(tmp_path: Path) -> str:
    return write_rule(tmp_path / "rule.py")


def ask(runs: Path, rule: str, **more: Any) -> Backtest:
    question = Question(
        ENTRY, rule, **{key: more.pop(key) for key in list(more) if key in vars(Question(()))}
    )
    return backtest(
        question,
        [str(runs)],
        Options(jobs=more.pop("jobs", 1), journal=runs.parent / "journal.jsonl", **more),
    )


def without_seconds(table: Backtest) -> list[Row]:
    return [replace(row, seconds=0.0) for row in table.rows]


def test_each_run_has_the_row_of_its_own_evaluation(runs: Path, rule: str):
    table = ask(runs, rule, jobs=3)
    assert [Path(row.run).name for row in table.rows] == [f"run-{place:02}" for place in range(6)]
    for row in table.rows:
        (result,) = evaluate(row.run, ENTRY, file=rule)
        found = result.found[0] if result.found else None
        assert (row.status, row.looked, row.steps_found) == (result.status, 4, len(result.steps_found))
        assert row.first_finding == (found.findings[0]["message"] if found else "")
        assert row.onset == (20 if found else None)
    assert [row.fires for row in table.rows] == [True, False, False] * 2


def test_a_row_has_the_number_that_the_rule_compared_whether_it_fired_or_not(runs: Path, rule: str):
    first, second, *_ = ask(runs, rule).rows
    assert first.highest == pytest.approx(1.8 * 5 / 1.9, rel=1e-6)
    assert (first.limit, first.statistic) == (4.0, "times the last")
    assert second.highest == pytest.approx(1.9 / 2, rel=1e-6)


def test_a_run_is_judged_once_until_it_or_the_rule_changes(runs: Path, rule: str):
    first = ask(runs, rule)
    assert (first.reused, ask(runs, rule).reused, ask(runs, rule, fresh=True).reused) == (0, 6, 0)
    shutil.rmtree(runs / "run-01")
    make_run(runs / "run-01", [1.0, 9.0])
    changed = ask(runs, rule)
    assert (changed.reused, changed.rows[1].fires) == (5, True)
    assert ask(runs, write_rule(Path(rule), factor=1000)).reused == 0
    assert without_seconds(ask(runs, write_rule(Path(rule)))) == without_seconds(changed)


def test_a_killed_backtest_goes_on_where_it_stopped(runs: Path, tmp_path: Path):
    """Each evaluation leaves a line; the third run waits until the process was killed."""
    log, gate, journal = tmp_path / "log", tmp_path / "gate", runs.parent / "journal.jsonl"
    first = (
        f"import os, time, pathlib; name = self.base_trial.path\n"
        f"        open({str(log)!r}, 'a').write(f'{{name}} {{step}}\\n')\n"
        f"        while 'run-03' in name and not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.01)"
    )
    rule = write_rule(tmp_path / "slow.py", first=first)
    words = ["backtest", str(runs), "--rule-file", rule, "-j", "1", "--journal", str(journal)]
    process = subprocess.Popen(
        [sys.executable, "-m", "smdebug", *words],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        # A run is in the journal a moment after its verdict, while the next one is judged.
        while not log.exists() or "run-03" not in log.read_text() or "run-02" not in journal.read_text():
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    gate.touch()
    resumed = ask(runs, rule)
    lines = log.read_text().splitlines()
    assert resumed.reused == 3
    assert len([line for line in lines if "run-02" in line]) == 4
    assert without_seconds(resumed) == without_seconds(ask(runs, rule, fresh=True))


def test_a_line_that_was_not_finished_is_passed_over(runs: Path, rule: str):
    first = ask(runs, rule)
    journal = runs.parent / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    resumed = ask(runs, rule)
    assert resumed.reused == 5
    assert without_seconds(resumed) == without_seconds(first)
    assert ask(runs, rule).reused == 6


def test_two_backtests_do_not_write_one_journal(runs: Path, rule: str):
    from smdebug.backtesting.journal import Journal

    with (
        Journal(runs.parent / "journal.jsonl", "other"),
        pytest.raises(SMDebugCustomerError, match="--journal"),
    ):
        ask(runs, rule)


@pytest.mark.parametrize("content", [b"notes\n", b"SQLite format 3\0"])
def test_a_file_of_something_else_is_no_journal(runs: Path, rule: str, content: bytes):
    (runs.parent / "journal.jsonl").write_bytes(content)
    with pytest.raises(SMDebugCustomerError, match="is no journal of a backtest: name another"):
        ask(runs, rule)
    assert (runs.parent / "journal.jsonl").read_bytes() == content


def test_runs_in_any_state_get_a_row_that_says_so(runs: Path, rule: str):
    make_run(runs / "run-06", [2.0, 1.0], ends=False)
    (runs / "run-01" / event_key(10, "worker_0")).write_bytes(b"damaged")
    (runs / "run-02/collections/000000000/worker_0_collections.json").write_bytes(b"foreign")
    for step in range(0, 40, 10):
        (runs / "run-04" / index_key(step, "worker_0")).unlink()
    rows = ask(runs, rule).rows
    assert [row.status for row in rows] == [
        "IssuesFound",
        "Incomplete",
        "Unread",
        "IssuesFound",
        "NotChecked",
        "NoIssuesFound",
        "NoIssuesFound",
    ]
    assert event_key(10, "worker_0") in rows[1].note
    assert rows[2].note
    assert rows[6].note == "the run has not ended"


def test_a_run_without_collections_has_a_row_that_says_so(runs: Path, rule: str):
    shutil.rmtree(runs / "run-01/collections")
    row = ask(runs, rule).rows[1]
    assert (Path(row.run).name, row.status) == ("run-01", "Unread")
    assert "the folder collections/000000000/ is missing" in row.note


def test_a_value_that_no_run_can_have_is_refused_before_any_is_judged(runs: Path, rule: str, tmp_path: Path):
    journal = tmp_path / "other.jsonl"
    wrong = Question(({"rule": "LossSpike", "parameters": {"factor": "four"}},), rule)
    with pytest.raises(SMDebugValueError, match=r"float: 'four'\. LossSpike takes factor$"):
        backtest(wrong, [str(runs)], Options(journal=journal))
    assert not journal.exists()


CHOOSES = """
from smdebug.rules import Rule


class OfOne(Rule):
    def __init__(self, base_trial, name, does="pass"):
        super().__init__(base_trial)
        exec(does)
        self.tensor = base_trial.tensor(name)

    def invoke_at_step(self, step):
        return False
"""


def of_one(tmp_path: Path, **parameters: str) -> Question:
    (tmp_path / "chooses.py").write_text(CHOOSES)
    return Question(({"rule": "OfOne", "parameters": parameters},), str(tmp_path / "chooses.py"))


def test_a_value_that_some_runs_have_is_an_error_of_the_others(runs: Path, tmp_path: Path):
    run = MadeRun(runs / "run-09")
    run.save(0, {"reward": np.array([1.0], np.float32)})
    run.end()
    table = backtest(of_one(tmp_path, name="reward"), [str(runs)], Options(journal=tmp_path / "j", jobs=1))
    assert [row.status for row in table.rows] == ["Error"] * 6 + ["NotChecked"]


def test_a_constructor_that_ends_its_process_ends_no_other(runs: Path, tmp_path: Path):
    options = Options(journal=tmp_path / "j", jobs=1, limit=1)
    dies = of_one(tmp_path, name="loss", does="__import__('os')._exit(3)")
    (row,) = backtest(dies, [str(runs)], options).rows
    assert (row.status, "exit code 3" in row.note) == ("Error", True)
    with pytest.raises(SMDebugValueError, match=r"OfOne cannot be created: .*sys\.exit\(3\)"):
        backtest(of_one(tmp_path, name="loss", does="exit(3)"), [str(runs)], options)


def test_a_parameter_that_a_rule_needs_is_named(runs: Path, tmp_path: Path):
    with pytest.raises(SMDebugValueError, match="OfOne needs name: --set name=VALUE"):
        backtest(of_one(tmp_path), [str(runs)], Options(journal=tmp_path / "j"))


def test_a_run_whose_steps_are_all_gone_is_incomplete(tmp_path: Path):
    with Hook(str(tmp_path / "runs/a"), save_config=SaveConfig(save_interval=1)) as hook:
        for _ in range(2):
            with hook.step():
                hook.record("loss", 2.0)
    shutil.rmtree(tmp_path / "runs/a/index")
    (row,) = ask(tmp_path / "runs", write_rule(tmp_path / "rule.py")).rows
    assert (row.status, row.looked) == ("Incomplete", 0)
    assert "index/000000000/000000000001_worker_0.json" in row.note


def test_a_rule_that_hangs_on_one_run_is_stopped_there_and_the_rest_goes_on(runs: Path, tmp_path: Path):
    hang = "while self.base_trial.path.endswith('run-02'): pass"
    rule = write_rule(tmp_path / "hangs.py", first=hang)
    rows = ask(runs, rule, timeout=3.0).rows
    assert [row.status == "TimedOut" for row in rows] == [False, False, True, False, False, False]
    assert "hangs.py, line" in rows[2].note
    assert ask(runs, rule, timeout=3.0).reused == 6


def test_a_run_without_a_verdict_has_the_label_of_its_tags_and_the_values_of_its_conditions(
    runs: Path, tmp_path: Path
):
    for name, tag in (("run-02", "failing"), ("run-03", "healthy")):
        annotate(open_storage(runs / name), {"tags": [tag]}, "")
    first = "import os; self.base_trial.path.endswith('run-02') and os.kill(os.getpid(), 9)"
    died = write_rule(tmp_path / "dies.py", first=first)
    assert [row.label for row in ask(runs, died).rows] == ["", "", "failing", "healthy", "", ""]
    hang = "while self.base_trial.path.endswith('run-02'): pass"
    hangs = write_rule(tmp_path / "hangs.py", first=hang)
    table = ask(runs, hangs, timeout=3.0, where=(parse_condition("tags=failing"),))
    assert [(row.status, row.label) for row in table.rows] == [("TimedOut", "failing")]


@pytest.mark.parametrize(
    ("vanishes", "while_judging", "step", "note"),
    [
        ("run-04", "run-00", 0, "run-04"),  # listed, and not yet judged
        ("run-02", "run-02", 20, "the run was deleted while it was judged"),
    ],
)
def test_a_run_that_vanishes_has_a_row_that_says_so_and_the_rest_goes_on(
    runs: Path, tmp_path: Path, vanishes: str, while_judging: str, step: int, note: str
):
    gone = f"__import__('shutil').rmtree({str(runs / vanishes)!r})"
    first = f"step == {step} and self.base_trial.path.endswith('{while_judging}') and {gone}"
    rows = ask(runs, write_rule(tmp_path / "vanishes.py", first=first)).rows
    unread = [row for row in rows if not row.has_verdict]
    assert [(Path(row.run).name, row.rule or "LossSpike", row.status) for row in unread] == [
        (vanishes, "LossSpike", "Unread")
    ]
    assert note in unread[0].note
    assert len(rows) == 6


def test_what_was_found_in_a_run_before_it_vanished_stays(runs: Path, tmp_path: Path):
    gone = f"__import__('shutil').rmtree({str(runs / 'run-03')!r})"
    first = f"step == 30 and self.base_trial.path.endswith('run-03') and {gone}"
    row = ask(runs, write_rule(tmp_path / "vanishes.py", first=first)).rows[3]
    assert (row.status, row.onset) == ("IssuesFound", 20)


STARTS_SLOWLY = """
import sys, time
if "judging_process" in " ".join(sys.orig_argv):
    time.sleep(5.0)
"""


def test_the_start_of_a_process_is_no_time_of_the_rule(
    runs: Path, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "sitecustomize.py").write_text(STARTS_SLOWLY)  # as on a busy machine
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [row.fires for row in ask(runs, rule, limit=1, timeout=4.0).rows] == [True]


def test_a_process_that_never_starts_fails_on_each_run(
    runs: Path, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "sitecustomize.py").write_text(STARTS_SLOWLY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(judging_process, "_START_WITHIN", 0.0)
    (row,) = ask(runs, rule, limit=1).rows
    assert (row.status, row.note) == ("Error", "its process did not start within 0 s")


def test_a_rule_that_ends_its_process_fails_on_that_run_alone(runs: Path, tmp_path: Path):
    end = "import os; self.base_trial.path.endswith('run-02') and os.kill(os.getpid(), 9)"
    rows = ask(runs, write_rule(tmp_path / "dies.py", first=end)).rows
    assert [row.status == "Error" for row in rows] == [False, False, True, False, False, False]
    assert "SIGKILL" in rows[2].note


def test_two_versions_are_compared_by_their_first_differing_finding(runs: Path, rule: str, tmp_path: Path):
    older = write_rule(tmp_path / "older.py", factor=6)
    rows = ask(runs, rule, against=older).rows
    changed = {Path(row.run).name: (row.status_before, row.changed) for row in rows if row.changed}
    assert list(changed) == ["run-00", "run-03"]
    assert changed["run-00"][0] == "NoIssuesFound"
    assert changed["run-00"][1].startswith(
        "step 20: now loss: times the last 4.737 (limit 4); before nothing"
    )


def test_the_first_runs_that_satisfy_the_conditions_are_taken(runs: Path, rule: str):
    named = parse_condition("name~run-0")
    assert len(ask(runs, rule, limit=2).rows) == 2
    assert len(ask(runs, rule, limit=10**30).rows) == 6
    found = ask(runs, rule, where=(named, parse_condition("loss>5")), limit=1)
    assert [Path(row.run).name for row in found.rows] == ["run-00"]
    assert ask(runs, rule, since=time.time() + 3600).rows == ()
    with pytest.raises(SMDebugValueError, match="no_such_name"):
        ask(runs, rule, where=(parse_condition("no_such_name=1"),))


def test_runs_beyond_the_limit_are_not_counted_as_judged_before(runs: Path, rule: str):
    ask(runs, rule)
    found = ask(runs, rule, where=(parse_condition("name~run"),), limit=2, jobs=3)
    assert (found.runs, found.reused) == (2, 2)


def test_labels_come_from_a_file_before_tags(runs: Path, rule: str):
    table = ask(runs, rule, labels=Labels({"run-00": "failing", str(runs / "run-01"): "healthy"}))
    assert [row.label for row in table.rows] == ["failing", "healthy", "", "", "", ""]


def test_a_place_without_runs_and_a_wrong_parameter_are_errors(runs: Path, rule: str, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingCollectionFiles, match="no run at or below"):
        ask(tmp_path / "empty", rule)
    wrong = Question(({"rule": "LossSpike", "parameters": {"faktor": "4"}},), rule)
    with pytest.raises(SMDebugValueError, match="faktor"):
        backtest(wrong, [str(runs)], Options(journal=tmp_path / "other.jsonl"))


def test_the_rows_are_data_of_json(runs: Path, rule: str):
    table = ask(runs, rule)
    assert tuple(Row.from_dict(row) for row in json.loads(json.dumps(table.to_dict()))["rows"]) == table.rows
