"""A process that gets SIGTERM writes what waits, and ends as it would have ended."""

import os
import signal
import subprocess
import sys

import pytest

from smdebug.trials import create_trial

SCRIPT = """
import os, signal, sys, threading, time
from types import SimpleNamespace
import smdebug

def train(hook, steps=14):
    for step in range(steps):
        hook.step(smdebug.modes.TRAIN)
        hook.record("loss", float(step))

def handler():
    return signal.getsignal(signal.SIGTERM)

def terminate():
    os.kill(os.getpid(), signal.SIGTERM)

hook = smdebug.Hook(sys.argv[1])
"""


def run(place, ending):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT + ending, str(place)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": os.environ["PATH"]},
        timeout=60,
    )


def losses(place):
    return [int(value) for value in create_trial(str(place)).series("loss").values]


def has_ended(place):
    return (place / "training_job_end.ts").exists()


def test_the_losses_since_the_last_saved_step_are_written(tmp_path):
    done = run(tmp_path, "train(hook); terminate(); print('never')")
    assert done.returncode == -signal.SIGTERM
    assert "never" not in done.stdout
    assert "Saved 12 of 14 steps" in done.stdout
    assert losses(tmp_path) == list(range(14))
    assert not has_ended(tmp_path)
    assert create_trial(str(tmp_path)).state == "failed"
    assert not (tmp_path / "claim.smd").exists()


def test_a_handler_of_the_script_stays(tmp_path):
    ending = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
train(hook); terminate()
"""
    done = run(tmp_path, ending)
    assert done.returncode == 5
    assert losses(tmp_path) == list(range(14))  # an exit closes the run


@pytest.mark.parametrize("options", ["", ", include_collections=['losses']"])
def test_the_default_is_there_again_afterwards_and_for_hooks_of_another_plan(tmp_path, options):
    done = run(
        tmp_path,
        f"""
hook = smdebug.Hook(sys.argv[1] + "/b"{options})
assert handler() is signal.SIG_DFL
train(hook)
assert (handler() is signal.SIG_DFL) is {bool(options)}
hook.close()
assert handler() is signal.SIG_DFL
""",
    )
    assert done.returncode == 0, done.stderr


def test_all_open_runs_are_ended(tmp_path):
    done = run(
        tmp_path,
        """
other = smdebug.Hook(sys.argv[1] + "/b")
train(hook); train(other, 5)
other.close()
other = smdebug.Hook(sys.argv[1] + "/c")
train(other)
terminate()
""",
    )
    assert done.returncode == -signal.SIGTERM
    assert losses(tmp_path) == losses(tmp_path / "c") == list(range(14))
    assert [has_ended(tmp_path / run) for run in (".", "b", "c")] == [False, True, False]


NATIVE = """
import ctypes
from smdebug.saving.ending import termination
termination.RESPONSE_SECONDS = 0.2

mutex = ctypes.create_string_buffer(256)

def wait_in_native_code():
    # A mutex that is locked twice: a wait that no signal interrupts, as that for a rank which is gone.
    lock = ctypes.CDLL(None).pthread_mutex_lock
    threading.Timer(0.1, terminate).start()
    while True:
        lock(mutex)
"""


def test_a_training_that_waits_in_native_code_is_closed_and_ended(tmp_path):
    done = run(tmp_path, NATIVE + "train(hook); wait_in_native_code()")
    assert done.returncode == -signal.SIGTERM
    assert "Saved 12 of 14 steps" in done.stdout
    assert losses(tmp_path) == list(range(14))
    assert not has_ended(tmp_path)


def test_a_training_that_goes_on_while_its_run_is_closed_waits_for_that(tmp_path):
    ending = """
train(hook)
unlock = ctypes.CDLL(None).pthread_mutex_unlock
background = hook.recorder.run.writer.background
submit = background.submit

def submit_slowly(job):
    background.submit = submit
    unlock(mutex)
    time.sleep(0.5)  # a training that did not wait would have ended the process
    return submit(job)

background.submit = submit_slowly
wait_in_native_code()
"""
    done = run(tmp_path, NATIVE + ending)
    assert done.returncode == -signal.SIGTERM
    assert losses(tmp_path) == list(range(14))


HANGING = """
reached = threading.Event()
def hangs():
    reached.set()
    threading.Event().wait()

class Closing(threading.Thread):
    def join(self, timeout=None):
        reached.wait()  # its time begins once the run is closed, however long that takes here
        super().join(timeout)

termination.CLOSING_SECONDS = 0.2
termination.threading = SimpleNamespace(Thread=Closing)
termination.time = SimpleNamespace(sleep=lambda seconds: reached.wait())
train(hook)
termination.before_termination(hangs)
"""


@pytest.mark.parametrize("waits", ["wait_in_native_code()", "terminate()"])
def test_a_run_that_cannot_be_closed_keeps_no_process_alive(tmp_path, waits):
    done = run(tmp_path, NATIVE + HANGING + waits)
    assert done.returncode == -signal.SIGTERM
    assert losses(tmp_path) == list(range(14))


def test_a_later_handler_of_the_script_may_take_its_time(tmp_path):
    ending = """
train(hook)
def handle(*_):
    while not heard.wait(1.0):  # longer than the training has to respond
        pass
    sys.exit(5)
heard = threading.Event()
signal.signal(signal.SIGTERM, handle)
threading.Timer(0.5, heard.set).start()
terminate()
"""
    done = run(tmp_path, NATIVE + ending)
    assert done.returncode == 5
    assert losses(tmp_path) == list(range(14))


def test_an_event_loop_keeps_hearing_of_signals(tmp_path):
    ending = """
import asyncio
async def main(hook):
    heard = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, heard.set)
    train(hook)
    os.kill(os.getpid(), signal.SIGUSR1)
    await heard.wait()
    hook.close()
    asyncio.get_running_loop().call_soon(terminate)
    await asyncio.Event().wait()
train(smdebug.Hook(sys.argv[1] + "/first"))
asyncio.run(main(hook))
"""
    done = run(tmp_path, ending)
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert losses(tmp_path) == list(range(14))
    assert has_ended(tmp_path)


def test_a_signal_of_a_child_is_not_taken_for_the_parents(tmp_path):
    ending = """
train(hook)
signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
child = os.fork()
if child == 0:
    terminate()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert signal.set_wakeup_fd(-1) != -1  # here it is watched
if os.fork() == 0:
    os._exit(int(signal.set_wakeup_fd(-1) != -1))
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
    done = run(tmp_path, ending)
    assert done.returncode == 0, done.stderr
    assert has_ended(tmp_path)


def test_a_terminated_child_leaves_the_run_to_its_parent(tmp_path):
    ending = """
train(hook)
child = os.fork()
if child == 0:
    assert handler() is signal.SIG_DFL
    terminate()
assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
hook.step(smdebug.modes.TRAIN); hook.record("loss", 14.0)
"""
    done = run(tmp_path, ending)
    assert done.returncode == 0, done.stderr
    assert losses(tmp_path) == list(range(15))
    assert has_ended(tmp_path)


def test_a_training_in_a_thread_continues_without(tmp_path):
    ending = """
training = threading.Thread(target=train, args=(hook,)); training.start(); training.join()
assert handler() is signal.SIG_DFL
"""
    done = run(tmp_path, ending)
    assert done.returncode == 0, done.stderr
    assert losses(tmp_path) == list(range(14))
