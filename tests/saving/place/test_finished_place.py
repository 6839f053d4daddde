"""A script that saves to a place with a finished run ends with a message, and its error can be caught."""

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import smdebug
from smdebug.exceptions import RunEnded

START = 'smdebug.start("run", if_finished="refuse")'
HOOK = 'smdebug.Hook("run")'
ANOTHER = 'hook = smdebug.Hook("other")\nwith hook.step(): hook.record("loss", 1.0)'


@pytest.fixture
def finished(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    smdebug.Hook("run").close()
    return tmp_path


def python(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess:
    (folder / "train.py").write_text(f"import smdebug\n{source}\n")
    return subprocess.run(
        [sys.executable, *options, "train.py"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("call", [START, HOOK])
def test_a_script_ends_with_the_message_instead_of_a_traceback(finished, call):
    done = python(finished, call)
    assert done.returncode == 1
    assert done.stderr == (
        f"smdebug: {finished / 'run'} holds a finished run, which is never overwritten. Save to another "
        f"place, for example {finished / 'run-2'}, or remove the finished run first.\n"
    )


def test_the_place_that_the_message_suggests_is_free(finished):
    (finished / "run-2").mkdir()
    with pytest.raises(RunEnded, match=r"for example .*run-3,"):
        smdebug.start("run", if_finished="refuse")


@pytest.mark.parametrize("kind", ["RunEnded", "RuntimeError", "Exception"])
def test_a_script_can_catch_it(finished, kind):
    caught = f"from smdebug.exceptions import RunEnded\ntry: {START}\nexcept {kind}: print('caught')"
    assert python(finished, caught).stdout == "caught\n"


def test_a_script_that_ends_so_leaves_its_other_run_unfinished(finished):
    assert python(finished, f"{ANOTHER}\n{HOOK}").returncode == 1
    assert (finished / "other" / "index").is_dir()
    assert not (finished / "other" / "training_job_end.ts").exists()


def test_a_caught_error_does_not_leave_another_run_unfinished(finished):
    caught = f"{ANOTHER}\ntry: {HOOK}\nexcept RuntimeError: pass"
    assert python(finished, caught).returncode == 0
    assert (finished / "other" / "training_job_end.ts").exists()


def test_a_prompt_is_not_left(finished):
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        input=f"import smdebug\n{START}\nprint('still here')\n",
        cwd=finished,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "still here\n"
    assert "RunEnded: " in done.stderr


def test_a_thread_does_not_end_without_a_word(finished):
    errors = []

    def train():
        try:
            smdebug.Hook("run")
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert not isinstance(errors[0], SystemExit)


def test_it_survives_pickling(finished):
    with pytest.raises(RunEnded) as raised:
        smdebug.Hook("run")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.free_place) == (str(raised.value), str(finished / "run-2"))
