"""A report as text, before a browser renders it."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

from smdebug.cli.answers import progress
from smdebug.reports import gather, gathering, of_results, page_of, write_report, writing
from smdebug.reports.gathering import work_of
from smdebug.rules import Rule
from smdebug.runs.comparing import compare
from smdebug.runs.evaluation.evaluating import evaluate
from smdebug.runs.evaluation.rule_results import PartialResult
from smdebug.runs.evaluation.rule_steps import evaluate_step, result_of
from smdebug.runs.opening import open_run
from smdebug.runs.verdicts import latency_of
from smdebug.service.costs import PRICED_IN, Cost
from smdebug.service.findings import finding_event
from smdebug.service.records import RuleConfiguration
from smdebug.ui.embedding import content
from tests.cli.conftest import failing_run
from tests.reports.reading import DATA, answer_in, data_in, statistic_in
from tests.rules.made_runs import MadeRun, made_run
from tests.ui.written_runs import WrittenRun


def page_for(run: MadeRun, *rules: str) -> str:
    trial = open_run(run.storage)
    verdicts = of_results(evaluate(trial, list(rules))) if rules else ()
    return page_of(gather(trial, verdicts))


def test_the_verdict_is_there_with_its_evidence_in_words():
    page = page_for(failing_run(), "VanishingGradient", "ExplodingTensor")
    assert "1 of 2 rules detected a problem" in page
    vanishing, exploding = answer_in(page)["rules"]
    assert (vanishing["state"], exploding["state"]) == ("found", "passed")
    assert vanishing["found"][0] == {
        "step": 40,
        "text": "gradient/fc: the mean of |gradient| is 1e-09, below 1e-07",
        "count": 1,
        "tensors": ["gradient/fc"],
    }
    assert "detected a problem at 6 of 10 steps (40 to 90)" in vanishing["sentence"]
    assert vanishing["detects"]


def test_problems_have_their_symptoms_and_what_to_try():
    run = made_run(
        {step: {"loss": [1.0], "gradient/fc.weight": np.full(4, 1e-9)} for step in range(0, 40, 10)}
    )
    page = page_for(run, "LossNotDecreasing", "VanishingGradient", "ExplodingTensor", "Overfit")
    (issue,) = answer_in(page)["issues"]
    assert issue["headline"] == "Gradients vanish, since step 0"
    parts = dict(issue["parts"])
    assert any(
        "The model does not learn, since step 10" in text for texts in parts.values() for text in texts
    )
    assert "Replace sigmoid and tanh by ReLU or GELU in hidden layers." in parts["Try"]
    assert any(text.endswith("docs/rules.md#vanishinggradient") for text in parts["More"])
    assert "Overfit was not checked: no validation loss was saved." in page


def test_a_rule_that_failed_is_not_a_finding():
    class Broken(Rule):
        def invoke_at_step(self, step):
            raise KeyError("fc")

    trial = open_run(failing_run().storage)
    so_far = PartialResult()
    evaluate_step(Broken(trial), 0, so_far)
    result = result_of(RuleConfiguration("Broken", "Broken"), Broken, so_far, trial.steps())
    page = page_of(gather(trial, of_results([result])))
    assert [rule["state"] for rule in answer_in(page)["rules"]] == ["failed"]
    assert "1 rule could not be evaluated" in page
    assert answer_in(page)["issues"] == []


def test_the_headline_of_a_passing_run_and_of_one_without_rules():
    run = made_run({step: {"loss": [1.0 - step / 10]} for step in range(5)})
    assert "1 rule passed" in page_for(run, "ExplodingTensor")
    assert "No rules evaluated" in page_for(run)


def test_tensors_in_findings_are_named_for_their_distributions():
    answer = answer_in(page_for(failing_run(), "VanishingGradient"))
    assert answer["rules"][0]["steps_found"] == [40, 50, 60, 70, 80, 90]
    assert answer["named"] == [{"kind": "gradients", "name": "gradient/fc"}]


def test_the_numbers_in_the_page_are_the_runs():
    run = failing_run()
    page = page_for(run)
    trial = open_run(run.storage)
    loss = answer_in(page, "series/loss")
    assert loss["first"] == trial.steps()
    assert loss["low"] == pytest.approx([trial.tensor("loss").value(s)[0] for s in trial.steps()])
    means = statistic_in(page, "gradients", "abs_mean")["gradient/fc"]
    exact = [trial.tensor("gradient/fc").reduction_value(s, "mean", abs=True) for s in trial.steps()]
    assert np.allclose(means, exact, rtol=1e-6, atol=0)


def test_names_are_escaped():
    evil = '</script><script>alert("1")</script><img src=x onerror=alert(1)><!--'
    run = MadeRun(collections={"losses": ["alert"], evil: ["other"]})
    for step in range(3):
        run.save(step, {evil: [1.0], f"other{evil}": [[1.0, 2.0]]})
    page = page_for(run.end(), "ExplodingTensor")
    without_data = DATA.sub("", page)
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert "alert(1)>" not in without_data
    assert evil in [series["name"] for series in answer_in(page)["series"]]


def test_values_that_are_not_finite_are_shown():
    steps = {
        at: {"loss": [math.nan if at == 7 else 1.0], "w": [[1.0, math.inf if at > 5 else 1.0]]}
        for at in range(10)
    }
    page = page_for(made_run(steps))
    loss = answer_in(page, "series/loss")
    assert loss["low"][7] is None
    assert loss["not_finite"] == [int(at == 7) for at in range(10)]
    (kind,) = answer_in(page)["kinds"]
    assert statistic_in(page, kind["name"], "non_finite")["w"] == [int(at > 5) for at in range(10)]


def test_thinning_keeps_every_extreme(tmp_path):
    values = {5037: 99.0, 8000: -5.0, 9001: math.nan}
    WrittenRun(tmp_path / "run", loss=lambda step: values.get(step, 1.0), saved=range(0, 10_000, 50)).write(
        10_000, end=True
    )
    page = page_of(gather(open_run(tmp_path / "run")))
    loss = answer_in(page, "series/loss")
    assert len(loss["first"]) <= content.MOST_POINTS
    assert loss["total"] == 9951
    assert max(filter(None, loss["high"])) == 99.0
    assert min(filter(None, loss["low"])) == -5.0
    (odd,) = [at for at, count in enumerate(loss["not_finite"]) if count]
    assert loss["first"][odd] <= 9001 <= loss["last"][odd]


def test_steps_with_findings_are_measured(monkeypatch):
    monkeypatch.setattr(gathering, "MOST_MEASURED", 1)
    steps = {at: {"loss": [1.0], "w": [[math.nan if at == 777 else 1.0, 2.0]]} for at in range(1000)}
    page = page_for(made_run(steps), "ExplodingTensor")
    block = answer_in(page, "kind/tensors")
    assert len(block["first"]) <= gathering.FEWEST_STEPS
    odd = statistic_in(page, "tensors", "non_finite", part="high")["w"]
    (column,) = [at for at, count in enumerate(odd) if count > 0]
    assert block["first"][column] <= 777 <= block["last"][column]


@pytest.mark.parametrize("rules", [["ExplodingTensor"], None])
def test_a_note_says_when_rules_evaluated_only_some_steps(tmp_path, monkeypatch, rules):
    monkeypatch.setattr(writing, "MOST_LOOKS", 1)
    made_run({at: {"gradient/w": [1.0]} for at in range(170)}, tmp_path / "run")
    for name, every_step in (("some", False), ("all", True)):
        page = tmp_path / f"{name}.html"
        write_report(tmp_path / "run", page, rules=rules, every_step=every_step)
        has_note = "The rules evaluated 150 of 170 steps" in page.read_text()
        assert has_note is not every_step


def test_a_page_stays_small_however_many_tensors_there_are(tmp_path):
    """Full of numbers that do not compress, of more tensors than there is room for."""
    names = [f"model.decoder.layers.{at // 20}.part{at}.weight" for at in range(6000)]
    rng = np.random.default_rng(0)
    run = WrittenRun(tmp_path / "run", names=names, loss=lambda step: float(rng.normal()))
    run.write(60, end=True)
    page = page_of(gather(open_run(tmp_path / "run")))
    assert len(page.encode()) < 5_000_000
    block = answer_in(page, "kind/gradients")
    assert block["folded"]
    assert block["tensors"] == 6000
    assert len(block["first"]) >= 20


def test_differences_between_workers_are_shown():
    found = answer_in(page_for(failing_run(workers=2)), "about")["spread"]
    assert max(found[0]["spread"]) == pytest.approx(2 / 3)  # of their mean: they are 1 and 2
    assert answer_in(page_for(failing_run()), "about")["spread"] == []


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
    about = answer_in(page_of(gather(trial, verdicts)), "about")
    work = "evaluating 10 saved steps of 1 worker"
    assert about["cost"] == f"In a deployment, {work} would cost about {Cost(10, 1)}."
    assert f"AWS list prices in {PRICED_IN}" in about["cost_basis"]
    about = answer_in(page_of(gather(trial, verdicts, deployed=True)), "about")
    assert about["cost"] == f"{work.capitalize()} has cost about {Cost(10, 1)}."
    assert answer_in(page_of(gather(trial)), "about")["cost"] == ""  # no rule was evaluated


def test_the_same_run_gives_the_same_page():
    trial = open_run(failing_run().storage)
    made = datetime(2026, 1, 1, tzinfo=UTC)
    assert page_of(gather(trial), made=made) == page_of(gather(trial), made=made)


def test_an_empty_run_and_one_of_shapes_alone_have_a_page():
    assert answer_in(page_for(MadeRun().end()))["steps"] == 0
    assert answer_in(page_for(made_run({0: {"text": np.array(["a", "b"])}})))["steps"] == 1


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
    assert sum(done) == work_of(trial)


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


def test_the_page_includes_the_licence_of_its_library():
    assert "Leon Sorokin" in page_for(failing_run())


def test_the_page_is_the_script_that_its_policy_allows_and_loads_nothing():
    page = page_for(failing_run())
    assert "default-src 'none'" in page
    (digest,) = re.findall(r"script-src 'sha256-([^']+)'", page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == digest
    assert not re.search(r"<(?:link|img|iframe|script)[^>]+(?:src|href)=", DATA.sub("", page))


def test_without_a_script_the_page_says_what_was_found():
    page = page_for(failing_run(), "VanishingGradient")
    plain = re.search(r"<main.*?</main>", page, re.DOTALL)[0]
    assert "✗ VanishingGradient detected a problem" in plain
    assert "1 of 1 rule detected a problem" in plain


def test_two_runs_are_compared_by_values_configuration_and_statistics(tmp_path):
    for name, rate in (("a", 0.1), ("b", 0.2)):
        made = {step: {"loss": [rate / (1 + step)]} for step in range(4)}
        run = MadeRun(tmp_path / name, collections={"losses": ["loss"]})
        for step, tensors in made.items():
            run.save(step, tensors)
        run.end()
    a, b = (open_run(tmp_path / name) for name in "ab")
    page = page_of(gather(a, other=b, comparison=compare(a, b)))
    data = data_in(page)
    found = data["answers"][f"compare/{data['run']},{data['other']}"]
    assert found["values"]["outcome"].startswith("First difference: step 0, loss of worker_0")
    (losses,) = found["values"]["collections"]
    assert (losses["name"], losses["different"], losses["first_step"]) == ("losses", 4, 0)
    assert data["answers"][f"run/{data['other']}/series/loss"]["low"][0] == 0.2


def test_writing_a_report_needs_no_package_of_the_server(tmp_path):
    failing_run(tmp_path / "run")
    script = (
        "import sys\n"
        "for name in ('starlette', 'uvicorn', 'anyio', 'jinja2'): sys.modules[name] = None\n"
        "from smdebug.reports import write_report\n"
        f"places = {str(tmp_path / 'run')!r}, {str(tmp_path / 'page.html')!r}\n"
        "write_report(*places, rules=['ExplodingTensor'], jobs=1)"
    )
    subprocess.run([sys.executable, "-B", "-c", script], check=True, capture_output=True)
    assert (tmp_path / "page.html").stat().st_size > 100_000
