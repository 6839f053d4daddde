"""What is left when the process ends without closing the hook."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import smdebug
from smdebug import SaveConfig, modes

hook = smdebug.Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
for step in range(3):
    hook.step(modes.TRAIN)
    hook.record("loss", float(step))
"""


def run(out_dir, ending, **env):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + ending, str(out_dir)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": os.environ["PATH"], **env},
        timeout=60,
    )


def saved(out_dir):
    return sorted(int(path.name[:12]) for path in (out_dir / "index").glob("*/*.json"))


def has_ended(out_dir):
    return (out_dir / "training_job_end.ts").exists()


def test_a_process_that_ends_well_ends_its_run(tmp_path):
    done = run(tmp_path, "")
    assert (done.returncode, saved(tmp_path), has_ended(tmp_path)) == (0, [0, 1, 2], True)
    assert not (tmp_path / "claim.smd").exists()


@pytest.mark.parametrize(
    "ending",
    ["sys.exit()", "sys.exit(0)", "try: sys.exit(3)\nexcept SystemExit as e: assert e.code == 3"],
)
def test_a_process_that_exits_with_success_ends_its_run(tmp_path, ending):
    done = run(tmp_path, ending)
    assert (done.returncode, has_ended(tmp_path)) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(1)", 1),
        ("sys.exit('out of memory')", 1),
        ("try: 1 / 0\nexcept ZeroDivisionError: sys.exit(7)", 7),
        ("def main(): return 5\nsys.exit(main())", 5),
    ],
)
def test_a_process_that_exits_with_an_error_does_not_end_its_run(tmp_path, ending, code):
    done = run(tmp_path, ending)
    assert (done.returncode, saved(tmp_path), has_ended(tmp_path)) == (code, [0, 1, 2], False)


def test_a_thread_that_exits_does_not_end_the_process(tmp_path):
    done = run(
        tmp_path,
        "import threading; t = threading.Thread(target=sys.exit, args=[4]); t.start(); t.join()",
    )
    assert (done.returncode, has_ended(tmp_path)) == (0, True)


def test_what_sys_exit_raises_is_called_as_ever(tmp_path):
    done = run(tmp_path, "try: sys.exit(4)\nexcept SystemExit as e: print(type(e).__name__, e)")
    assert "SystemExit 4" in done.stdout


def test_other_wrappers_of_sys_exit_still_see_the_call(tmp_path):
    wrapped = """
ours = sys.exit
def theirs(status=None):
    print("seen", status)
    ours(status)
sys.exit = theirs
hook.close()
sys.exit(2)
"""
    done = run(tmp_path, wrapped)
    assert (done.returncode, "seen 2" in done.stdout) == (2, True)


def test_sys_exit_is_as_it_was_once_no_hook_watches(tmp_path):
    script = """
import sys
before = sys.exit
from smdebug.saving.process.process_end import ProcessEnd

one, two = ProcessEnd(), ProcessEnd()
assert sys.exit is not before
try:
    sys.exit("why")
except SystemExit as left:
    assert (left.code, left.args) == ("why", ("why",))
    left.code = 4
    assert left.code == 4
one.leave()
one.leave()
assert sys.exit is not before
two.leave()
assert sys.exit is before
assert two.is_good()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("crash", ["1 / 0", "raise KeyboardInterrupt"])
def test_an_unhandled_exception_does_not_end_the_run(tmp_path, crash):
    done = run(tmp_path, crash)
    assert done.returncode != 0
    assert saved(tmp_path) == [0, 1, 2]
    assert not has_ended(tmp_path)


def test_an_exception_from_before_the_hook_does_not_count(tmp_path):
    done = run(
        tmp_path,
        "hook._end_of_run._process_end._error_before = sys.last_value = ValueError('an earlier cell')",
    )
    assert (done.returncode, has_ended(tmp_path)) == (0, True)


def test_a_killed_process_leaves_whole_steps_and_a_claim_that_blocks_no_other(tmp_path):
    run(tmp_path, "hook.step(); import os; hook.flush(); os._exit(9)")
    assert saved(tmp_path) == [0, 1, 2]
    assert (tmp_path / "claim.smd").exists()
    done = run(tmp_path, "")
    assert "attempt 1" in done.stdout
    assert has_ended(tmp_path)
    metas = [json.loads(path.read_text())["meta"] for path in (tmp_path / "index").glob("*/*.json")]
    assert {meta["training_run"] for meta in metas} == {1}


def test_a_forked_child_leaves_the_run_to_its_parent(tmp_path):
    fork = """
import os, warnings
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    hook.record("loss", 99.0)
    hook.close()
    sys.exit(0)
os.waitpid(child, 0)
hook.step(); hook.record("loss", 3.0)
"""
    done = run(tmp_path, fork)
    assert done.returncode == 0, done.stderr
    assert saved(tmp_path) == [0, 1, 2, 3]
    assert has_ended(tmp_path)


def test_a_hook_without_steps_leaves_no_files(tmp_path):
    script = "import sys, smdebug; smdebug.Hook(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run")],
        check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
    )
    assert not (tmp_path / "run").exists()


STOPPED = """
from pathlib import Path
hook.close()
hook = smdebug.Hook(
    sys.argv[1] + "/stopped", save_config=SaveConfig(save_interval=1), look_for_stop=0
)
{before}
def train():
    for step in range(100_000):
        with hook.step():
            hook.record("loss", 1.0)
        if step == 1:
            hook.flush()
            (Path(sys.argv[1]) / "stopped/control").mkdir()
            (Path(sys.argv[1]) / "stopped/control/stop").write_text("seen enough")
{train}
"""


@pytest.mark.parametrize(
    ("before", "train", "printed", "is_shown", "is_end"),
    [
        ("", "train()", "seen enough. The script does not catch TrainingStopped", False, True),
        # what the user's own code did is never hidden
        ("", "try: 1 / 0\nexcept ZeroDivisionError: train()", "ZeroDivisionError", True, True),
        (
            "",
            "try: train()\nexcept Exception as error: raise ValueError('mine') from error",
            "ValueError: mine",
            True,
            False,
        ),
        ("", "try: train()\nexcept Exception: pass\n1 / 0", "ZeroDivisionError", True, False),
        # nor is another's hook replaced
        (
            "sys.excepthook = lambda *error: print('theirs', file=sys.stderr)",
            "train()",
            "theirs",
            False,
            True,
        ),
    ],
)
def test_an_uncaught_stop_ends_the_script_with_a_line(tmp_path, before, train, printed, is_shown, is_end):
    done = run(tmp_path, STOPPED.format(before=before, train=train))
    assert done.returncode == 1, done.stderr
    assert printed in done.stderr
    assert ("Traceback" in done.stderr) == is_shown
    assert has_ended(tmp_path / "stopped") == is_end
