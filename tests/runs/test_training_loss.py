"""The loss of a training: every place that shows it agrees with what the training saw."""

import json

import numpy as np
import pytest

import smdebug
from smdebug import modes
from smdebug.notebook.tables import run_html
from smdebug.runs import open_run, overview_of
from smdebug.runs.conditions import parse_condition
from smdebug.runs.listing import list_runs
from smdebug.runs.live_run import LiveRun
from smdebug.runs.training_loss import training_loss
from smdebug.trials import create_trial
from smdebug.trials.observations.loss_names import likely_losses
from smdebug.ui.finding.glance import Glance, Glancer
from smdebug.ui.following.kept_runs import Kept
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.keeping import kept_from
from smdebug.ui.watching.summary import summary_of
from tests.cli.processes import in_a_shell

STEPS = 237  # the schedule's last saved step of training is 230


class Observing(smdebug.Hook):
    """The hook for any loop, observing beside chosen tensors as that for PyTorch does."""

    observes_chosen = True


def train(place, kind=smdebug.Hook, **options):
    """Fit a line by gradient descent; return the losses that the loop saw. Those of evaluations are lower."""
    random = np.random.default_rng(3)
    weight, seen = np.zeros(3), []
    with kind(place, **options) as hook:
        for at in range(STEPS):
            inputs = random.normal(size=(8, 3))
            error = inputs @ weight - inputs @ np.array([1.0, -2.0, 0.5]) - random.normal(0, 0.1, 8)
            with hook.step(modes.TRAIN):
                seen.append(float(np.mean(error**2)))
                hook.record("loss", seen[-1])
                hook.record("a.bias", 0.0)  # a name that comes before the loss
                hook.record("weight", weight)
                gradient = 2 * inputs.T @ error / 8
                hook.record("gradient/weight", gradient)
                weight = weight - 0.02 * gradient
            if at % 50 == 36:
                for _ in range(3):
                    with hook.step(modes.EVAL):
                        hook.record("loss", seen[-1] / 100)
    return seen


def read_through(reader):
    while reader.advance(seconds=1):
        pass
    return reader


@pytest.fixture(params=["default plan", "every tenth step", "observed beside every tenth step"])
def training(request, tmp_path):
    """A run, the losses of its training as far as the run keeps them, and their number."""
    place = str(tmp_path / "runs" / "line")
    if request.param == "default plan":
        return place, train(place)
    every_tenth = smdebug.SaveConfig({modes.TRAIN: smdebug.SaveConfigMode(save_interval=10)})
    is_observed = request.param.startswith("observed")
    kind = Observing if is_observed else smdebug.Hook
    seen = train(place, kind, save_config=every_tenth, include_collections=["losses"])
    return place, seen[:231] if is_observed else seen[::10]


def test_every_place_shows_the_loss_that_the_training_saw(training, tmp_path):
    place, seen = training
    last, best = seen[-1], min(seen)
    trial = create_trial(place)
    loss = training_loss(trial)
    np.testing.assert_allclose(loss.values, seen, rtol=1e-6)
    assert (loss.last, loss.best) == pytest.approx((last, best))
    assert loss.best_step == loss.steps[seen.index(best)]

    (listed,) = list_runs(str(tmp_path / "runs"))
    assert (listed.loss, listed.best_loss) == pytest.approx((last, best))
    exactly = f"loss>{last * 0.999}", f"loss<{last * 1.001}", f"best_loss<{best * 1.001}"
    assert list_runs(place, where=list(map(parse_condition, exactly)))

    live = LiveRun(place)
    live.advance()
    assert live.losses == pytest.approx(seen)
    assert live.loss == live.losses[-1]

    overview = overview_of(open_run(place))
    assert (overview.loss.last, overview.loss.best) == pytest.approx((last, best))
    assert f"{last:.4g} at {loss.step_in_words(loss.last_step)}, lowest {best:.4g}" in run_html(trial)

    glance = Glancer().at(place)
    assert (glance.loss_name, glance.loss) == ("loss", pytest.approx(last))
    reader = read_through(RunReader(place))
    of_card = summary_of(Glance(), reader)
    assert (of_card.loss_name, of_card.loss) == ("loss", pytest.approx(last))
    assert min(of_card.curve) >= best * 0.999  # no value of an evaluation
    assert max(glance.curve) <= max(seen) * 1.001


def test_commands_agree_on_the_loss(training):
    place, seen = training
    inspected = json.loads(in_a_shell("inspect", place, "--json").stdout)
    (listed,) = json.loads(in_a_shell("runs", place, "--json").stdout)
    (watched,) = [
        event
        for event in map(json.loads, in_a_shell("watch", place, "--json").stdout.splitlines())
        if event["event"] == "ended"
    ]
    assert inspected["loss"]["last"] == listed["loss"] == watched["loss"] == pytest.approx(seen[-1])
    assert inspected["loss"]["best"] == listed["best_loss"] == pytest.approx(min(seen))
    (tensor,) = (each for each in inspected["tensors"] if each["name"] == "loss")
    assert tensor["latest"]["mean"] == pytest.approx(seen[-1])
    assert tensor["last_step"] == inspected["loss"]["last_step"]
    shown = json.loads(in_a_shell("tensor", place, "loss", "--json").stdout)["loss"]
    assert (shown["last"], shown["best"]) == pytest.approx((seen[-1], min(seen)))
    assert "loss" not in listed["metrics"]
    printed = in_a_shell("inspect", place).stdout
    assert f"loss {seen[-1]:.4g} at step {inspected['loss']['last_step']}" in printed


def test_a_kept_run_still_knows_which_losses_are_of_the_training(training, tmp_path):
    place, seen = training
    reader = read_through(RunReader(place))
    with (tmp_path / "kept").open("wb") as file:
        kept_from(reader).write(file)
    with (tmp_path / "kept").open("rb") as file:
        again = Kept.read(file, 1 << 20)
    assert again.lines["TRAIN"]["loss"].values[-1] == pytest.approx(seen[-1])
    np.testing.assert_array_equal(
        again.lines["TRAIN"]["loss"].steps, reader.charts.lines["TRAIN"]["loss"].steps
    )


def test_a_run_of_evaluations_alone_has_their_loss(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook:
        for step in range(3):
            with hook.step(modes.EVAL):
                hook.record("loss", 3.0 - step)
    kept = create_trial(str(tmp_path / "run")).series("loss")
    loss = training_loss(create_trial(str(tmp_path / "run")))
    np.testing.assert_array_equal(loss.values, kept.values)
    assert Glancer().at(str(tmp_path / "run")).loss == loss.last == kept.values[-1]


def test_a_loss_that_is_not_finite_is_the_last_and_not_the_lowest(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook:
        for value in (2.0, 1.0, float("nan")):
            with hook.step(modes.TRAIN):
                hook.record("loss", value)
    loss = training_loss(create_trial(str(tmp_path / "run")))
    assert np.isnan(loss.last)
    assert (loss.best, loss.best_step) == (1.0, 1)


def test_a_run_without_a_loss_has_none(tmp_path):
    with smdebug.Hook(tmp_path / "run") as hook, hook.step(modes.TRAIN):
        hook.record("a.bias", 0.5)
        hook.record("learning_rate", 0.1)
    assert training_loss(create_trial(str(tmp_path / "run"))) is None


@pytest.mark.parametrize(
    ("saved", "expected"),
    [(["text"], None), ([1 + 2j], None), ([[1.0, 2.0], [3.0, 6.0]], 3.0), ([True], 1.0)],
)
def test_a_saved_loss_is_a_number_or_the_mean_of_several(tmp_path, saved, expected):
    place = tmp_path / "run"
    with smdebug.Hook(place, include_collections=["losses"]) as hook, hook.step():
        hook.record("loss", np.array(saved))
    loss = training_loss(create_trial(str(place)))
    assert (loss and loss.last) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["CrossEntropyLoss_output_0", "loss"], ["loss", "CrossEntropyLoss_output_0"]),
        (["eval-logloss", "train-logloss"], ["train-logloss", "eval-logloss"]),
        (["loss_a", "val_loss"], ["loss_a", "val_loss"]),
        (["accuracy", "train-rmse", "test-rmse"], ["train-rmse", "test-rmse"]),
        (["gradient/loss.bias", "learning_rate/0/0", "loss.bias_norm"], ["loss.bias_norm"]),
        (["accuracy", "fc.bias"], []),
    ],
)
def test_the_most_likely_loss_comes_first(names, expected):
    assert likely_losses(names) == expected
