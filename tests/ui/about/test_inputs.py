"""Inputs that findings point at are shown: images as pictures, tokens and text as text."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

from smdebug.reports import gather
from smdebug.runs import evaluate, open_run
from smdebug.runs.verdicts import of_results
from smdebug.ui.about.inputs import inputs_shown
from smdebug.ui.following.verdict_answers import rule_answer
from tests.rules.made_runs import MadeRun

RULE = """
from smdebug.rules import Finding, Rule


class Suspicious(Rule):
    def invoke_at_step(self, step):
        if step == 1:
            names = self.base_trial.tensor_names(step=step)
            self.findings += [Finding(name, message=f"look at {name}") for name in names]
        return bool(self.findings)
"""


def found_in(tmp_path, tensors):
    run = MadeRun(tmp_path / "run", collections={"inputs": [name for name in tensors if "in" in name]})
    for step in range(3):
        run.save(step, {**tensors, "weight": np.ones((2, 3, 8, 8))})
    run.end()
    (tmp_path / "rule.py").write_text(RULE)
    trial = open_run(tmp_path / "run")
    results = evaluate(trial, ["Suspicious"], file=tmp_path / "rule.py", jobs=1)
    verdicts = of_results(results)
    return trial, verdicts, [rule_answer(verdict, has_checked=True) for verdict in verdicts]


def about(trial, verdicts):
    (answer,) = [answer for key, answer in gather(trial, verdicts).answers.items() if key.endswith("/about")]
    return answer


def pixels_in(uri):
    """Decode a PNG without filters: its width, height and bytes."""
    data = base64.b64decode(uri.partition(",")[2])
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    start = data.index(b"IDAT") + 4
    length = int.from_bytes(data[start - 8 : start - 4], "big")
    return width, height, zlib.decompress(data[start : start + length])


@pytest.mark.parametrize("shape", [(10, 3, 6, 5), (10, 6, 5, 3), (10, 1, 6, 5), (10, 6, 5)])
def test_a_batch_of_images_is_shown_as_pictures(tmp_path, shape):
    images = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    trial, verdicts, rules = found_in(tmp_path, {"net_input_0": images})
    (shown,), unsaved = inputs_shown(trial, rules)
    assert (shown.name, shown.step, shown.rules, unsaved) == ("net_input_0", 1, ("Suspicious",), ())
    assert len(shown.pictures) == 8
    assert pixels_in(shown.pictures[0])[:2] == (5, 6)
    (answer,) = about(trial, verdicts)["inputs"]
    assert all(each.startswith("data:image/png;base64,") for each in answer["pictures"])
    assert len(answer["pictures"]) == 8


def test_the_smallest_value_is_black_and_values_that_are_not_finite_are_shown(tmp_path):
    image = np.zeros((1, 4, 4))
    image[0, 0] = [0, 5, 10, np.nan]
    trial, _, rules = found_in(tmp_path, {"net_input_0": image})
    (shown,), _ = inputs_shown(trial, rules)
    assert list(pixels_in(shown.pictures[0])[2][:5]) == [0, 0, 128, 255, 0]


def test_tokens_and_text_are_shown_as_text_and_escaped(tmp_path):
    tokens = {"net_input_0": np.array([[1, 2, 3], [4, 5, 0]]), "inputs": np.array(["<b>", "x"])}
    trial, verdicts, rules = found_in(tmp_path, tokens)
    shown, _ = inputs_shown(trial, rules)
    assert {item.name: item.texts for item in shown} == {
        "net_input_0": ("1 2 3", "4 5 0"),
        "inputs": ("<b>", "x"),
    }
    texts = {each["name"]: each["texts"] for each in about(trial, verdicts)["inputs"]}
    assert texts["inputs"] == ["<b>", "x"]


def test_other_values_and_other_tensors_are_not(tmp_path):
    trial, verdicts, rules = found_in(tmp_path, {"net_input_0": np.ones((4, 7))})
    assert inputs_shown(trial, rules) == ((), ())
    assert about(trial, verdicts)["inputs"] == []
