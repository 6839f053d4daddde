"""The chief's end marker is the last file of a run, as far as a bounded wait can see to it."""

import json
import threading

import pytest

import smdebug
from smdebug import SaveConfig
from smdebug.exceptions import StorageUnavailable
from smdebug.files.names import COLLECTIONS_FOLDER, END_MARKER
from smdebug.saving.ending import other_workers
from smdebug.saving.ending.other_workers import wait_for_workers
from smdebug.saving.place.attempt import StartedAttempt
from smdebug.storage.memory import MemoryStorage
from tests.support.faulty_storage import FaultyStorage, failing

ATTEMPT = StartedAttempt("run", 1)


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


class OnceBusy(MemoryStorage):
    """A bucket that refuses a listing, once."""

    refusals = 1

    def list(self, prefix, start_after=None):
        if self.refusals:
            self.refusals -= 1
            raise StorageUnavailable(self.location, "S3 is busy")
        return super().list(prefix, start_after)


def test_a_listing_that_fails_once_is_tried_again():
    storage = OnceBusy()
    collections_file(storage, "worker_0", b'{"training_run": 1, "closed": true}')
    assert wait_for_workers(storage, ATTEMPT, 1)


def test_a_chief_whose_closing_note_fails_once_writes_it_before_the_end_marker():
    refusals = []

    def refuse_the_first_note(number, call, key):
        if refusals and key.startswith("collections/"):
            return refusals.pop()
        return None

    storage = FaultyStorage(refuse_the_first_note)
    hook = smdebug.Hook(
        storage,
        worker=0,
        num_workers=2,
        include_workers="all",
        save_config=SaveConfig(save_interval=1),
    )
    with hook.step():
        hook.record("loss", 1.0)
    hook.flush()
    refusals.append(failing())
    hook.close()
    assert not refusals
    collections = "collections/000000000/worker_0_collections.json"
    written = [key for call, key in storage.calls if call == "write"]
    assert written[-2:] == [collections, "training_job_end.ts"]
    assert json.loads(storage.read(collections))["_meta"]["closed"]


class Tale(MemoryStorage):
    """A run whose second worker closes when it is looked for, and which notes the order of both ends."""

    def __init__(self):
        super().__init__()
        self.order = []

    def list(self, prefix, start_after=None):
        if prefix == COLLECTIONS_FOLDER and any("worker_0_coll" in key for key in super().list(prefix)):
            self.order.append("looked for others")
            closed = json.dumps({**meta_of(self, "worker_0"), "closed": True})
            collections_file(self, "worker_1", closed.encode())
        return super().list(prefix, start_after)

    def write(self, key, data):
        if key == END_MARKER:
            self.order.append("end marker")
        super().write(key, data)


def meta_of(storage, worker):
    return json.loads(storage.read(f"collections/000000000/{worker}_collections.json"))["_meta"]


def test_the_end_marker_comes_after_the_other_workers_have_closed():
    storage = Tale()
    with smdebug.Hook(storage, worker=0, num_workers=2, include_workers="all") as hook, hook.step():
        hook.record("loss", 1.0)
    assert storage.order[-2:] == ["looked for others", "end marker"]


def test_a_training_of_one_worker_waits_for_none():
    storage = Tale()
    with smdebug.Hook(storage) as hook, hook.step():
        hook.record("loss", 1.0)
    assert storage.order == ["end marker"]


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
    assert wait_for_workers(storage, StartedAttempt("", 0), 2)
