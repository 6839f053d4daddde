"""An account runs so many functions at once, and a direct call beyond that is repeated, as by the SDK."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from local_aws import LocalAws
from local_aws.errors import TooManyRunning
from local_aws.limits import BeyondLimit
from local_aws.limits.concurrency import Concurrency


def test_a_call_beyond_the_concurrency_of_the_account_is_refused():
    concurrency = Concurrency(2)
    entered, leave = threading.Barrier(3), threading.Event()

    def run() -> None:
        with concurrency.slot("evaluate"):
            entered.wait(60)
            leave.wait(60)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    entered.wait(60)
    with pytest.raises(BeyondLimit, match="TooManyRequestsException"), concurrency.slot("watch"):
        pass
    assert concurrency.refused == {"watch": 1}
    leave.set()
    for thread in threads:
        thread.join()
    with concurrency.slot("x"), concurrency.slot("x"):  # a call through the API and its execution are one
        assert concurrency.highest == 2


def test_a_direct_call_is_repeated_while_the_account_is_at_its_concurrency():
    at_once = threading.Barrier(8)

    def call(_: int) -> str | None:
        at_once.wait()
        return aws.invoke("sweep", {}).error

    limits = {"concurrency": 2}
    with LocalAws(limits=limits) as aws, ThreadPoolExecutor(at_once.parties) as callers:
        assert set(callers.map(call, range(at_once.parties))) == {None}
        assert aws.throttled()["sweep"] > 0


def test_a_direct_call_that_stays_refused_says_what_to_do():
    with LocalAws(limits={"concurrency": 0}) as full, pytest.raises(TooManyRunning) as refused:
        full.invoke("sweep", {}, seconds=0.1)
    for part in ("Tried for 0.1 s", "sweep", "TooManyRequestsException", "settle()", "account_concurrency"):
        assert part in str(refused.value)
