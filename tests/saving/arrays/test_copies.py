"""Memory for copies is reused, and never while something refers to it."""

import os
import subprocess
import sys
import textwrap
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import smdebug
from smdebug import ReductionConfig, SaveConfig
from smdebug.files.names import step_file
from smdebug.saving.arrays.copies import SLAB, WORTH_LENDING, CopyMemory
from smdebug.storage.memory import MemoryStorage
from smdebug.trials import create_trial
from tests.support.faulty_storage import Blocking, FaultyStorage, failing, tearing

LIMIT = 3 * SLAB
MANY = WORTH_LENDING // 8 + 1  # numbers of 8 bytes: enough for a copy in lent memory
LARGER_THAN_A_SLAB = SLAB // 8 + 1


class CopiesOfSteps(RuleBasedStateMachine):
    """Steps make copies, arrays change, and copies are let go in any order."""

    def __init__(self):
        super().__init__()
        self.memory = CopyMemory(LIMIT)
        self.step = self.memory.for_a_step()
        self.held = []
        self.number = 0

    @rule()
    def begin_a_step(self):
        self.step.end()
        self.step = self.memory.for_a_step()

    @rule(
        size=st.sampled_from([1, MANY, 3 * MANY, SLAB // 24, SLAB // 8, LARGER_THAN_A_SLAB]),
        dtype=st.sampled_from([np.float64, np.float32, np.int8, ml_dtypes.bfloat16]),
        lying=st.sampled_from(["in order", "transposed", "apart", "backwards", "the same again"]),
    )
    def copy(self, size, dtype, lying):
        self.number += 1
        value = self.number % 100
        array = np.full((size, 2), value, dtype)
        if lying == "transposed":
            array = np.full((2, 3, size), value, dtype).transpose(2, 0, 1)
        elif lying == "apart":
            array = np.full((size, 4), value, dtype)[:, ::2]
        elif lying == "backwards":
            array = array[::-1]
        elif lying == "the same again":
            array = np.broadcast_to(array[0], (size, 2))
        copy = self.step.of(array)
        assert (copy.dtype, copy.shape) == (array.dtype, array.shape)
        if array.flags.writeable:
            array[...] = -1
        self.held.append((copy, value))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def let_go(self, data):
        del self.held[data.draw(st.integers(0, len(self.held) - 1))]

    @precondition(lambda self: self.held)
    @rule()
    def look_at_a_part_alone(self):
        copy, value = self.held.pop()
        self.held.append((copy[-1:], value))

    @precondition(lambda self: self.held)
    @rule()
    def keep_the_bytes_alone(self):
        copy, value = self.held.pop()
        if copy.flags.c_contiguous and copy.dtype == np.float64:
            self.held.append((np.frombuffer(memoryview(copy).cast("B"), np.float64), value))

    @invariant()
    def every_copy_has_its_own_value(self):
        for copy, value in self.held:
            assert (copy == copy.dtype.type(value)).all()

    @invariant()
    def memory_is_bounded(self):
        assert self.memory.size <= LIMIT


TestCopiesOfSteps = CopiesOfSteps.TestCase
TestCopiesOfSteps.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


def address(array):
    return array.__array_interface__["data"][0]


def copy_in_a_step(memory, array):
    step = memory.for_a_step()
    copy = step.of(array)
    step.end()
    return copy


def test_memory_is_reused_once_it_is_unreferenced():
    memory = CopyMemory(LIMIT)
    first = copy_in_a_step(memory, np.zeros(MANY))
    place = address(first)
    assert address(copy_in_a_step(memory, np.zeros(MANY))) != place
    view = memoryview(first)[5:6]
    del first
    assert address(copy_in_a_step(memory, np.zeros(MANY))) != place
    del view
    assert place in {address(copy_in_a_step(memory, np.zeros(MANY))) for _ in range(2)}
    assert memory.size == 2 * SLAB


def test_small_copies_and_those_beyond_the_limit_are_made_in_fresh_memory():
    memory = CopyMemory(SLAB)
    step = memory.for_a_step()
    assert step.of(np.zeros(WORTH_LENDING // 8 - 1)).base is None
    assert step.of(np.zeros(LARGER_THAN_A_SLAB)).base is None
    assert memory.size == 0
    assert step.of(np.zeros(MANY)).base is not None
    assert memory.size == SLAB


def test_memory_that_steps_no_longer_need_is_freed():
    memory = CopyMemory(4 * SLAB)
    copy_in_a_step(memory, np.zeros(2 * LARGER_THAN_A_SLAB))
    copy_in_a_step(memory, np.zeros(MANY))
    assert memory.size == 4 * SLAB
    for _ in range(20):
        copy_in_a_step(memory, np.zeros(MANY))
    assert memory.size == SLAB


def test_memory_of_the_wrong_size_makes_room_for_what_is_asked_for():
    memory = CopyMemory(LIMIT)
    copy_in_a_step(memory, np.zeros(2 * LARGER_THAN_A_SLAB))
    kept = [copy_in_a_step(memory, np.full(MANY, n)) for n in range(3)]
    assert [copy[0] for copy in kept] == [0, 1, 2]
    assert all(copy.base is not None for copy in kept)
    assert memory.size == 3 * SLAB


def test_several_threads_may_record_one_step():
    memory = CopyMemory(LIMIT)
    step = memory.for_a_step()
    found = []

    def record(value):
        copies = [step.of(np.full(MANY, value)) for _ in range(50)]
        found.append(all((copy == value).all() for copy in copies))

    threads = [threading.Thread(target=record, args=[value]) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


# Through a hook


def value_of(step, name):
    return float(1000 * step + len(name))


def train(hook, steps=range(12), between=lambda step: None):
    """Offers a large array that changes all the time, whole and reduced, and its transpose."""
    array = np.empty((2, MANY))
    for step in steps:
        with hook.step():
            for name in ("a", "bb", "ccc"):
                array[:] = value_of(step, name)
                hook.record(name, array if name != "bb" else array.T)
            array[:] = -1
        between(step)


def hook_at(storage):
    return smdebug.Hook(
        storage,
        save_all=True,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(["min", "max"], save_raw_tensor=True),
        export_tensorboard=True,
    )


def check(storage):
    """Check that each written step has its own values; return the steps."""
    trial = create_trial(storage)
    for name in ("a", "bb", "ccc"):
        tensor = trial.tensor(name)
        for step in tensor.steps():
            value = tensor.value(step)
            assert value.shape == ((MANY, 2) if name == "bb" else (2, MANY))
            assert (value == value_of(step, name)).all()
            assert tensor.reduction_value(step, "min") == value_of(step, name)
            assert tensor.reduction_value(step, "max") == value_of(step, name)
    return trial.steps()


def test_steps_use_the_memory_of_steps_before_them():
    storage = MemoryStorage()
    hook = hook_at(storage)
    train(hook, between=lambda step: hook.flush())
    assert hook.recorder.run.writer.copies.size == SLAB
    hook.close()
    assert check(storage) == list(range(12))


def test_steps_that_wait_for_a_blocked_writer_keep_their_values():
    hang = Blocking()
    storage = FaultyStorage(lambda at, call, key: hang if call == "create" else None)
    hook = hook_at(storage)
    train(hook)
    hang.release()
    train(hook, range(12, 20))
    hook.close()
    assert check(storage.storage) == list(range(20))


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("create", failing()),
        ("sink.write", failing()),
        ("sink.write", tearing),
        ("sink.commit", failing()),
        ("write", failing()),
    ],
)
def test_a_failing_step_loses_no_value_of_another_step(call, fault):
    def at_every_third_step(number, what, key):
        of_a_step = key.startswith(("events/", "index/"))
        return fault if what == call and of_a_step and step_file(key).step % 3 == 1 else None

    storage = FaultyStorage(at_every_third_step)
    hook = hook_at(storage)
    train(hook)
    hook.close()
    assert check(storage.storage) == [step for step in range(12) if step % 3 != 1]


def test_a_storage_that_writes_several_steps_at_once_sees_each_as_it_was():
    storage = FaultyStorage(concurrency=4)
    hook = hook_at(storage)
    train(hook, range(30))
    hook.close()
    assert check(storage.storage) == list(range(30))


def run_script(script, *arguments):
    header = "import os, sys, numpy as np, smdebug\nfrom tests.saving.arrays.test_copies import *\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", header + textwrap.dedent(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_a_process_that_ends_without_closing_has_saved_what_it_recorded(tmp_path):
    run_script("train(hook_at(sys.argv[1]))", str(tmp_path / "run"))
    assert check(str(tmp_path / "run")) == list(range(12))


def test_a_forked_child_changes_no_copy_of_its_parent(tmp_path):
    run_script(
        """
        hook = hook_at(sys.argv[1])
        train(hook, range(3))
        hook.step()
        hook.record("a", np.full((2, MANY), value_of(3, "a")))
        memory = hook.recorder.run.writer.copies
        with memory._lock, hook.writer._copies._lock:  # the worst moment
            child = os.fork()
            if not child:
                copy = next(cell.cell_contents for call in hook.writer._calls
                            for cell in call.__closure__ if isinstance(cell.cell_contents, np.ndarray))
                copy[:] = -7
                for name in ("a", "bb"):
                    hook.record(name, np.full((2, MANY), -7.0))
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        hook.record("bb", np.full((MANY, 2), value_of(3, "bb")))
        hook.record("ccc", np.full((2, MANY), value_of(3, "ccc")))
        hook.close()
        """,
        str(tmp_path / "run"),
    )
    assert check(str(tmp_path / "run")) == list(range(4))
