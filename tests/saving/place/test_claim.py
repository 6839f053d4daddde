"""Which process writes to a local run."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

import smdebug
from smdebug.files.names import CLAIM
from smdebug.saving.place import claim
from smdebug.saving.place.claim import Claim, ClaimOutcome, Owner
from smdebug.storage.memory import MemoryStorage
from tests.support.faulty_storage import FaultyStorage

ME = Owner.me(time.time())


def claimed_by(**changes):
    storage = MemoryStorage()
    storage.write(CLAIM, json.dumps(ME._replace(**changes)._asdict()).encode())
    return storage


def a_dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_first_process_to_ask_gets_the_claim():
    storage = MemoryStorage()
    mine, another = Claim(storage), Claim(storage)
    assert mine.take() is ClaimOutcome.MINE
    assert another.take() is ClaimOutcome.NOT_MINE
    assert another.owner.is_me()
    mine.release()
    assert not storage.exists(CLAIM)
    assert another.take() is ClaimOutcome.MINE


def test_a_live_process_keeps_its_claim():
    assert Claim(claimed_by(pid=os.getppid(), born=claim._birth_of(os.getppid()))).take() is (
        ClaimOutcome.NOT_MINE
    )


def test_a_claim_of_a_dead_process_is_taken_over():
    storage = claimed_by(pid=a_dead_process())
    assert Claim(storage).take() is ClaimOutcome.TAKEN_OVER
    assert Owner(**json.loads(storage.read(CLAIM))).is_me()


def test_a_later_process_with_the_same_pid_is_a_different_one():
    assert Claim(claimed_by(born="1")).take() is ClaimOutcome.TAKEN_OVER


@pytest.mark.parametrize(
    ("silent_for", "outcome"),
    [
        (-5, ClaimOutcome.NOT_MINE),  # its clock is ahead
        (10, ClaimOutcome.NOT_MINE),
        (claim.RENEWED_EVERY, ClaimOutcome.NOT_MINE),
        (2 * claim.RENEWED_EVERY, ClaimOutcome.NOT_MINE),  # it was late once
        (599, ClaimOutcome.NOT_MINE),
        (600, ClaimOutcome.TAKEN_OVER),
        (1000, ClaimOutcome.TAKEN_OVER),
    ],
)
def test_another_machine_has_to_renew_its_claim_within_ten_minutes(silent_for, outcome, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 5000.0)
    assert Claim(claimed_by(host="elsewhere", seen=5000.0 - silent_for)).take() is outcome


def test_a_claim_is_renewed_every_minute_so_that_no_other_machine_takes_it(monkeypatch):
    storage, now = MemoryStorage(), 5000.0
    monkeypatch.setattr(time, "time", lambda: now)
    mine = Claim(storage)
    mine.take()
    written = []
    for _ in range(3600):
        now += 1
        mine.renew()
        seen = Owner(**json.loads(storage.read(CLAIM))).seen
        written += [seen] if seen not in written else []
        assert now - seen < claim.FORGOTTEN_AFTER / 5
    assert written == [5000.0 + 60 * minute for minute in range(61)]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"pid": "x"}'])
def test_a_claim_without_an_owner_is_stale(content, monkeypatch):
    monkeypatch.setattr(claim, "SECONDS_WITHOUT_OWNER", 0.05)
    storage = MemoryStorage()
    storage.write(CLAIM, content)
    assert Claim(storage).take() is ClaimOutcome.TAKEN_OVER


def test_renewing_is_rare(monkeypatch):
    storage = MemoryStorage()
    mine = Claim(storage)
    mine.take()
    before = storage.read(CLAIM)
    mine.renew()
    assert storage.read(CLAIM) == before
    monkeypatch.setattr(claim, "RENEWED_EVERY", 0.0)
    mine.renew()
    assert storage.read(CLAIM) != before


def test_the_claim_of_another_process_is_not_released():
    storage = claimed_by(host="elsewhere")
    Claim(storage).release()
    assert storage.exists(CLAIM)


def test_a_claim_left_by_a_killed_process_does_not_silence_the_next_run(tmp_path, capsys):
    left = ME._replace(pid=a_dead_process())
    (tmp_path / CLAIM).write_text(json.dumps(left._asdict()))
    with smdebug.Hook(tmp_path) as hook, hook.step():
        hook.record("loss", 1.0)
    assert (tmp_path / "index/000000000/000000000000_worker_0.json").exists()
    assert not (tmp_path / CLAIM).exists()
    assert "a process that is gone" in capsys.readouterr().out


def test_a_second_process_saves_nothing_and_warns(tmp_path, capsys):
    held = ME._replace(pid=os.getppid(), born=claim._birth_of(os.getppid()))
    (tmp_path / CLAIM).write_text(json.dumps(held._asdict()))
    with smdebug.Hook(tmp_path) as hook, hook.step():
        hook.record("loss", 1.0)
    assert hook.first_process is False
    assert [path.name for path in tmp_path.iterdir()] == [CLAIM]
    assert f"Process {os.getppid()}" in capsys.readouterr().out


def test_a_renewal_that_hangs_until_the_claim_is_released_does_not_claim_again(blocking):
    def fault(number, call, key):
        return blocking if call == "sink.write" and claims[0].owner is not None else None

    storage = FaultyStorage(fault)
    claims = [Claim(storage)]
    claims[0].take()
    claims[0].owner = ME  # from now on it hangs
    claims[0]._renewed = 0.0
    renewing = threading.Thread(target=claims[0].renew)
    renewing.start()
    blocking.reached.wait()
    claims[0].release()
    blocking.release()
    renewing.join()
    assert not storage.exists(CLAIM)
