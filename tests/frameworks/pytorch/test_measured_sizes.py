"""What the list of runs knows of a training that configures nothing."""

import torch
from torch import nn

import smdebug
from smdebug.reports import gather
from smdebug.runs.listing import listed_run
from smdebug.trials import create_trial


def trained(place, *, batch=16, passes=1, stray=False):
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with smdebug.start(place):
        for _ in range(12):
            for _ in range(passes):
                model(torch.randn(batch, 8)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if stray:
            model(torch.randn(1, 8))
    return listed_run(str(place), "run")


def test_parameters_batch_size_and_pace_are_recorded_by_themselves(tmp_path):
    run = trained(tmp_path / "run")
    assert (run.sizes["parameters"], run.sizes["batch_size"]) == (8 * 4 + 4 + 4 + 1, 16)
    assert run.sizes["samples_per_second"] > 0
    assert run.facts()["batch_size"] == 16


def test_the_page_says_them_about_the_run(tmp_path):
    trained(tmp_path / "run")
    answers = gather(create_trial(tmp_path / "run")).answers
    (about,) = [answer for key, answer in answers.items() if key.endswith("/about")]
    facts = dict(about["facts"])
    assert (facts["Parameters"], facts["Batch size"]) == ("41", "16")
    assert "Samples a second" in facts
    assert "Tokens a second" not in facts


def test_a_pace_that_is_not_known_is_left_out(tmp_path):
    run = trained(tmp_path / "run", passes=2)
    assert set(run.sizes) == {"parameters", "batch_size"}


def test_a_call_of_the_model_after_the_training_is_no_batch(tmp_path):
    assert trained(tmp_path / "run", stray=True).sizes["batch_size"] == 16


def test_what_is_configured_counts_more(tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), config={"batch_size": 64}) as hook, hook.step():
        hook.record("loss", 1.0)
    run = listed_run(str(tmp_path / "run"), "run")
    assert (dict(run.sizes), run.facts()["batch_size"]) == ({}, 64)
