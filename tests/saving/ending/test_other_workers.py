"""The chief's end marker is the last file of a run, as far as a bounded wait can see to it."""

import threading

import pytest

import smdebug
from smdebug import SaveConfig
from smdebug.saving.ending import other_workers
from smdebug.saving.ending.other_workers import wait_for_workers
from smdebug.saving.place.attempt import Attempt
from smdebug.storage.memory import MemoryStorage

ATTEMPT = Attempt("run", 1)


def collections_file(storage, worker, meta):
    storage.write(
        f"collections/000000000/{worker}_collections.json",
        b'{"collections": {}, "_meta": %s}' % meta,
    )


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(other_workers, "WAITS_FOR", 0.3)
    monkeypatch.setattr(other_workers, "_CHECK_EVERY", 0.01)


def test_closed_workers_are_not_waited_for():
    storage = MemoryStorage()
    for worker in ("worker_0", "worker_1"):
        collections_file(storage, worker, b'{"training_run": 1, "closed": true}')
    assert wait_for_workers(storage, ATTEMPT, 2)


@pytest.mark.parametrize(
    "meta", [b"{}", b'{"training_run": 0, "closed": true}', b'{"training_run": 1}', b"x"]
)
def test_a_worker_that_does_not_close_is_waited_for_only_so_long(meta, capsys):
    storage = MemoryStorage()
    collections_file(storage, "worker_0", b'{"training_run": 1, "closed": true}')
    collections_file(storage, "worker_1", meta)
    assert not wait_for_workers(storage, ATTEMPT, 2)
    assert "1 of 2 workers closed" in capsys.readouterr().out


def test_a_worker_that_closes_meanwhile_is_noticed(monkeypatch):
    monkeypatch.setattr(other_workers, "WAITS_FOR", 30)
    storage = MemoryStorage()
    closing = b'{"training_run": 1, "closed": true}'
    timer = threading.Timer(0.1, collections_file, (storage, "worker_1", closing))
    timer.start()
    assert wait_for_workers(storage, ATTEMPT, 1)


def test_hooks_of_one_process_may_close_in_any_order(monkeypatch):
    monkeypatch.setattr(other_workers, "WAITS_FOR", 1e6)
    storage = MemoryStorage()
    hooks = [
        smdebug.Hook(
            storage,
            worker=rank,
            num_workers=2,
            include_workers="all",
            save_config=SaveConfig(save_interval=1),
        )
        for rank in range(2)
    ]
    for hook in hooks:
        with hook.step():
            hook.record("loss", 1.0)
    for hook in hooks:
        hook.close()
    assert storage.exists("training_job_end.ts")
    assert wait_for_workers(storage, Attempt("", 0), 2)
