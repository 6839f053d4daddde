"""A run keeps where it comes from: command, versions, commit and hyperparameters."""

import json
import subprocess

import numpy as np
import pytest

import smdebug
from smdebug.exceptions import DamagedFile, SMDebugTypeError, SMDebugValueError
from smdebug.files.names import ORIGIN
from smdebug.files.notes.origin import MAX_BYTES, Origin
from smdebug.saving.place.origin_writing import GitState, git_state
from smdebug.trials import create_trial


def trained(place, steps=3, **options):
    with smdebug.Hook(str(place), **options) as hook:
        for _ in range(steps):
            with hook.step():
                hook.record("loss", np.float32(1))
    return hook


def test_a_run_keeps_its_configuration_tags_and_note(tmp_path):
    trained(
        tmp_path / "run",
        config={"lr": 0.1, "hub_token": "hf_secret"},
        tags=["baseline"],
        note="first",
    )
    origin = create_trial(str(tmp_path / "run")).origin
    assert origin.config == {"lr": 0.1, "hub_token": "***"}
    assert origin.tags == ("baseline",)
    assert origin.note == "first"
    assert origin.python
    assert origin.host
    assert origin.command
    assert origin.packages["numpy"] == np.__version__
    assert b"hf_secret" not in (tmp_path / "run" / ORIGIN).read_bytes()


def test_hyperparameters_can_be_added_before_and_while_it_trains(tmp_path):
    with smdebug.Hook(str(tmp_path / "run"), config={"lr": 0.1}) as hook:
        hook.add_config({"lr": 5, "layers": 2})
        for step in range(3):
            with hook.step():
                hook.record("loss", np.float32(1))
            hook.add_config({f"found_{step}": step})
    config = create_trial(str(tmp_path / "run")).origin.config
    assert config == {"lr": 0.1, "layers": 2, "found_0": 0, "found_1": 1, "found_2": 2}


def test_the_hyperparameters_of_a_job_are_kept_on_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("SM_HPS", json.dumps({"lr": 0.5}))
    trained(tmp_path / "run")
    assert create_trial(str(tmp_path / "run")).origin.config == {"lr": 0.5}


def test_a_dry_run_and_a_worker_that_is_not_the_first_write_none(tmp_path):
    trained(tmp_path / "run", dry_run=True)
    assert not (tmp_path / "run" / ORIGIN).exists()


@pytest.mark.parametrize("options", [{"config": "lr"}, {"tags": 3}, {"tags": [3]}, {"note": 3}])
def test_what_is_not_a_description_is_refused_at_once(tmp_path, options):
    with pytest.raises(SMDebugTypeError, match=next(iter(options))):
        smdebug.Hook(str(tmp_path / "run"), **options)


def test_a_run_without_an_origin_has_none(tmp_path):
    trained(tmp_path / "run")
    (tmp_path / "run" / ORIGIN).unlink()
    assert create_trial(str(tmp_path / "run")).origin is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * (MAX_BYTES + 1)])
def test_a_damaged_origin_is_named(tmp_path, content):
    trained(tmp_path / "run")
    (tmp_path / "run" / ORIGIN).write_bytes(content)
    trial = create_trial(str(tmp_path / "run"))
    with pytest.raises(DamagedFile, match=ORIGIN):
        _ = trial.origin


def test_entries_of_another_form_are_left_out():
    content = {
        "python": 3,
        "command": ["a", 1],
        "config": {"lr": {"a": 1}, "n": 1},
        "git": [],
        "tags": "x",
        "training_run": "1",
        "packages": {"torch": 2},
        "unknown": 1,
    }
    assert Origin.parse(json.dumps(content).encode()) == Origin(command=("a",), config={"n": 1})


def test_an_origin_survives_its_file():
    origin = Origin(
        run_id="r",
        training_run=2,
        started="s",
        command=("a",),
        python="3",
        platform="p",
        host="h",
        packages={"torch": "2"},
        commit="c",
        branch="b",
        dirty=True,
        config={"lr": 0.1, "x": [1, "é\ud800"]},
        tags=("t",),
        note="n",
        not_secret=("auth",),
    )
    assert Origin.parse(origin.encode()) == origin


def test_the_commit_of_a_repository_and_whether_it_was_changed(tmp_path):
    def git(*arguments):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    assert git_state(tmp_path) == GitState()
    git_state.cache_clear()
    git("init", "-b", "trunk")
    (tmp_path / "train.py").write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    clean = git_state(tmp_path)
    assert (len(clean.commit), clean.branch, clean.dirty) == (40, "trunk", False)
    git_state.cache_clear()
    (tmp_path / "train.py").write_text("2")
    assert git_state(tmp_path) == clean._replace(dirty=True)
    git_state.cache_clear()


def test_names_that_are_no_secrets_are_kept_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_NOT_SECRET", "auth, backup_key")
    settings = {"auth": "kappa-7x", "model": {"session_token": "Zx81-kappa9"}, "backup_key": "x9Qz7LpT2vWk"}
    trained(tmp_path / "run", config={**settings, "hub_token": "abc"}, not_secret=["session_token"])
    origin = create_trial(str(tmp_path / "run")).origin
    assert origin.config == {
        "auth": "kappa-7x",
        "model.session_token": "Zx81-kappa9",
        "backup_key": "x9Qz7LpT2vWk",
        "hub_token": "***",
    }
    assert set(origin.not_secret) == {"session_token", "auth", "backup_key"}


@pytest.mark.parametrize("way", ["option", "variable"])
def test_nothing_but_versions_is_kept_on_request(tmp_path, monkeypatch, way):
    described = {"config": {"lr": 0.1}, "tags": ["night"], "note": "first"}
    if way == "variable":
        monkeypatch.setenv("SMDEBUG_ORIGIN", "versions")
    else:
        described["origin"] = "versions"
    hook = trained(tmp_path / "run", **described)
    hook.add_config({"late": 1})
    content = json.loads((tmp_path / "run" / ORIGIN).read_text())
    assert content["packages"]["numpy"] == np.__version__
    kept = {name for name, value in content.items() if value not in ([], {}, "")}
    assert kept == {"version", "run_id", "training_run", "started", "python", "packages"}


def test_how_much_is_kept_must_be_a_word_that_is_known(tmp_path, monkeypatch):
    with pytest.raises(SMDebugValueError, match='"all" or "versions"'):
        smdebug.Hook(str(tmp_path / "run"), origin="version")
    with pytest.raises(SMDebugTypeError, match="not_secret"):
        smdebug.Hook(str(tmp_path / "run"), not_secret=3)
    monkeypatch.setenv("SMDEBUG_ORIGIN", "nothing")
    with pytest.raises(SMDebugValueError, match="SMDEBUG_ORIGIN"):
        smdebug.Hook(str(tmp_path / "run"))


def test_a_refused_description_is_not_shown(tmp_path):
    with pytest.raises(SMDebugTypeError) as raised:
        smdebug.Hook(str(tmp_path / "run"), tags=[3, "password=abc"])
    assert "abc" not in str(raised.value)
