"""Which runs were failing in fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdebug.backtesting.finding_runs import FoundRun
from smdebug.backtesting.labels import Labels, read_labels
from smdebug.exceptions import SMDebugValueError

RUN = FoundRun("runs/team/a/", "team/a", "/home/runs/team/a")


def test_a_file_names_runs_in_any_of_their_ways(tmp_path: Path):
    file = tmp_path / "labels.csv"
    file.write_text("note,run,label\n,runs/team/a/,Failed\nx,b,0\n,c,\n")
    assert read_labels(file) == {"runs/team/a": "failing", "b": "healthy", "c": ""}
    for name in ("runs/team/a", "team/a", "a", "/home/runs/team/a"):
        assert Labels({name: "failing"}).label_of(RUN, ()) == "failing"


def test_tags_count_where_the_file_says_nothing():
    assert Labels().label_of(RUN, ("healthy", "baseline")) == "healthy"
    assert Labels({"a": "failing"}).label_of(RUN, ("healthy",)) == "failing"
    assert Labels(failing_tag="nan").label_of(RUN, ("nan",)) == "failing"
    assert Labels().label_of(RUN, ("baseline",)) == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("run,verdict\na,1\n", "columns run and label"),
        ("run,label\na,perhaps\n", "line 2: 'perhaps' is neither failing nor healthy"),
    ],
)
def test_a_file_that_says_something_else_is_refused_with_its_line(tmp_path: Path, content: str, problem: str):
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(SMDebugValueError, match=problem):
        read_labels(tmp_path / "labels.csv")
