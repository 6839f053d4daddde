"""Calls to a storage that may never answer."""

import gc
import threading
import time
from weakref import ref

import pytest

from smdebug.exceptions import ObjectMissing, StorageUnavailable
from smdebug.saving.place.deadline import within


def missing():
    raise ObjectMissing("run/x")


def broken():
    raise ZeroDivisionError("by zero")


def test_a_result_is_returned_and_a_failure_of_the_storage_raised():
    assert within(lambda: 7, "run") == 7
    with pytest.raises(ObjectMissing):
        within(missing, "run")


def test_other_failures_and_timeouts_mean_that_the_storage_is_unavailable():
    with pytest.raises(StorageUnavailable, match="by zero"):
        within(broken, "run")
    answers = threading.Event()
    began = time.monotonic()
    with pytest.raises(StorageUnavailable, match="no answer within"):
        within(lambda: answers.wait(60), "run", 0.05)
    assert time.monotonic() - began < 30
    answers.set()


@pytest.mark.parametrize("ask", [missing, broken])
def test_a_failure_keeps_nothing_of_the_training_alive(ask):
    class Batch:
        pass

    def forward():
        batch = Batch()
        with pytest.raises((ObjectMissing, StorageUnavailable)) as failure:
            within(ask, "run")
        del failure
        return ref(batch)

    gc.disable()
    try:
        assert forward()() is None
    finally:
        gc.enable()
