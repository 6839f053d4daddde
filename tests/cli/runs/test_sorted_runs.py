"""The order, the best and the columns of a list of runs."""

from __future__ import annotations

import numpy as np
import pytest

import smdebug


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of the default plan with what they logged, and one of chosen tensors."""
    place = tmp_path_factory.mktemp("sweep")
    for number, rate in enumerate((0.1, 0.01, 0.001)):
        with smdebug.Hook(str(place / f"run{number}"), config={"lr": rate, "layers": 2}) as hook:
            for step in range(8):
                with hook.step():
                    hook.record_all({"loss": 1 / (1 + step) + rate, "learning_rate": rate})
                hook.log(accuracy=step / 10 - rate)
    choice = {"include_collections": ["losses"], "save_config": smdebug.SaveConfig(save_interval=1)}
    with smdebug.Hook(str(place / "old"), config={"lr": 1, "layers": 2}, **choice) as hook:
        for _ in range(3):
            with hook.step():
                hook.record("loss", 1.0)
            hook.log({"val/acc": 0.5})
    return place


def names(answer):
    return [run["name"] for run in answer.json]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("loss", ["run2", "run1", "run0", "old"]),
        ("-loss", ["old", "run0", "run1", "run2"]),
        ("lr", ["run2", "run1", "run0", "old"]),
        ("-accuracy", ["run2", "run1", "run0", "old"]),
        ("accuracy", ["run0", "run1", "run2", "old"]),
        ("val/acc", ["old", "run0", "run1", "run2"]),
        ("-steps", ["run0", "run1", "run2", "old"]),
        ("name", ["old", "run0", "run1", "run2"]),
    ],
)
def test_runs_are_in_the_order_that_is_asked_for_and_those_without_the_value_last(ask, runs, order, expected):
    assert names(ask("runs", runs, f"--sort={order}", "--json")) == expected


def test_the_best_run_has_the_lowest_loss_or_the_first_place_of_the_order(ask, runs):
    assert names(ask("runs", runs, "--best", "--json")) == ["run2"]
    assert names(ask("runs", runs, "--best", "--sort=-lr", "--json")) == ["old"]
    assert names(ask("runs", runs, "--best", "--where", "lr>=0.1", "--json")) == ["run0"]
    assert ask("runs", runs, "--best", "--where", "lr>7").out == "No run matches.\n"


def test_what_was_logged_is_a_column_and_can_be_searched(ask, runs):
    head, *lines = ask("runs", runs).out.splitlines()
    assert head.split()[5:] == ["lr", "val/acc", "accuracy", "learning_rate"]
    assert lines[3].split()[-2:] == ["0.699", "0.001"]
    assert lines[0].split()[-2:] == ["–", "–"]
    assert names(ask("runs", runs, "--where", "accuracy>0.65", "--json")) == ["run1", "run2"]
    assert names(ask("runs", runs, "--where", "learning_rate<0.05", "--json")) == ["run1", "run2"]
    assert ask("runs", runs, "--json").json[1]["metrics"] == {"accuracy": 0.6, "learning_rate": 0.1}


def test_columns_are_those_that_are_asked_for(ask, runs):
    head, *lines = ask("runs", runs, "--columns", "layers, accuracy,host", "--sort", "lr").out.splitlines()
    assert head.split() == ["run", "state", "step", "loss", "saved", "layers", "accuracy", "host"]
    assert lines[0].split()[0] == "run2"


def rate_of(place, name, rates, **config):
    with smdebug.Hook(str(place / name), config=config) as hook:
        for rate in rates:
            with hook.step():
                hook.record_all({"loss": 1.0, "learning_rate": rate})


def test_the_measured_learning_rate_is_the_lr_of_a_run_that_names_none(ask, tmp_path):
    rate_of(tmp_path, "measured", [float(np.float32(1e-3))] * 3)
    rate_of(tmp_path, "configured", [1e-2] * 3, lr=1e-2, seed=16777217)
    assert names(ask("runs", tmp_path, "--where", "lr=1e-3", "--json")) == ["measured"]
    assert names(ask("runs", tmp_path, "--where", "learning_rate=0.01", "--json")) == ["configured"]
    assert names(ask("runs", tmp_path, "--where", "seed=16777216", "--json")) == []
    _, *lines = ask("runs", tmp_path, "--columns", "lr").out.splitlines()
    assert [line.split()[-1] for line in lines[:2]] == ["0.01", "0.001"]


def test_a_configured_rate_that_the_optimizer_does_not_use_is_said(ask, tmp_path):
    rate_of(tmp_path, "wrong", [1e-3] * 3, optimizer={"lr": "3e-4"}, batch=2)
    rate_of(tmp_path, "same", [3e-4] * 3, lr=3e-4)
    rate_of(tmp_path, "warming-up", [1e-5, 2e-5, 3e-5], lr=3e-4)
    rate_of(tmp_path, "unnamed", [1e-3] * 3)
    said = "The configuration says optimizer.lr 0.0003, but the optimizer uses 0.001"
    assert [run["differs"] for run in ask("runs", tmp_path, "--json").json] == ["", "", "", said]
    assert f"\nwrong: {said}\n" in ask("runs", tmp_path).out
    assert f"\ndiffers: {said}\n" in ask("inspect", tmp_path / "wrong").out
    assert "differs" not in ask("inspect", tmp_path / "same").out


def test_the_step_is_the_last_one_of_the_training(ask, tmp_path):
    with smdebug.Hook(str(tmp_path / "long")) as hook:
        for _ in range(40):
            with hook.step():
                hook.record("loss", 1.0)
    head, line, _ = ask("runs", tmp_path).out.splitlines()
    assert (head.split()[2], line.split()[2]) == ("step", "39")


@pytest.mark.parametrize("option", ["--sort=acuracy", "--columns=lr,acuracy"])
def test_a_name_that_no_run_has_is_refused_with_the_nearest(ask, runs, option):
    answer = ask("runs", runs, option)
    assert (answer.code, "Did you mean accuracy?" in answer.err) == (2, True)


def test_an_order_needs_a_place(ask):
    answer = ask("runs", "--best")
    assert (answer.code, "need a PLACE" in answer.err) == (2, True)


def test_each_run_has_its_last_good_checkpoint(ask, tmp_path):
    for name, fails_at, marked in (
        ("fine", 9, (2, 5)),
        ("fails", 4, (2, 5)),
        ("early", 0, (2,)),
        ("none", 4, ()),
    ):
        with smdebug.Hook(str(tmp_path / "runs" / name)) as hook:
            for step in range(7):
                with hook.step():
                    hook.record("loss", 1 / (1 + step) if step < fails_at else float("nan"))
                if step in marked:
                    hook.mark_checkpoint(f"/out/{step}.pt")
    found = {
        run["name"]: run["last_good"] for run in ask("runs", tmp_path / "runs", "--last-good", "--json").json
    }
    paths = {name: good and good["path"] for name, good in found.items()}
    assert paths == {"fine": "/out/5.pt", "fails": "/out/2.pt", "early": None, "none": None}
    lines = ask("runs", tmp_path / "runs", "--last-good").out.splitlines()
    assert lines[0].endswith("last good checkpoint")
    (fails,) = [line for line in lines if line.startswith("fails")]
    assert fails.endswith("/out/2.pt (step 2)")
    assert ask("runs", "--last-good").code == 2
