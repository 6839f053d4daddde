"""What the files of a run say of the steps that could not be written."""

from __future__ import annotations

import errno

import pytest

import smdebug
from smdebug.files.collections_file import ClosingNote, parse_collections
from smdebug.files.names import collections_key
from smdebug.saving.writing.write_outcome import WriteLog
from smdebug.storage.memory import MemoryStorage
from tests.saving.background_jobs import recorded


class Refusing(MemoryStorage):
    """A place that takes no event files while `refuses`."""

    refuses = True

    def create(self, key):
        if self.refuses and key.startswith("events/"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().create(key)


def note_of(storage: MemoryStorage) -> ClosingNote:
    data = storage.read(collections_key("worker_0"))
    note = ClosingNote.named_in(parse_collections(data, file="")["_meta"])
    assert note is not None
    return note


def hook_at(storage: MemoryStorage) -> smdebug.Hook:
    return smdebug.Hook(storage, save_config=smdebug.SaveConfig(save_interval=1))


def save(hook: smdebug.Hook) -> None:
    with hook.step():
        hook.record("loss", 1.0)


def test_steps_that_were_lost_and_not_even_tried_are_counted_together():
    log = WriteLog("place", None)
    assert log.lost_steps.to_meta() == {}
    log.lost(9, "full")
    log.lost(4, "still full")
    log.refused(12)
    log.refused(15)
    lost = log.lost_steps
    assert (lost.count, lost.first, lost.last, lost.reason) == (4, 4, 15, "full")


def test_a_step_that_was_written_after_all_is_not_lost():
    log = WriteLog("place", None)
    log.lost(9, "slow")
    log.committed(recorded(9).job(MemoryStorage()), was_lost=True)
    assert log.lost_steps.count == 0


def test_a_hook_that_gave_up_writing_says_that_later_steps_are_missing_too(monkeypatch):
    monkeypatch.setenv("SMDEBUG_WRITE_PATIENCE_SECONDS", "0.5")
    storage = Refusing()
    hook = hook_at(storage)
    steps = 0
    while steps < 100_000 and not (hook.recorder.run and hook.recorder.run.writer.failed):
        save(hook)
        hook.flush()
        steps += 1
    save(hook)
    save(hook)
    storage.refuses = False
    hook.close()
    lost = note_of(storage).lost
    assert (lost.first, lost.last) == (0, None)
    assert 1 <= lost.count <= steps + 2
    assert "No space left on device" in lost.reason


@pytest.mark.parametrize(("last_begun", "count"), [(2, 0), (3, 1), (9, 1)])
def test_a_hook_that_stopped_after_the_last_step_has_lost_nothing(last_begun, count):
    hook = hook_at(MemoryStorage())
    save(hook)
    writer = hook.recorder.run.writer
    writer.stop_at(3, "it failed")
    writer.stop_at(1, "a later reason")
    lost = writer.closing_note(last_begun).lost
    assert (lost.count, lost.last) == (count, None)
    if count:
        assert (lost.first, lost.reason) == (3, "it failed")
    hook.close()
