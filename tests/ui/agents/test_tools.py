"""Each tool on real runs: what an agent learns, and what it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.files.names import END_MARKER, STOP_KEY
from smdebug.ui.agents.bounding import MOST_TOKENS, text_of, tokens
from smdebug.ui.agents.catalog import TOOLS, offered
from smdebug.ui.agents.tools import Tools, answered
from tests.cli.conftest import failing_run
from tests.support.looking import each
from tests.ui.agents.hostile import HOSTILE, ORDER, write_hostile_run


def train(place: Path, rate: float) -> None:
    x, weights = np.random.default_rng(0).normal(size=(64, 3)), np.zeros(3)
    with smdebug.Hook(str(place), config={"lr": rate}) as hook:
        for _ in range(50):
            with hook.step():
                error = x @ weights - 1
                hook.record_all({"loss": (error**2).mean(), "weight": weights})
            weights = weights - rate * x.T @ error / len(x)


@pytest.fixture
def tools(tmp_path):
    train(tmp_path / "runs/bad", 2)
    train(tmp_path / "runs/good", 0.1)
    return Tools([str(tmp_path / "runs")], allow_stop=True)


def test_what_goes_wrong_in_a_tool_itself_is_an_error_and_ends_no_server():
    def broken(run: str) -> None:
        raise KeyError(run)

    answer, has_failed = answered(broken, {"run": "a"})
    assert has_failed
    assert "smdebug itself failed: KeyError: 'a'" in json.dumps(answer)


def test_runs_are_listed_with_their_loss(tools):
    answer = tools.list_runs()
    assert [(run["run"], run["state"]) for run in answer["runs"]] == [("«bad»", "ended"), ("«good»", "ended")]
    assert answer["runs"][1]["loss"] < 1
    assert [run["run"] for run in tools.list_runs("goo")["runs"]] == ["«good»"]


def test_a_diagnosis_gathers_cause_onset_evidence_and_remedy(tools):
    answer = tools.diagnose("bad")
    (problem,) = answer["problems"]
    assert (answer["verdict"], problem["cause"], problem["since"]) == ("failing", "exploding", 14)
    assert problem["title"] == "«The loss diverges»"
    assert problem["try"] == ["«Clip the norm of the gradients, and lower the learning rate.»"]
    assert answer["changed"][0]["tensor"] == "«weight»"
    assert answer["changed_at"] == 14


def test_a_healthy_run_has_nothing_wrong_and_one_that_nothing_checks_is_not_checked(tools, tmp_path):
    assert tools.diagnose("«good»")["verdict"] == "nothing wrong"
    with smdebug.Hook(str(tmp_path / "runs/bare"), include_collections=["none"]) as hook:
        hook.get_collection("none").include("^x")
        with hook.step():
            hook.record("x", np.ones(2))
    assert tools.diagnose("bare")["verdict"] == "not checked"


def test_a_diagnosis_is_made_again_once_the_run_has_grown(tmp_path):
    tools = Tools([str(tmp_path)])
    with smdebug.Hook(str(tmp_path / "run"), save_config=smdebug.SaveConfig(save_interval=1)) as hook:
        with hook.step():
            hook.record("loss", 1.0)
        hook.flush()
        assert tools.diagnose("run")["verdict"] != "failing"
        for _ in range(3):
            with hook.step():
                hook.record("loss", np.nan)
    assert tools.diagnose("run")["verdict"] == "failing"


def test_tensors_scalars_and_unknown_names(tools):
    answer = tools.tensor_statistics("bad", "«weight»")
    assert answer["columns"][:2] == ["step", "rms"]
    assert answer["rows"][0][:2] == [0, 0.0]
    loss = tools.tensor_statistics("bad", "loss")
    assert (loss["columns"], loss["rows"][0]) == (["step", "value"], [0, 1.0])
    assert loss["cut"] == ["rows: 24 of 50, evenly spread"]
    with pytest.raises(SMDebugValueError, match="it has weight, for example"):
        tools.tensor_statistics("bad", "wieght")


def test_a_comparison_names_configuration_onset_and_problems(tools):
    answer = tools.compare_runs("bad", "good")
    assert {"name": "«lr»", "values": ["«2»", "«0.1»"]} in answer["configuration"]
    assert answer["first_difference"]["step"] == 1
    assert answer["problems"] == [[{"cause": "exploding", "since": 14}], []]


def test_a_rule_is_evaluated_with_parameters_and_attached(tools, tmp_path):
    failing_run(tmp_path / "runs/vanishing")
    answer = tools.evaluate_rule("vanishing", "VanishingGradient", {"threshold": 1e-7})
    assert (answer["verdict"], answer["found_at"], answer["problems"][0]["since"]) == ("failing", 6, 40)
    strict = tools.evaluate_rule("vanishing", "VanishingGradient", {"threshold": 1e-12})
    assert (strict["verdict"], strict["found_at"]) == ("nothing wrong", 0)
    assert not (tmp_path / "runs/vanishing/rules.json").exists()
    rules = tools.attach_rule("vanishing", "VanishingGradient", {"threshold": 1e-7})["rules"]
    assert "VanishingGradient" in rules
    written = json.loads((tmp_path / "runs/vanishing/rules.json").read_text())
    assert "actions" not in str(written)
    with pytest.raises(SMDebugError):
        tools.attach_rule("vanishing", "NoSuchRule")


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [({"limit": 1}, "takes no parameter 'limit'"), ({"threshold": "much"}, "must be a number")],
)
def test_a_rule_that_would_fail_is_not_attached_in_the_place_of_one_that_works(
    tools, tmp_path, parameters, problem
):
    failing_run(tmp_path / "runs/vanishing")
    with pytest.raises(SMDebugError, match=problem):
        tools.attach_rule("vanishing", "VanishingGradient", parameters)
    assert not (tmp_path / "runs/vanishing/rules.json").exists()


def test_a_stop_is_written_only_if_it_is_allowed(tools, tmp_path):
    (tmp_path / "runs/bad" / END_MARKER).unlink()
    refused, failed = answered(Tools([str(tmp_path / "runs")]).request_stop, {"run": "bad", "reason": "NaN"})
    assert (failed, "--allow-stop" in refused["error"]) == (True, True)
    assert not (tmp_path / "runs/bad" / STOP_KEY).exists()
    assert "requested" in tools.request_stop("bad", "the loss explodes")["stop"]
    assert json.loads((tmp_path / "runs/bad" / STOP_KEY).read_text())["reason"] == "the loss explodes"
    assert "request_stop" not in offered(allow_stop=False)
    assert len(offered(allow_stop=True)) == 8


@pytest.mark.parametrize("given", ["../secret", "{}/secret", "/etc", "no"])
def test_a_run_elsewhere_cannot_be_asked_for(tools, tmp_path, given):
    train(tmp_path / "secret", 0.1)
    with pytest.raises(SMDebugValueError, match="There is no run"):
        tools.diagnose(given.replace("{}", str(tmp_path)))


def test_two_places_with_a_run_of_one_name_are_told_apart(tmp_path):
    train(tmp_path / "a/run", 2)
    train(tmp_path / "b/run", 0.1)
    tools = Tools([str(tmp_path / "a"), str(tmp_path / "b")])
    assert tools.diagnose("run")["verdict"] == "failing"
    assert tools.diagnose(f"{tmp_path}/b/run")["verdict"] == "nothing wrong"


def test_arguments_that_do_not_fit_are_refused_in_a_sentence():
    (around,) = (tool for tool in TOOLS if tool.name == "around")
    for given, why in each(
        (
            ({"run": "a", "step": "7"}, "must be of the type integer"),
            ({"run": "a", "step": True}, "must be of the type integer"),
            ({"run": "a"}, "needs the argument step"),
            ({"run": "a", "step": 1, "stp": 2}, "takes no argument stp. Did you mean step"),
        ),
        at_least=4,
    ):
        with pytest.raises(SMDebugValueError, match=why):
            around.checked(given)
    assert around.checked({"run": "a", "step": 7}) == {"run": "a", "step": 7}


def test_text_of_a_run_is_between_marks_in_every_answer(tmp_path):
    write_hostile_run(tmp_path / "runs/hostile")
    tools = Tools([str(tmp_path / "runs")])
    asked = [
        tools.list_runs(),
        tools.diagnose("hostile"),
        tools.around("hostile", 3),
        tools.compare_runs("hostile", "hostile"),
        tools.evaluate_rule("hostile", "VanishingGradient"),
        answered(tools.attach_rule, {"run": "hostile", "rule": "AllZero", "parameters": {ORDER: ORDER}})[0],
        tools.attach_rule("hostile", "VanishingGradient"),
        *(tools.tensor_statistics("hostile", name) for name in HOSTILE),
        answered(tools.diagnose, {"run": HOSTILE[0]})[0],
        answered(tools.tensor_statistics, {"run": "hostile", "tensor": HOSTILE[1]})[0],
    ]
    seen = 0
    for answer in each(asked, at_least=15):
        text = text_of(answer)
        assert tokens(text) <= MOST_TOKENS
        assert len(text.splitlines()) == 1
        for value in strings_of(json.loads(text)):
            if ORDER in value:
                seen += 1
                before, _, _ = value.partition(ORDER)
                assert before.count("«") == before.count("»") + 1, value
                assert value.rstrip().endswith("»")
            assert "\x1b" not in value
    assert seen > 10


WORDY = """
from smdebug.rules import Finding, Rule


class Wordy(Rule):
    def invoke_at_step(self, step):
        text = "梯度消失了" * 40
        for cause in map(str, range(9)):
            self.findings.append(
                Finding(f"層{cause}" * 30, "mean", 3.0, 1.0, message=text, cause=f"原因{cause}" * 20,
                        title=text, why=[text] * 9, advice=[text] * 9)
            )
        return True
"""


def test_a_problem_in_a_script_that_takes_many_tokens_is_named_within_the_bound(tools, tmp_path):
    (tmp_path / "wordy.py").write_text(WORDY)
    wordy = Tools([str(tmp_path / "runs")], rule_file=str(tmp_path / "wordy.py"))
    for answer in (wordy.diagnose("good"), wordy.evaluate_rule("good", "Wordy")):
        assert tokens(text_of(answer)) <= MOST_TOKENS
        assert answer["verdict"] == "failing"
        assert answer["problems"][0]["cause"].startswith("«原因0")
        assert answer["problems"][0]["try"][0].startswith("«梯度消失了")
    compared = wordy.compare_runs("good", "bad")
    assert tokens(text_of(compared)) <= MOST_TOKENS
    assert compared["problems"][0][0]["cause"].startswith("«原因0")


def strings_of(value):
    """Yield every text in a JSON document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item)
