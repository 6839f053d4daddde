"""Output files: places that cannot be written to, and `smdebug report`'s options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest


def test_a_folder_is_not_a_place_for_a_file_and_a_name_need_not_be_text(ask, failing, tmp_path):
    for words in (("report", failing), ("export", "npz", failing)):
        answer = ask(*words, "-o", tmp_path)
        assert (answer.code, f"{tmp_path}: Is a directory" in answer.err) == (3, True)
        assert "add a file name" in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["failing"]
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        shutil.copytree(failing, odd)
    except OSError:
        return  # a file system whose names are text
    assert ask("report", odd, "--rule", "usual", "-o", tmp_path / "page.html").code == 1


def test_a_folder_that_does_not_exist_is_not_made_for_an_output(ask, failing, tmp_path):
    there = tmp_path / "missing" / "folder"
    for words, name in (
        (("report", failing), "page.html"),
        (("export", "npz", failing), "run.npz"),
        (("plot", failing, "--tensor", "loss"), "loss.png"),
    ):
        answer = ask(*words, "-o", there / name)
        assert (answer.code, f"mkdir -p {there}" in answer.err) == (2, True), words
    assert not (tmp_path / "missing").exists()


def test_reading_a_run_that_does_not_exist_makes_no_folder(ask, tmp_path):
    missing = tmp_path / "missing"
    for words in (
        ("inspect", missing),
        ("evaluate", missing, "--rule", "AllZero"),
        ("report", missing),
        ("verify", missing),
        ("tensor", missing, "loss"),
        ("compare", missing, missing),
        ("plot", missing, "--tensor", "loss", "-o", tmp_path / "loss.png"),
        ("stop", missing),
    ):
        assert ask(*words).code in (2, 3), words
    assert not missing.exists()


def test_a_report_without_rules_that_names_one_is_refused(ask, failing, tmp_path):
    answer = ask("report", failing, "--no-rules", "--rule", "AllZero", "-o", tmp_path / "page.html")
    assert (answer.code, "--no-rules" in answer.err) == (2, True)


def test_a_report_refuses_a_missing_other_run_before_rules_are_evaluated(ask, failing, tmp_path, monkeypatch):
    from smdebug.reports import writing

    monkeypatch.setattr(writing, "evaluated", lambda *_, **__: pytest.fail("too early"))
    answer = ask("report", failing, "--compare", tmp_path / "none", "-o", tmp_path / "page.html")
    assert (answer.code, "There is no run" in answer.err) == (3, True)


@pytest.fixture
def mere_owner():
    """Drop root's right to read and write everything, so that the process is an ordinary user."""
    if os.geteuid() != 0:
        return lambda *words: words
    drop = shutil.which("setpriv")
    if drop is None:
        pytest.skip("root may read and write everything")
    rights = "-dac_override,-dac_read_search"
    return lambda *words: (drop, "--bounding-set", rights, "--inh-caps", rights, *words)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("report", "{}/failing", "-o"), "page.html"),
        (("export", "npz", "{}/failing", "-o"), "x.npz"),
        (("export", "safetensors", "{}/failing", "-o"), "x.safetensors"),
        (("export", "parquet", "{}/failing", "-o"), "x.parquet"),
        (("export", "tensorboard", "{}/failing", "-o"), "board"),
        (("plot", "{}/failing", "--tensor", "loss", "-o"), "x.png"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_reported_as_it_was_named(
    failing, tmp_path, mere_owner, words, place
):
    sealed = tmp_path / "sealed"
    sealed.mkdir(mode=0o555)
    named = [word.format(tmp_path) for word in words]
    command = (sys.executable, "-m", "smdebug", *named, str(sealed / place))
    result = subprocess.run(
        mere_owner(*command),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 3
    assert result.stderr.startswith(f"error: {sealed / place}")
    assert ".tmp" not in result.stderr
