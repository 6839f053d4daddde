"""The same rules judge a run, whoever asks."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import smdebug
from smdebug.cli.main import main
from smdebug.companion.evaluation import Companion
from smdebug.notebook.inline_report import inline_report
from smdebug.reports.writing import write_report
from smdebug.rules.rule_sets import default_rules
from smdebug.runs.evaluation.diagnosing import diagnose
from smdebug.runs.live_run import LiveRun
from smdebug.runs.opening import open_run
from smdebug.ui.following.reading import RunReader
from tests.functions import deployed_settings
from tests.functions.saver import Saver
from tests.functions.small_world import SmallWorld

OWN = {"rules": [{"name": "mine", "rule": "ExplodingTensor"}, "DeadUnits"]}
ALONE = {"default_rules": False, **OWN}
BESIDE = {"mine", *default_rules()}


def observed(place: Path) -> None:
    """Save a run under the default plan."""
    with smdebug.Hook(str(place)) as hook:
        for step in range(3):
            with hook.step():
                hook.record("loss", 1 / (step + 1))


def of_tensors(place: Path) -> None:
    """Save a run whose tensors somebody chose."""
    config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(str(place), include_collections=["losses"], save_config=config) as hook:
        for step in range(3):
            with hook.step():
                hook.record("loss", 1 / (step + 1))


def by_the_command(place: Path, *options: str) -> set[str]:
    with redirect_stdout(StringIO()) as printed:
        main(["evaluate", str(place), "--json", *options])
    return {result["name"] for result in json.loads(printed.getvalue())}


def by_the_short_command(place: Path) -> set[str]:
    return by_the_command(place, "--short")


def by_watching(place: Path) -> set[str]:
    live = LiveRun(str(place))
    live.advance()
    assert live.following is not None
    return {result.name for result in live.following.results}


def beside_the_training(place: Path) -> set[str]:
    companion = Companion(str(place))
    companion._advance()
    following = companion._run.following
    assert following is not None
    return {result.name for result in following.results}


def on_the_page(place: Path) -> set[str]:
    reader = RunReader(str(place))
    while reader.advance(1):
        pass
    assert reader.following is not None
    return {result.name for result in reader.following.results}


def in_a_report(place: Path) -> set[str]:
    return {verdict.name for verdict in write_report(place, place.parent / "report.html")}


def in_a_notebook(place: Path) -> set[str]:
    return {result.name for result in diagnose(place).results}


def in_a_notebooks_report(place: Path) -> set[str]:
    return {line.split()[0] for line in str(inline_report(open_run(place))).splitlines()}


WAYS = [
    by_the_command,
    by_the_short_command,
    by_watching,
    beside_the_training,
    on_the_page,
    in_a_report,
    in_a_notebook,
    in_a_notebooks_report,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("saved", "rules", "expected"),
    [
        (observed, None, {*default_rules()}),
        (observed, OWN, BESIDE),
        (observed, ALONE, {"mine", "DeadUnits"}),
        (of_tensors, None, {*default_rules()}),
        (of_tensors, OWN, BESIDE),
        (of_tensors, ALONE, {"mine", "DeadUnits"}),
    ],
)
def test_on_this_machine(tmp_path: Path, saved: Any, rules: Any, expected: set[str], way: Any):
    place = tmp_path / "run"
    saved(place)
    if rules is not None:
        (place / "rules.json").write_text(json.dumps(rules))
    assert way(place) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [(None, {*default_rules()}), (OWN, BESIDE), (ALONE, {"mine", "DeadUnits"})],
)
def test_deployed(rules: Any, expected: set[str]):
    small = SmallWorld(deployed_settings.settings(default_rules=("default",)))
    if rules is not None:
        small.place().write("rules.json", json.dumps(rules).encode())
    Saver(small.place()).begin().save(0)
    small.settle()
    assert set(small.statuses()) == expected
