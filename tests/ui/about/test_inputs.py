"""Inputs that findings point at are shown: images as pictures, tokens and text as text."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

from smdebug.reports import gather
from smdebug.runs import evaluate, open_run
from smdebug.runs.verdicts import of_results
from smdebug.ui.about.inputs import inputs_shown, png_uri
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


def first_picture(tmp_path, batch):
    trial, _, rules = found_in(tmp_path, {"net_input_0": np.asarray(batch)})
    found, _ = inputs_shown(trial, rules)
    return found[0].pictures if found else ()


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((2, 4, 4), (4, 4)),
        ((2, 3, 4), ()),
        ((2, 4, 3), ()),
        ((2, 1, 4, 6), (6, 4)),
        ((2, 3, 4, 6), (6, 4)),
        ((2, 4, 6, 3), (6, 4)),
        ((2, 4, 6, 1), (6, 4)),
        ((2, 3, 5, 3), ()),
        ((2, 2, 4, 6), ()),
        ((2, 4, 6, 4), ()),
        ((2, 2, 4, 4, 4), ()),
        ((2, 8), ()),
    ],
)
def test_images_have_one_or_three_channels_and_four_pixels(shape, size, tmp_path):
    shown = first_picture(tmp_path, np.random.default_rng(0).random(shape))
    assert len(shown) == (2 if size else 0)
    assert not size or pixels_in(shown[0])[:2] == size


@pytest.mark.parametrize(
    ("values", "gray"),
    [
        ([10.0, 20.0, 15.0, 10.0], [0, 255, 128, 0]),
        ([-3.0, -1.0, -2.0, -3.0], [0, 255, 128, 0]),
        ([7.0, 7.0, 7.0, 7.0], [0, 0, 0, 0]),
        ([1.0, 3.0, np.nan, np.inf], [0, 255, 0, 255]),
        ([1.0, 3.0, -np.inf, 2.0], [0, 255, 0, 128]),
    ],
)
def test_pixels_lie_between_the_smallest_and_the_largest_value(values, gray, tmp_path):
    (uri,) = first_picture(tmp_path, [np.tile(values, (4, 1))])
    lines = pixels_in(uri)[2]
    assert list(lines) == [0, *gray] * 4


def test_a_picture_is_a_png_that_a_browser_reads():
    gray = np.arange(20, dtype=np.uint8).reshape(4, 5, 1)
    colours = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for image, colour_type in ((gray, 0), (colours, 2)):
        data = base64.b64decode(png_uri(image).removeprefix("data:image/png;base64,"))
        assert data.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x05\0\0\0\x04")
        assert list(data[24:29]) == [8, colour_type, 0, 0, 0]
        assert int.from_bytes(data[29:33], "big") == zlib.crc32(data[12:29])
        assert data.endswith(b"\0\0\0\0IEND\xaeB`\x82")
        rows = zlib.decompress(data[data.index(b"IDAT") + 4 : -16])
        assert rows == b"".join(b"\0" + row.tobytes() for row in image)


def test_large_images_are_thinned_so_that_an_answer_stays_small(tmp_path):
    shown = first_picture(tmp_path, np.zeros((8, 3, 40, 900)))
    assert len(shown) == 8
    width, height, _ = pixels_in(shown[0])
    assert (width, height) == (102, 40)
    (alone,) = first_picture(tmp_path / "alone", np.zeros((1, 20, 900)))
    assert pixels_in(alone)[:2] == (500, 20)


def test_values_that_are_never_finite_and_text_are_no_pictures(tmp_path):
    assert first_picture(tmp_path, np.full((2, 4, 4), np.nan)) == ()
    assert first_picture(tmp_path / "numbers", np.full((2, 4, 4), 1j)) == ()


def test_six_texts_of_300_letters_are_shown(tmp_path):
    tensors = {"net_input_0": np.arange(10 * 400).reshape(10, 400), "inputs": np.array(["x" * 400] * 9)}
    trial, _, rules = found_in(tmp_path, tensors)
    tokens, texts = sorted(inputs_shown(trial, rules)[0], key=lambda shown: shown.name, reverse=True)
    assert [len(text) for text in tokens.texts] == [300] * 6
    assert tokens.texts[0].startswith("0 1 2 3")
    assert texts.texts == ("x" * 300,) * 6
    assert not tokens.pictures


def test_four_inputs_are_shown(tmp_path):
    trial, _, rules = found_in(tmp_path, {f"net_input_{number}": np.eye(5)[None] for number in range(6)})
    found, unsaved = inputs_shown(trial, rules)
    assert [shown.name for shown in found] == [f"net_input_{number}" for number in range(4)]
    assert unsaved == ()


def test_an_input_that_was_only_measured_is_named(tmp_path):
    trial, _, rules = found_in(tmp_path, {"net_input_0": np.eye(5)[None]})
    rules[0]["found"][0]["tensors"] = ["net_input_7", "net_input_0"]
    found, unsaved = inputs_shown(trial, rules)
    assert [shown.name for shown in found] == ["net_input_0"]
    assert unsaved == ("net_input_7",)


@pytest.mark.parametrize(
    ("name", "is_input"),
    [
        ("net_input_0", True),
        ("input", True),
        ("model/inputs_3", True),
        ("images", True),
        ("labels", True),
        ("batch_x", True),
        ("input_layer", False),
        ("net_output_0", False),
        ("relabels", False),
    ],
)
def test_inputs_are_known_by_their_names(name, is_input, tmp_path):
    trial, _, rules = found_in(tmp_path, {"w": np.eye(5)[None]})
    for verdict in rules:
        for each in verdict["found"]:
            each["tensors"] = [name]
    assert inputs_shown(trial, rules)[1] == ((name,) if is_input else ())
