"""Which runs were failing in fact."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import pytest

from smdebug.backtesting.backtest import Options, backtest
from smdebug.backtesting.expressions.backtest_expression import backtest_expression
from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.labels import Labels, read_labels
from smdebug.backtesting.question import Question
from smdebug.exceptions import SMDebugValueError
from tests.backtesting.many_runs import make_run

RUN = FoundRun("runs/team/a/", "team/a", "/home/runs/team/a")
RULE = Question(({"rule": "StuckLoss", "parameters": {}},))


def test_a_file_names_runs_in_any_of_their_ways(tmp_path: Path):
    file = tmp_path / "labels.csv"
    file.write_text("note,run,label\n,runs/team/a/,Failed\nx,b,0\n,c,\n")
    assert read_labels(file) == {"runs/team/a": "failing", "b": "healthy", "c": ""}
    for name in ("runs/team/a", "team/a", "a", "/home/runs/team/a"):
        assert Labels({name: "failing"}).label_of(RUN, ()) == "failing"


@pytest.mark.parametrize(
    "content",
    [
        "run,label\r\na,failing\r\nb,ok\r\na,bad\r\n",
        "\ufeffrun,label\na,failing\n\nb,ok\n,\n",
        "Run, Label\n./a/, failing\n b ,OK\n",
    ],
)
def test_a_file_may_be_as_editors_write_it_and_say_the_same_twice(tmp_path: Path, content: str):
    file = tmp_path / "labels.csv"
    file.write_bytes(content.encode())
    assert read_labels(file) == {"a": "failing", "b": "healthy"}


def test_a_run_with_a_difficult_name_is_found(tmp_path: Path):
    names = ('comma, "quote"', "=cmd()", " lead", "new\nline", "ünïcödé 運転", "./dots")
    with (tmp_path / "labels.csv").open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows([("run", "label"), *((name, "failing") for name in names)])
    labels = Labels(read_labels(tmp_path / "labels.csv"))
    for name in names:
        assert labels.label_of(FoundRun(name, name, f"/home/{name}"), ()) == "failing"
    assert labels.of_no_run() == []


def test_two_labels_of_a_run_under_different_names_are_refused():
    labels = Labels({"team/a": "failing", "/home/runs/team/a": "healthy"})
    with pytest.raises(
        SMDebugValueError, match="runs/team/a/ is healthy as /home/runs/team/a and failing as team/a"
    ):
        labels.label_of(RUN, ())


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("runs", ("a", "runs/a")),
        ("./runs/", ("runs/a", "{runs}/a")),
        ("{runs}", ("{runs}/a", "a")),
        ("runs/a", ("{runs}/a", "a")),
    ],
)
def test_two_labels_of_a_run_are_refused_before_any_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, names: tuple[str, str]
):
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs/a", [2.0])
    place, first, second = (text.format(runs=tmp_path / "runs") for text in (place, *names))
    labels = Labels({first: "failing", second: "healthy"})
    options = Options(1, labels=labels, journal=tmp_path / "journal")
    for ask in (partial(backtest, RULE), partial(backtest_expression, "loss > 1", RULE)):
        with pytest.raises(SMDebugValueError, match=r"runs/a is (failing|healthy) as"):
            ask([place], options)
    assert not (tmp_path / "journal").exists()


def test_labels_of_several_runs_and_of_none_do_not_contradict_each_other(tmp_path: Path):
    runs = tmp_path / "runs"
    make_run(runs / "a", [2.0])
    make_run(runs / "team/a", [2.0])
    labels = Labels(
        {
            "a": "failing",
            f"{runs}/a": "failing",
            "team/a": "healthy",
            "gone": "failing",
            f"{runs}/gone": "healthy",
            "../b": "failing",
            f"{runs}/../b": "healthy",
        }
    )
    labels.refuse_contradictions([str(runs)])
    assert len(labels.of_no_run()) == 7


def test_the_last_part_of_a_name_may_be_that_of_another_run():
    labels = Labels({"team/a": "failing", "a": "healthy", "b": "healthy"})
    assert labels.label_of(RUN, ()) == "failing"
    assert labels.label_of(FoundRun("runs/a", "a", "/home/runs/a"), ()) == "healthy"
    assert labels.of_no_run() == ["b"]


def test_tags_count_where_the_file_says_nothing():
    assert Labels().label_of(RUN, ("healthy", "baseline")) == "healthy"
    assert Labels({"a": "failing"}).label_of(RUN, ("healthy",)) == "failing"
    assert Labels(failing_tag="nan").label_of(RUN, ("nan",)) == "failing"
    assert Labels().label_of(RUN, ("baseline",)) == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("run,verdict\na,1\n", "columns run and label"),
        ("", "columns run and label in its first line, which has nothing"),
        ("a;failing\n", "which has 'a;failing'"),
        ("run,label\na,perhaps\n", "line 2: 'perhaps' is neither failing nor healthy"),
        ('run,label\n"a\nb",failing\nc,perhaps\n', "line 4: 'perhaps'"),
        ("run,label\na,failing\nb,ok\na,healthy\n", "a is failing in line 2, but healthy in line 4"),
        ("run,label\n./a/,\na,ok\n", "a is without a label in line 2, but healthy in line 3"),
        ("run,label\na,ok,failing\n", "line 2 has more values than the first line"),
        ("run,label\n,failing\n", "line 2 has a label, but no run"),
        ('run,label\n"a,failing\nb,ok\n', "unexpected end of data"),
        (b"run,label\n\xe9,failing\n", "not a CSV file in UTF-8"),
    ],
)
def test_a_file_that_says_something_else_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, problem: str
):
    (tmp_path / "labels.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SMDebugValueError, match=problem):
        read_labels(tmp_path / "labels.csv")
