"""A training that is asked to stop stops, with everything written; nothing else ever stops it."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import smdebug
from smdebug import SaveConfig
from smdebug.exceptions import (
    AccessDenied,
    SMDebugValueError,
    StorageUnavailable,
    TrainingStopped,
)
from smdebug.files.names import END_MARKER
from smdebug.saving.hooks import singleton
from smdebug.saving.hooks.error_agent import ErrorHandlingAgent
from smdebug.saving.requests.control import NO_REASON, STOP_KEY, ControlObject, StopRequest
from smdebug.storage.folder import FolderStorage
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from tests.saving.stop_requests import ATTEMPT, ask

EVERY_STEP = SaveConfig(save_interval=1)


class Watched(MemoryStorage):
    """A place that records when the control object is read, and may fail then."""

    def __init__(self, error=None):
        super().__init__()
        self.looks = 0
        self.error = error

    def read(self, key, span=None):
        if key == STOP_KEY:
            self.looks += 1
            if self.error is not None:
                raise self.error
        return super().read(key, span)


def hook_at(storage, *, save_config=EVERY_STEP, look_for_stop=0, **settings):
    return smdebug.Hook(storage, save_config=save_config, look_for_stop=look_for_stop, **settings)


def train(hook, steps=10, at=None):
    """Train; `at` is called within the step of its number. Return the number of steps, and why it stopped."""
    ran = 0
    try:
        with hook:
            for step in range(steps):
                with hook.step():
                    hook.record("loss", 1.0)
                    if at and step in at:
                        at[step]()
                ran += 1
    except TrainingStopped as stopped:
        return ran, stopped
    return ran, None


def saved_steps(storage):
    return [int(key.split("/")[-1][:12]) for key in storage.list("index/")]


def test_a_training_requested_to_stop_stops_after_the_step_with_everything_written():
    storage = MemoryStorage()
    hook = hook_at(storage)
    ran, stopped = train(hook, at={3: lambda: ask(storage, reason="it vanishes", finding_id="f1")})
    assert ran == 4
    assert (stopped.reason, stopped.step, stopped.finding_id) == ("it vanishes", 3, "f1")
    assert str(stopped) == "Training stopped as requested after step 3: it vanishes"
    assert saved_steps(storage) == [0, 1, 2, 3]
    assert storage.exists(END_MARKER)
    assert create_trial(storage).loaded_all_steps


def test_everything_is_written_before_the_exception_is_seen():
    storage = MemoryStorage()
    hook = hook_at(storage)
    for _ in range(3):
        with hook.step():
            hook.record("loss", 1.0)
    ask(storage)
    with pytest.raises(TrainingStopped):
        hook.step()
    assert saved_steps(storage) == [0, 1, 2]
    assert not storage.exists(END_MARKER)
    hook.close()


def test_the_training_continues_to_the_named_step():
    storage = MemoryStorage()
    hook = hook_at(storage)
    ran, stopped = train(hook, at={2: lambda: ask(storage, reason="later", stop_at_step=6)})
    assert (ran, stopped.step) == (7, 6)


def test_a_request_for_a_past_step_stops_at_once():
    storage = MemoryStorage()
    ran, _ = train(hook_at(storage), at={5: lambda: ask(storage, stop_at_step=1)})
    assert ran == 6


def test_the_hook_reports_a_request_before_the_next_step_begins():
    storage = MemoryStorage()
    hook = hook_at(storage)
    seen = []
    train(hook, at={n: lambda: seen.append(hook.stop_requested) for n in (0, 3)}, steps=3)
    assert seen == [None]
    hook = hook_at(MemoryStorage(), look_for_stop=None)
    assert hook.stop_requested is None
    hook.close()


def test_a_request_for_a_later_step_can_be_seen_until_then():
    storage = MemoryStorage()
    hook = hook_at(storage)
    requests = []
    train(
        hook,
        at={
            1: lambda: ask(storage, reason="r", stop_at_step=4),
            3: lambda: requests.append(hook.stop_requested),
        },
    )
    assert requests == [StopRequest("r", stop_at_step=4)]


def test_a_local_folder_is_checked_like_a_bucket(tmp_path):
    def touch():
        (tmp_path / "run" / "control").mkdir()
        (tmp_path / "run" / "control" / "stop").touch()

    ran, stopped = train(hook_at(tmp_path / "run"), at={1: touch})
    assert (ran, stopped.reason) == (2, NO_REASON)


def test_the_callback_is_called_after_the_writing_and_before_the_exception():
    class Slow(MemoryStorage):
        def create(self, key):
            time.sleep(0.05)
            return super().create(key)

    storage = Slow()
    seen = []
    hook = hook_at(storage, on_stop=lambda stopped: seen.append((stopped, saved_steps(storage))))
    _, stopped = train(hook, at={1: lambda: ask(storage)})
    assert seen == [(stopped, [0, 1])]


def test_a_callback_that_fails_does_not_keep_the_training_going(capsys):
    storage = MemoryStorage()

    def fail(stopped):
        raise RuntimeError("no room for a checkpoint")

    ran, stopped = train(hook_at(storage, on_stop=fail), at={1: lambda: ask(storage)})
    assert (ran, stopped.step) == (2, 1)
    assert "no room for a checkpoint" in capsys.readouterr().out


def test_a_training_that_catches_the_exception_is_not_stopped_again():
    storage = MemoryStorage()
    hook = hook_at(storage)
    hook.step()
    hook.record("loss", 1.0)
    ask(storage, training_run=0)
    with pytest.raises(TrainingStopped):
        hook.step()
    for _ in range(3):
        with hook.step():
            hook.record("loss", 1.0)
    hook.close()
    assert saved_steps(storage) == [0, 1, 2, 3]


def test_requests_are_checked_at_save_steps_only_and_no_more_often_than_set():
    storage = Watched()
    train(hook_at(storage, save_config=SaveConfig(save_interval=5)), steps=11)
    assert storage.looks == 2  # after 0 and 5; after step 10 comes no other
    storage = Watched()
    train(hook_at(storage, look_for_stop=3600), steps=11)
    assert storage.looks == 1
    storage = Watched()
    train(hook_at(storage, look_for_stop=None), steps=11)
    assert storage.looks == 0


@pytest.mark.parametrize("wrong", [-1, float("nan")])
def test_the_interval_of_checks_is_a_number_of_seconds(wrong):
    with pytest.raises(SMDebugValueError, match="look_for_stop"):
        hook_at(MemoryStorage(), look_for_stop=wrong)


def test_only_the_chief_checks_for_requests():
    storage = Watched()
    hooks = [hook_at(storage, worker=rank, num_workers=2, include_workers="all") for rank in range(2)]
    for _ in range(3):
        for hook in hooks:
            with hook.step():
                hook.record("loss", 1.0)
    assert storage.looks == 2
    for hook in reversed(hooks):
        hook.close()


class Ranks:
    """Two ranks that agree on their last step: the latest that one of them knows of."""

    def __init__(self):
        self._last_steps = [None, None]
        self._both = threading.Barrier(2)

    def agree(self, rank, last_step):
        self._last_steps[rank] = last_step
        self._both.wait(60)
        latest = max((step for step in self._last_steps if step is not None), default=None)
        self._both.wait(60)
        return latest


@pytest.mark.parametrize("include_workers", ["one", "all"])
def test_ranks_that_agree_stop_after_the_same_step(include_workers):
    storage, ranks = MemoryStorage(), Ranks()

    def hook_of(rank):
        return hook_at(
            storage,
            worker=rank,
            num_workers=2,
            include_workers=include_workers,
            agree=lambda last_step: ranks.agree(rank, last_step),
            save_config=SaveConfig(save_interval=2),
        )

    def request_stop():
        ask(storage, reason="it explodes")

    # In threads: the second hook of a process must not be told of the first one's end before its own.
    with ThreadPoolExecutor(2) as threads:
        chief = threads.submit(lambda: train(hook_of(0), at={3: request_stop}))
        other = threads.submit(lambda: train(hook_of(1)))
        chiefs_steps, chief_stopped = chief.result(60)
        others_steps, other_stopped = other.result(60)

    assert chief_stopped.step == other_stopped.step == 4  # the next save step after the request
    assert chiefs_steps == others_steps == 5
    assert chief_stopped.reason == "it explodes"


def test_ranks_that_can_no_longer_agree_continue(capsys):
    def agree(last):
        raise RuntimeError("a rank is gone")

    assert train(hook_at(MemoryStorage(), agree=agree)) == (10, None)
    assert "a rank is gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    "error",
    [AccessDenied("x", "no"), StorageUnavailable("x", "gone"), ValueError("?"), MemoryError()],
)
def test_a_failing_check_is_reported_once_and_the_training_continues(error, capsys):
    storage = Watched(error)
    assert train(hook_at(storage)) == (10, None)
    assert storage.looks > 1
    assert capsys.readouterr().out.count("Stop requests cannot be read") == 1


def test_a_storage_that_never_answers_delays_the_training_at_most_once():
    released = threading.Event()

    class Hanging(Watched):
        def read(self, key, span=None):
            if key == STOP_KEY:
                self.looks += 1
                released.wait(60)
            return MemoryStorage.read(self, key, span)

    storage = Hanging()
    control = ControlObject(storage, ATTEMPT, look_every=0, patience=0.01)
    assert [control.look() for _ in range(50)] == [None] * 50
    assert storage.looks == 1
    released.set()


def test_a_late_answer_counts_when_it_arrives():
    released = threading.Event()
    answered = threading.Event()

    class Slow(MemoryStorage):
        def read(self, key, span=None):
            released.wait(60)
            data = MemoryStorage.read(self, key, span)
            answered.set()
            return data

    storage = Slow()
    ask(storage, reason="late", run_id="run-1", training_run=1)
    control = ControlObject(storage, ATTEMPT, look_every=0, patience=0.01)
    assert control.look() is None
    released.set()
    answered.wait(60)
    control._file._asking.join(60)
    assert control.look().reason == "late"


def test_the_guard_of_a_default_hook_lets_a_stop_through():
    agent = ErrorHandlingAgent.get_error_handling_agent()
    hook = smdebug.Hook(MemoryStorage())
    try:
        assert hook.has_default_configuration()

        @agent.catch_smdebug_errors()
        def callback():
            raise TrainingStopped("enough", 3)

        with pytest.raises(TrainingStopped):
            callback()
        assert not agent.disable_smdebug
    finally:
        hook.close()
        singleton.del_hook()


def test_a_stop_survives_pickling():
    import pickle

    stopped = pickle.loads(pickle.dumps(TrainingStopped("enough", 3, "f")))
    assert (stopped.reason, stopped.step, stopped.finding_id) == ("enough", 3, "f")


UNCAUGHT = """
import smdebug
from smdebug import SaveConfig
from smdebug.exceptions import TrainingStopped

hook = smdebug.Hook({place!r}, save_config=SaveConfig(save_interval=1))
hook.step()
hook.record("loss", 1.0)
raise {error}
"""


@pytest.mark.parametrize(("error", "ended"), [("TrainingStopped('r', 0)", True), ("ValueError", False)])
def test_an_uncaught_stop_ends_the_run_and_an_error_does_not(tmp_path, error, ended):
    script = UNCAUGHT.format(place=str(tmp_path / "run"), error=error)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert (tmp_path / "run" / END_MARKER).exists() is ended
    assert saved_steps(FolderStorage(tmp_path / "run")) == [0]
