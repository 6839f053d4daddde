"""The README's example and glossary, with the names that need no framework."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import smdebug
from smdebug.trials import create_trial
from tests.seeds.blocks import Story, runs


@pytest.fixture
def smd():
    """The names of `import smdebug.<framework> as smd` that all frameworks share."""
    return SimpleNamespace(
        Hook=smdebug.Hook,
        ReductionConfig=smdebug.ReductionConfig,
        SaveConfig=smdebug.SaveConfig,
        create_trial=create_trial,
        modes=smdebug.modes,
    )


@runs("004-05", "004-11")
def test_the_run_is_read_afterwards(smd, run_path, capsys):
    story = Story(smd=smd, args=SimpleNamespace(out_dir=run_path), out_dir=run_path)
    story.run("004-05")
    printed = capsys.readouterr().out
    assert "Saved tensor values for ['CrossEntropyLoss:0', " in printed
    assert "Loss values were " in printed
    story.run("004-11")
    assert len(story["trial"].steps()) == 110


@runs("004-06", "004-07", "004-08", "004-09", "004-10")
def test_the_terms_of_the_glossary_are_names(smd, tmp_path):
    story = Story(smd=smd, out_dir=str(tmp_path / "mnist_job"))
    story.run("004-06", "004-07", "004-08", "004-09", "004-10")
    assert story["train_mode"] is smdebug.modes.TRAIN
    assert story["collection"].name == "losses"
    assert story["save_config"].should_save_step(smdebug.modes.TRAIN, 20)
    assert not story["save_config"].should_save_step(smdebug.modes.TRAIN, 21)
    assert story["reduction_config"].reductions == ["min", "max", "mean"]
    assert story["reduction_config"].norms == ["l1"]
    story["hook"].close()
