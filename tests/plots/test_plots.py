"""Pictures are drawn of what the run holds: bars hold all values, curves go where the numbers go."""

from __future__ import annotations

import collections
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import smdebug
from smdebug import plots
from smdebug.cli.answers import progress
from smdebug.cli.main import main
from smdebug.exceptions import SMDebugValueError
from smdebug.files.observations import FACTS, SERIES, json_array
from smdebug.mode_keys import ModeKeys
from tests.cli.conftest import failing_run
from tests.rules.made_runs import made_run


def trial(**options):
    return failing_run(**options).trial()


def test_a_curve_has_the_numbers_of_the_run():
    (axis,) = plots.line(trial(), "loss").figure.axes
    (curve,) = axis.get_lines()
    assert list(curve.get_xdata()) == list(range(0, 100, 10))
    assert np.allclose(curve.get_ydata(), [2 - step / 100 for step in range(0, 100, 10)])
    (axis,) = plots.line(trial(), "gradient", statistic="l2").figure.axes
    assert axis.get_lines()[0].get_ydata()[0] == pytest.approx(np.sqrt(6))


def run_with_series(place: Path, name: str, values: list[float]) -> str:
    """A run that kept a scalar of every step and saved three of them."""
    saved_at = np.array_split(np.arange(len(values)), 3)
    with smdebug.Hook(str(place), save_all=True) as hook:
        hook.save_config = smdebug.SaveConfig(save_steps=[int(steps[-1]) for steps in saved_at])
        for step in range(len(values)):
            with hook.step():
                for steps in saved_at:
                    if step == steps[-1]:
                        rows = [(at, ModeKeys.TRAIN.value, at, values[at]) for at in steps]
                        hook.record(f"{SERIES}{name}", np.array(rows, np.float64))
                        hook.record(FACTS, json_array({"layout": 0}))
    return str(place)


def test_a_scalar_that_was_kept_at_every_step_is_drawn_whole(tmp_path):
    """A single spike among 3,000 steps, of which 3 were saved, is in the curve."""
    values = [1.0] * 3000
    values[1234] = 50.0
    (axis,) = plots.line(run_with_series(tmp_path / "run", "loss", values), "^loss$").figure.axes
    (curve,) = axis.get_lines()
    assert (len(curve.get_xdata()), curve.get_ydata()[1234]) == (3000, 50.0)


def test_the_command_draws_curves_of_scalars_and_hills_of_tensors(tmp_path, capsys):
    failing_run(tmp_path / "run")
    picture = tmp_path / "loss.svg"
    for tensor, curves in (("^loss$", True), ("^gradient", False)):
        assert main(["plot", str(tmp_path / "run"), "--tensor", tensor, "-o", str(picture)]) == 0
        assert ("line2d" in picture.read_text() and "FillBetween" not in picture.read_text()) == curves
    capsys.readouterr()


def test_bars_hold_all_values_and_the_first_step_is_outlined():
    (axis,) = plots.histogram(trial(), "fc.weight").figure.axes
    assert sum(bar.get_height() for bar in axis.patches if hasattr(bar, "get_height")) == 6
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["step 90", "step 0"]
    (axis,) = plots.histogram(trial(), "fc.weight", step=20).figure.axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["step 20"]


def test_a_heat_map_has_a_column_for_each_step():
    (axis,) = plots.heatmap(trial(), "fc.weight").figure.axes
    shares = axis.get_images()[0].get_array()
    assert shares.shape[1] == 10
    assert np.allclose(shares.max(axis=0), 1)
    assert np.argmax(shares[:, 0]) < np.argmax(shares[:, -1])  # the values rise


def test_a_ridge_has_a_hill_for_some_of_the_steps():
    (axis,) = plots.ridge(trial(), "fc.weight", most_steps=5).figure.axes
    assert len(axis.collections) == 5


def test_a_single_step_can_be_asked_for():
    values = plots.values_of(trial(), "^loss$", most_steps=1)
    assert list(values["loss"]) == [0]


def test_two_runs_are_side_by_side():
    runs = {"bad": trial(), "good": trial(steps=5)}
    figure = plots.heatmap(runs, "fc.weight|gradient").figure
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["bad: fc.weight", "good: fc.weight", "bad: gradient/fc", "good: gradient/fc"]
    (axis,) = plots.line(runs, "loss").figure.axes
    assert [curve.get_label() for curve in axis.get_lines()] == ["bad", "good"]
    figure = plots.variance_across_layers(runs, "fc").figure
    assert [len(axis.get_lines()) for axis in figure.axes] == [2, 2]


def test_dead_and_saturated_units_are_counted_over_the_batch():
    batch = np.array([[0.0, 1.0, 0.0, 0.995], [0.0, -1.0, 2.0, 1.0]])
    run = made_run({0: {"relu_output": batch}, 1: {"relu_output": np.zeros((2, 4))}})
    (axis,) = plots.dead_units(run.trial(), saturated_at=0.99).figure.axes
    dead, saturated = axis.get_lines()
    assert list(dead.get_ydata()) == [25.0, 100.0]
    assert list(saturated.get_ydata()) == [50.0, 0.0]


def test_collected_tensors_are_animated_with_a_frame_per_step(tmp_path):
    """As seed 002 has it: `{name: {step: array}}`, into a folder that is not there yet."""
    tensors = collections.OrderedDict()
    rng = np.random.default_rng(0)
    for name in ("gradient/conv0_weight", "gradient/conv1_weight", "constant", "$odd_{name"):
        tensors[name] = {step: rng.normal(size=(20, 1, 5, 5)) / (1 + step) for step in range(30)}
    tensors["constant"] = dict.fromkeys(range(30), np.zeros(3))
    tensors["empty"] = {}
    tensors["nothing finite"] = {0: np.array([np.nan, np.inf])}
    place = plots.create_interactive_matplotlib_histogram(
        tensors, filename=str(tmp_path / "images" / "a.gif")
    )
    with Image.open(place) as picture:
        assert picture.n_frames == 30
        first = np.asarray(picture.convert("RGB"), np.int16)
        picture.seek(29)
        last = np.asarray(picture.convert("RGB"), np.int16)
    assert (np.abs(first - last).max(axis=2) > 40).mean() > 0.005


def test_a_long_training_has_a_hundred_frames(tmp_path):
    tensors = {"w": {step: np.arange(5.0) * step for step in range(1000)}}
    place = plots.create_interactive_matplotlib_histogram(tensors, tmp_path / "a.gif")
    with Image.open(place) as picture:
        assert picture.n_frames == 100


def test_drawing_reports_progress(tmp_path):
    read, drawn = [], []
    tensors = plots.values_of(trial(), "fc", progress=read.append)
    plots.create_interactive_matplotlib_histogram(tensors, tmp_path / "a.gif", progress=drawn.append)
    assert read == [1] * 20  # two tensors at ten steps
    assert drawn == [1] * 10


def test_a_terminal_shows_the_progress_of_reading_and_drawing(tmp_path, monkeypatch, capsys):
    failing_run(tmp_path / "a")
    monkeypatch.setattr(progress, "_DELAY", -1.0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    words = ["plot", str(tmp_path / "a"), "--tensor", "fc", "--kind", "histogram"]
    assert main([*words, "-o", str(tmp_path / "x.gif")]) == 0
    shown = capsys.readouterr().err
    assert "reading 20" in shown
    assert "drawing ████████████████████████ 100%" in shown
    assert shown.endswith("\r\033[K")  # the bar is erased
    assert main([*words, "-o", str(tmp_path / "x.png")]) == 0
    assert "reading 20" in capsys.readouterr().err


def test_runs_that_are_far_apart_share_one_scale():
    (axis,) = plots.line({"loss": {0: [200.0], 9: [2.0]}}, statistic="mean").figure.axes
    assert axis.get_yscale() == "log"
    (axis,) = plots.line({"loss": {0: [2.0], 9: [1.0]}}).figure.axes
    assert axis.get_yscale() == "linear"
    runs = {"bad": trial(), "good": made_run({0: {"gradient/fc": [[1e3, -1e3]]}}).trial()}
    bad, good = plots.variance_across_layers(runs, "gradient").figure.axes
    assert bad.get_ylim() == good.get_ylim()
    assert good.get_ylim()[1] >= 1e6


def test_nothing_to_draw_is_an_error_and_leaves_no_file(tmp_path):
    for wrong in (
        lambda: plots.create_interactive_matplotlib_histogram({}, tmp_path / "a.gif"),
        lambda: plots.create_interactive_matplotlib_histogram({"w": {0: [1.0]}}, tmp_path / "a.mp4"),
        lambda: plots.line(trial(), "nothing like that"),
        lambda: plots.line(trial(), "loss", statistic="mode"),
        lambda: plots.line(trial(), "loss").save(tmp_path / "a.bmp"),
        lambda: plots.line(trial(), "loss").save(tmp_path / "a.gif"),
    ):
        with pytest.raises(SMDebugValueError):
            wrong()
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_picture_and_pyplot_is_not_touched():
    before = "matplotlib.pyplot" in sys.modules
    picture = plots.line(trial(), "loss")
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) is before


@pytest.mark.parametrize("kind", ["histogram", "ridge", "line", "heatmap", "variance", "dead-units"])
def test_the_command_draws_every_kind(kind, tmp_path, capsys):
    failing_run(tmp_path / "a")
    failing_run(tmp_path / "b")
    place = tmp_path / "x.png"
    words = ["plot", str(tmp_path / "a"), "--tensor", "fc", "--kind", kind, "-o", str(place)]
    assert main(words) == 0
    with Image.open(place) as picture:
        assert min(picture.size) > 200
    assert main([*words, "--with", str(tmp_path / "b"), "--json"]) == 0


@pytest.mark.parametrize("name", ["x.svg", "x.pdf", "x.html", "x.gif"])
def test_the_extension_chooses_the_format(name, tmp_path, capsys):
    failing_run(tmp_path / "a", steps=3)
    words = [
        "plot",
        str(tmp_path / "a"),
        "--tensor",
        "fc",
        "--kind",
        "histogram",
        "-o",
        str(tmp_path / name),
    ]
    assert main(words) == 0
    begins = {"x.svg": b"<?xml", "x.pdf": b"%PDF", "x.html": b"<!doctype", "x.gif": b"GIF89a"}
    assert Path(tmp_path / name).read_bytes().startswith(begins[name])


def test_the_command_counts_saturated_units_beside_the_dead_ones(tmp_path, capsys):
    made_run({step: {"tanh_output": np.array([[0.0, 1.0]])} for step in range(3)}, tmp_path / "a")
    place = tmp_path / "x.svg"
    words = ["plot", str(tmp_path / "a"), "--tensor", "tanh", "-o", str(place)]
    assert main([*words, "--kind", "dead-units"]) == 0
    assert "<!-- saturated -->" not in place.read_text(encoding="utf-8")
    assert main([*words, "--kind", "dead-units", "--saturated-at", "0.99"]) == 0
    assert "<!-- saturated -->" in place.read_text(encoding="utf-8")
    assert main([*words, "--kind", "line", "--saturated-at", "0.99"]) == 2


def test_wrong_arguments_are_reported(tmp_path, capsys):
    failing_run(tmp_path / "a", steps=3)
    run = str(tmp_path / "a")
    assert main(["plot", run, "--tensor", "fc", "--kind", "ridge", "-o", str(tmp_path / "x.gif")]) == 2
    assert main(["plot", run, "--tensor", "nope", "-o", str(tmp_path / "x.png")]) == 2
    assert main(["plot", run, "--tensor", "fc", "-o", str(tmp_path / "x.bmp")]) == 2
    assert "the name of a picture must end in .png" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [plots.histogram, plots.ridge, plots.heatmap])
def test_values_between_which_no_number_fits_are_drawn(kind):
    alike = {0: np.array([2**63], np.uint64), 1: np.array([2**63, 2**63 + 4096], np.uint64)}
    assert kind({"counter": alike}).png().startswith(b"\x89PNG")


def test_names_and_numbers_of_any_kind_are_drawn_without_a_warning(recwarn, tmp_path):
    plots.line({"損失": {0: np.array([3 + 4j]), 1: np.array([1j])}}).save(tmp_path / "line.png")
    assert not [str(warning.message) for warning in recwarn]
