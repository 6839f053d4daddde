"""A place that holds a finished run: the next name, the same run continued, or a new one instead of it."""

from __future__ import annotations

import pytest

import smdebug
from smdebug.exceptions import RunEnded, SMDebugValueError
from smdebug.saving.place.finished import CHOICES, place_for_another_run
from smdebug.storage import open_storage
from smdebug.trials import create_trial
from tests.saving.saved_files import has_ended
from tests.support.mocked_aws import mocked_aws


def save(place, steps=2, value=1.0):
    with smdebug.Hook(str(place), save_config=smdebug.SaveConfig(save_interval=1), rules=["usual"]) as hook:
        for _ in range(steps):
            with hook.step():
                hook.record("loss", value)


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    """A place with a finished run, in a folder and on S3."""
    if request.param == "folder":
        save(tmp_path / "run")
        yield str(tmp_path / "run")
        return
    with mocked_aws():
        import boto3

        boto3.client("s3").create_bucket(Bucket="bucket")
        save("s3://bucket/run")
        yield "s3://bucket/run"


def test_the_next_name_is_free_and_said_in_one_line(place, capsys):
    assert place_for_another_run(place) == f"{place}-2"
    assert capsys.readouterr().out.count(f"{place} holds a finished run: this one is saved to {place}-2") == 1
    save(f"{place}-2", steps=1)
    assert place_for_another_run(place) == f"{place}-3"
    assert len(create_trial(place).steps()) == 2, "the finished run is as it was"


def test_a_place_without_a_finished_run_is_taken_as_it_is(place):
    assert place_for_another_run(f"{place}/other") == f"{place}/other"
    open_storage(place).delete("training_job_end.ts")
    assert place_for_another_run(place) == place, "an unfinished run is continued"


def test_several_processes_meet_at_one_place(place, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert place_for_another_run(place) == f"{place}-2"
    open_storage(f"{place}-2").write("claim.smd", b"")  # the first process has begun
    assert place_for_another_run(place) == f"{place}-2"
    for choice in ("resume", "overwrite"):
        with pytest.raises(SMDebugValueError, match="several processes are about to save there"):
            place_for_another_run(place, choice)


def test_a_run_that_is_overwritten_leaves_what_is_not_of_it(place):
    storage = open_storage(place)
    storage.write("notes.txt", b"mine")
    storage.write("model/weights.bin", b"mine")
    assert place_for_another_run(place, "overwrite") == place
    assert sorted(storage.list("")) == ["model/weights.bin", "notes.txt"]
    save(place, steps=1, value=7.0)
    assert create_trial(place).tensor("loss").value(0) == 7.0
    assert create_trial(place).steps() == [0]


def test_a_run_that_is_resumed_is_continued_as_another_attempt(place):
    assert place_for_another_run(place, "resume") == place
    save(place, steps=3, value=7.0)
    trial = create_trial(place)
    assert [trial.tensor("loss").value(step).item() for step in trial.steps()] == [7.0, 7.0, 7.0]


def test_a_run_may_be_refused_and_no_other_choice_exists(place):
    with pytest.raises(RunEnded, match="holds a finished run"):
        place_for_another_run(place, "refuse")
    with pytest.raises(
        SMDebugValueError, match="if_finished is one of next, refuse, resume, overwrite, not 'x'"
    ):
        place_for_another_run(place, "x")
    assert CHOICES[0] == "next"


def test_start_takes_the_next_name(tmp_path):
    save(tmp_path / "run")
    with smdebug.start(tmp_path / "run") as watched:
        assert watched.out_dir == str(tmp_path / "run-2")
    with smdebug.start(tmp_path / "run", if_finished="overwrite") as watched:
        assert watched.out_dir == str(tmp_path / "run")
    with pytest.raises(SMDebugValueError):
        smdebug.start(tmp_path / "run", if_finished="again")


@pytest.mark.parametrize("if_finished", ["next", "resume", "overwrite"])
def test_a_later_training_of_the_process_leaves_the_finished_run_that_it_finds(tmp_path, if_finished):
    save(tmp_path / "run-2")  # as another script may have done
    with smdebug.start(tmp_path / "run", if_finished=if_finished) as watched:
        watched.make_hook(smdebug.Hook)
        watched.make_hook(smdebug.Hook)
    assert watched.runs == [str(tmp_path / "run"), str(tmp_path / "run-2-2")]
    assert create_trial(str(tmp_path / "run-2")).steps() == [0, 1]
    assert has_ended(tmp_path / "run-2")


def test_a_later_training_is_refused_where_the_first_one_would_be(tmp_path):
    save(tmp_path / "run-2")
    with smdebug.start(tmp_path / "run", if_finished="refuse") as watched:
        watched.make_hook(smdebug.Hook)
        with pytest.raises(RunEnded, match="run-2 holds a finished run"):
            watched.make_hook(smdebug.Hook)
