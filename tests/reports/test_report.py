"""The page as text, before a browser renders it."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from smdebug.cli import progress
from smdebug.reports import gather, of_results, page_of, write_report, writing
from smdebug.reports.curves import MOST_POINTS, with_extremes
from smdebug.reports.gathering import MOST_STEPS, work_of
from smdebug.reports.tensor_series import MOST_TENSORS, STATISTICS, natural
from smdebug.reports.verdicts import latency_of
from smdebug.rules import Rule
from smdebug.runs.evaluating import evaluate
from smdebug.runs.opening import open_run
from smdebug.runs.rule_steps import evaluate_steps, result_of
from smdebug.service.costs import PRICED_IN, Cost
from smdebug.service.findings import finding_event
from smdebug.service.records import RuleConfiguration
from tests.cli.conftest import failing_run
from tests.rules.made_runs import MadeRun, made_run


def page_for(run: MadeRun, *rules: str) -> str:
    trial = open_run(run.storage)
    verdicts = of_results(evaluate(trial, list(rules))) if rules else ()
    return page_of(gather(trial, verdicts))


def data_in(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_verdict_comes_first_with_its_evidence_in_words():
    page = page_for(failing_run(), "VanishingGradient", "ExplodingTensor")
    assert "1 of 2 rules detected a problem" in page
    assert page.index('id="verdict"') < page.index('id="curves"') < page.index('id="tensors"')
    assert page.index("VanishingGradient") < page.index("ExplodingTensor")
    assert (
        "<b>First, at step 40:</b> gradient/fc: the mean of |gradient| is 1e-09, below 1e-07"
        in page
    )
    assert "detected a problem at 6 of 10 steps (40 to 90)" in page


def test_problems_come_first_with_their_symptoms_and_what_to_try():
    run = made_run(
        {step: {"loss": [1.0], "gradient/fc.weight": np.full(4, 1e-9)} for step in range(0, 40, 10)}
    )
    page = page_for(run, "LossNotDecreasing", "VanishingGradient", "ExplodingTensor", "Overfit")
    (issue,) = re.findall(r'<article class="card bad issue".*?</article>', page, re.DOTALL)
    assert 'data-cause="vanishing gradient"' in issue
    assert "Vanishing gradient, since step 0" in issue
    assert "Not learning, since step 10" in issue
    assert "<li>Replace sigmoid and tanh by ReLU or GELU in hidden layers.</li>" in issue
    assert 'docs/rules.md#vanishinggradient" rel=noreferrer' in issue
    assert page.index(issue) < page.index('data-rule="VanishingGradient"')
    assert "– </span> Overfit" in page.replace('aria-hidden="true">–</span>', "– </span>")
    assert "Overfit was not checked: no validation loss was saved." in page


def test_a_rule_that_failed_is_not_a_finding():
    class Broken(Rule):
        def invoke_at_step(self, step):
            raise KeyError("fc")

    trial = open_run(failing_run().storage)
    result = result_of(
        RuleConfiguration("Broken", "Broken"),
        Broken,
        evaluate_steps(Broken(trial), trial.steps()),
        trial.steps(),
        seconds=0.0,
    )
    page = page_of(gather(trial, of_results([result])))
    assert 'class="card failed" data-rule="Broken"' in page
    assert "1 rule could not be evaluated" in page
    assert 'id="verdict" class="failed"' in page


def test_the_headline_of_a_passing_run_and_of_one_without_rules():
    run = made_run({step: {"loss": [1.0 - step / 10]} for step in range(5)})
    assert "1 rule passed" in page_for(run, "ExplodingTensor")
    assert "No rules evaluated" in page_for(run)


def test_findings_are_marked_in_the_charts_of_their_tensors():
    data = data_in(page_for(failing_run(), "VanishingGradient"))
    assert data["marks"] == [{"rule": "VanishingGradient", "steps": [40, 50, 60, 70, 80, 90]}]
    marks = {series["name"]: series["marks"] for series in data["series"]}
    found = [[step, "VanishingGradient"] for step in (40, 50, 60, 70, 80, 90)]
    assert marks == {"fc.weight": [], "gradient/fc": found}
    assert [chart["name"] for chart in data["distributions"]] == ["gradient/fc"]


def test_the_numbers_in_the_page_are_the_runs():
    import base64

    run = failing_run()
    data = data_in(page_for(run))
    trial = open_run(run.storage)
    assert data["steps"] == trial.steps()
    assert data["curves"][0]["values"] == pytest.approx(
        [trial.tensor("loss").value(s)[0] for s in trial.steps()]
    )
    (gradient,) = [series for series in data["series"] if series["name"] == "gradient/fc"]
    means = np.frombuffer(base64.b64decode(gradient["abs_mean"]), "<f4")
    exact = [
        trial.tensor("gradient/fc").reduction_value(s, "mean", abs=True) for s in trial.steps()
    ]
    assert np.allclose(means, exact, rtol=1e-6, atol=0)


def test_names_are_escaped():
    evil = '</script><script>alert("1")</script><img src=x onerror=alert(1)>'
    run = MadeRun(collections={"losses": ["alert"], evil: ["other"]})
    for step in range(3):
        run.save(step, {evil: [1.0], f"other{evil}": [[1.0, 2.0]]})
    page = page_for(run.end(), "ExplodingTensor")
    assert "<img" not in page
    assert "alert(" not in re.sub(r"<script type=.*?</script>", "", page, flags=re.DOTALL).replace(
        "&quot;", '"'
    ).replace("&lt;script&gt;alert", "").replace("onerror=alert(1)&gt;", "")
    assert "</script><script>alert" not in page
    assert data_in(page)["curves"][0]["name"] == evil


def test_values_that_are_not_finite_are_shown():
    steps = {
        at: {"loss": [math.nan if at == 7 else 1.0], "w": [[1.0, math.inf if at > 5 else 1.0]]}
        for at in range(10)
    }
    page = page_for(made_run(steps))
    data = data_in(page)
    assert data["curves"][0]["values"][7] is None
    (series,) = data["series"]
    assert series["odd"] == [[at, 0, 1] for at in range(6, 10)]
    assert "4 steps not finite" in page


def test_thinning_keeps_every_extreme():
    points = [(at, 1.0) for at in range(10_000)]
    points[5037] = (5037, 99.0)
    points[8000] = (8000, -5.0)
    points[9001] = (9001, math.nan)
    kept = with_extremes(points, 800)
    assert len(kept) <= 810
    assert {points[5037], points[8000], points[0], points[-1]} <= set(kept)
    assert 9001 in [step for step, _ in kept]
    assert kept == sorted(kept, key=lambda point: point[0])


def test_steps_with_findings_are_drawn():
    steps = {
        at: {"loss": [1.0], "w": [[math.nan if at == 777 else 1.0, 2.0]]} for at in range(1000)
    }
    data = data_in(page_for(made_run(steps), "ExplodingTensor"))
    assert len(data["steps"]) <= MOST_STEPS
    assert 777 in data["steps"]


def test_a_note_says_when_rules_evaluated_only_some_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "MOST_LOOKS", 1)
    made_run({at: {"w": [1.0]} for at in range(170)}, tmp_path / "run")
    for name, every_step in (("some", False), ("all", True)):
        page = tmp_path / f"{name}.html"
        write_report(tmp_path / "run", page, rules=["ExplodingTensor"], every_step=every_step)
        has_note = "The rules evaluated 150 of 170 steps" in page.read_text()
        assert has_note is not every_step


def test_a_page_stays_small_however_many_tensors_there_are():
    """The most series that are drawn, full of numbers that do not compress."""
    found = gather(open_run(failing_run().storage))
    rng = np.random.default_rng(0)
    series = tuple(
        replace(
            found.sections[0].series[0],
            name=f"gradient/model.decoder.layers.{i}.self_attention.weight",
            numbers={name: rng.normal(size=MOST_STEPS).astype(np.float32) for name in STATISTICS},
        )
        for i in range(MOST_TENSORS)
    )
    points = tuple(rng.normal(size=MOST_POINTS))
    curve = replace(found.curves[0], steps=tuple(range(MOST_POINTS)), values=points)
    full = replace(
        found,
        steps=tuple(range(MOST_STEPS)),
        sections=(replace(found.sections[0], series=series),),
        curves=(curve,) * 5,
    )
    assert len(page_of(full).encode()) < 2_000_000


def test_differences_between_workers_are_shown():
    page = page_for(failing_run(workers=2))
    assert "Differences between workers" in page
    assert "66.67%" in page  # 1 and 2 differ by two thirds of their mean
    assert "Differences between workers" not in page_for(failing_run())


def test_layers_are_in_natural_order():
    assert sorted(["layer10", "layer9", "layer1"], key=natural) == ["layer1", "layer9", "layer10"]


def test_the_latency_of_findings_is_computed_by_stage():
    times = {
        "saved": "2026-11-21T12:00:00Z",
        "uploaded": "2026-11-21T12:00:00.5Z",
        "published": "2026-11-21T12:00:02Z",
    }
    events = [
        finding_event({"id": "a", "step": 3, "times": times}),
        finding_event({"id": "b", "step": 4}),
    ]
    assert latency_of(events) == {
        "saved → uploaded": (0.5, 0.5),
        "uploaded → published": (1.5, 1.5),
    }


def test_the_cost_of_the_evaluation_is_shown_with_its_assumptions():
    trial = open_run(failing_run().storage)  # ten steps
    verdicts = of_results(evaluate(trial, ["ExplodingTensor"]))
    page = page_of(gather(trial, verdicts))
    work = "evaluating 10 saved steps of 1 worker"
    assert f"In a deployment, {work} would cost about <b>{Cost(10, 1)}</b>." in page
    assert f"AWS list prices in {PRICED_IN}" in page
    page = page_of(gather(trial, verdicts, deployed=True))
    assert f"{work.capitalize()} has cost about <b>{Cost(10, 1)}</b>." in page
    assert "list prices" not in page_of(gather(trial))  # no rule was evaluated


def test_the_same_run_gives_the_same_page():
    trial = open_run(failing_run().storage)
    made = datetime(2026, 1, 1, tzinfo=UTC)
    assert page_of(gather(trial), made=made) == page_of(gather(trial), made=made)


def test_an_empty_run_and_one_of_shapes_alone_have_a_page():
    assert "<h1>" in page_for(MadeRun().end())
    assert "<h1>" in page_for(made_run({0: {"text": np.array(["a", "b"])}}))


def test_the_command_writes_the_page_and_reports_findings(ask, tmp_path):
    failing_run(tmp_path / "failing")
    place, page = tmp_path / "failing", tmp_path / "page.html"
    result = ask("report", place, "-o", page, "--rule", "usual", "--json")
    assert result.code == 1
    (issue,) = result.json["issues"]
    assert issue["cause"] == "learning rate"
    assert [symptom["cause"] for symptom in issue["symptoms"]] == ["vanishing gradient"]
    assert {verdict["name"] for verdict in result.json["verdicts"]} >= {
        "VanishingGradient",
        "ExplodingTensor",
    }
    assert result.json["bytes"] == (tmp_path / "page.html").stat().st_size
    assert ask("report", tmp_path / "failing", "-o", tmp_path / "p.html", "--no-rules").code == 0
    assert (
        ask(
            "report",
            tmp_path / "failing",
            "-o",
            tmp_path / "p.html",
            "--rule",
            "VanishingGradient",
            "--set",
            "threshold=1e-12",
        ).code
        == 0
    )
    assert ask("report", tmp_path / "failing", "--deployed", "--no-rules").code == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["failing", "p.html", "page.html"]


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_adds_up_to_the_announced_work(workers):
    trial = open_run(failing_run(workers=workers).storage)
    done: list[int] = []
    verdicts = writing.evaluated(trial, ["usual"], jobs=1, progress=done.append)
    announced = writing.evaluations_in(trial, ["usual"], None)
    assert sum(done) == announced == 4 * 10  # a rule that does not apply is left out
    assert writing.evaluations_in(trial, ["AllZero"], 4) == 4
    done.clear()
    gather(trial, verdicts, progress=done.append)
    assert sum(done) == work_of(trial, verdicts)


def test_a_terminal_shows_a_progress_bar(ask, tmp_path, monkeypatch):
    failing_run(tmp_path / "failing")
    monkeypatch.setattr(progress, "_DELAY", -1.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    place, page = tmp_path / "failing", tmp_path / "p.html"
    result = ask("report", place, "-o", page, "-j", 1, "--rule", "usual")
    assert "\r\033[Kevaluating █" in result.err
    assert "\r\033[Kgathering ████████████████████████ 100%" in result.err
    assert result.err.endswith("\r\033[K")


def test_the_page_includes_the_licences_of_its_libraries():
    page = page_for(failing_run())
    assert "Mike Bostock" in page
    assert "Observable, Inc." in page


def test_jinja_is_imported_when_a_page_is_made_and_not_before():
    script = (
        "import sys, smdebug.trials, smdebug.rules, smdebug.reports\n"
        "print(sorted({'jinja2', 'markupsafe'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
