"""The right to save to a place as one worker: one hook of one process has it at a time."""

from __future__ import annotations

import weakref
from typing import Protocol

from smdebug.exceptions import StorageError
from smdebug.logger import get_logger
from smdebug.saving.place import claim
from smdebug.saving.place.deadline import within
from smdebug.saving.place.trouble import warn_of_storage
from smdebug.storage.base import Storage


class Saver(Protocol):
    """What holds the right: a hook."""

    takes_over: bool

    def end_run(self, *, ended: bool) -> None: ...


# The hooks of this process that save, by place and worker.
_savers: weakref.WeakValueDictionary[tuple[str, str], Saver] = weakref.WeakValueDictionary()


class WriteAccess:
    """The right of one hook to save to a storage as `worker`.

    Between the hooks of a process a registry decides, between processes of a machine a claim in the folder.
    """

    def __init__(self, saver: Saver, storage: Storage, worker: str):
        self._saver = saver
        self._storage = storage
        self._place = storage.location
        self._worker = worker
        self._claim: claim.Claim | None = None

    def acquire(self, num_workers: int) -> bool:
        """Take the right. If another writer has it, log an error and return False."""
        if not self._is_free_in_this_process():
            return False
        # A bucket has no claims: no processes of one machine share it by accident.
        shared = num_workers == 1 and self._storage.concurrency == 1
        if shared and not self._take_claim():
            return False
        _savers[self._place, self._worker] = self._saver
        return True

    def renew(self) -> None:
        """Renew the claim, so that other machines see its owner alive. A failure costs no step."""
        if self._claim is None:
            return
        try:
            self._claim.renew()
        except StorageError as error:
            warn_of_storage(self._storage, error, "The claim on %s could not be renewed: %s", self._place)

    def release_claim(self) -> None:
        """Remove the claim from the storage."""
        if self._claim is not None:
            self._claim.release()

    def leave(self) -> None:
        """Let another hook of this process save there."""
        if _savers.get((self._place, self._worker)) is self._saver:
            del _savers[self._place, self._worker]

    def count_in_this_process(self) -> int:
        """Return how many workers of this process save to the place."""
        return sum(1 for place, _ in list(_savers) if place == self._place)

    def _is_free_in_this_process(self) -> bool:
        other = _savers.get((self._place, self._worker))
        if other is None or other is self._saver:
            return True
        if self._saver.takes_over and type(other) is type(self._saver):
            get_logger().warning(
                "Another hook of this process saved to %s and is closed now: the training was started again",
                self._place,
            )
            other.end_run(ended=False)
            return True
        get_logger().error(
            "Another hook of this process saves to %s as %s: this one saves nothing. Close the other "
            "first (hook.close()), or choose another out_dir.",
            self._place,
            self._worker,
        )
        return False

    def _take_claim(self) -> bool:
        mine = claim.Claim(self._storage)
        try:
            outcome = within(mine.take, self._place)
        except StorageError as error:
            warn_of_storage(self._storage, error, "%s could not be claimed: %s", self._place)
            return True
        if outcome is claim.ClaimOutcome.NOT_MINE and mine.owner and mine.owner.is_me():
            outcome = claim.ClaimOutcome.TAKEN_OVER  # from a hook of this process that is gone
        if outcome is claim.ClaimOutcome.NOT_MINE:
            assert mine.owner is not None
            get_logger().error(
                "Process %d on %s already saves to %s: this one saves nothing. Start one process, give "
                "the hook its worker, or choose another out_dir.",
                mine.owner.pid,
                mine.owner.host,
                self._place,
            )
            return False
        if outcome is claim.ClaimOutcome.TAKEN_OVER:
            get_logger().warning("%s was claimed by a process that is gone", self._place)
        self._claim = mine
        return True
