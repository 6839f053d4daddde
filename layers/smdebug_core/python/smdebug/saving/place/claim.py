"""The claim on a local run: the first process that asks for it writes, until it ends.

Several processes of a script whose hooks do not know of each other would write the same files. The first to
create `claim.smd` writes; the others log an error and save nothing. The claim names its owner, so that the
claim of a killed process does not block the next run.
"""

from __future__ import annotations

import json
import os
import socket
import time
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from smdebug.exceptions import ObjectMissing
from smdebug.files.names import CLAIM
from smdebug.storage.base import Storage

# Whether an owner on another machine is alive cannot be checked: it renews its claim, or loses it.
RENEWED_EVERY = 60.0
FORGOTTEN_AFTER = 600.0
# A claim exists for a moment before it names its owner.
SECONDS_WITHOUT_OWNER = 1.0


class Owner(NamedTuple):
    """The process that holds a claim."""

    host: str
    pid: int
    born: str  # distinguishes a process from a later one of the same number
    seen: float

    @classmethod
    def me(cls, now: float) -> Owner:
        return cls(socket.gethostname(), os.getpid(), _birth_of(os.getpid()), now)

    def is_same_process(self, other: Owner) -> bool:
        return self[:3] == other[:3]

    def is_me(self) -> bool:
        return self.is_same_process(Owner.me(0.0))

    def is_alive(self, me: Owner) -> bool:
        """Return whether the process is alive, as far as `me` can tell."""
        if self.host != me.host:
            return me.seen - self.seen < FORGOTTEN_AFTER
        return _exists(self.pid) and _birth_of(self.pid) == self.born


class ClaimOutcome(Enum):
    MINE = "mine"
    TAKEN_OVER = "taken over"  # from a process that is dead
    NOT_MINE = "not mine"


class Claim:
    """This process's claim on a storage."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._renewed = 0.0
        self._is_released = False
        self.owner: Owner | None = None

    def take(self) -> ClaimOutcome:
        """Claim the run unless a live process has; `owner` is the previous owner."""
        me = Owner.me(time.time())
        if self._storage.claim(CLAIM):
            self._sign(me)
            return ClaimOutcome.MINE
        self.owner = self._read_owner()
        if self.owner is not None and self.owner.is_alive(me):
            return ClaimOutcome.NOT_MINE
        self._sign(me)
        return ClaimOutcome.TAKEN_OVER

    def renew(self) -> None:
        """Show that the owner is alive; most calls do nothing."""
        now = time.time()
        if now - self._renewed >= RENEWED_EVERY:
            self._sign(Owner.me(now))

    def release(self) -> None:
        """Remove the claim, unless another process has taken it."""
        self._is_released = True
        owner = self._read_owner(patience=0)
        if owner is not None and owner.is_me():
            self._storage.delete(CLAIM)

    def _sign(self, me: Owner) -> None:
        sink = self._storage.create(CLAIM)
        try:
            sink.write((json.dumps(me._asdict()).encode(),))
            if self._is_released:  # while a call of the storage hung
                sink.abort()
                return
            sink.commit()
        except BaseException:
            sink.abort()
            raise
        self._renewed = me.seen

    def _read_owner(self, patience: float | None = None) -> Owner | None:
        patience = SECONDS_WITHOUT_OWNER if patience is None else patience
        deadline = time.monotonic() + patience
        while True:
            try:
                owner = json.loads(self._storage.read(CLAIM))
                return Owner(str(owner["host"]), int(owner["pid"]), str(owner["born"]), float(owner["seen"]))
            except (ValueError, KeyError, TypeError):
                if time.monotonic() >= deadline:
                    return None  # the old library's claims name no owner
                time.sleep(0.02)
            except ObjectMissing:
                return None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _birth_of(pid: int) -> str:
    """Return when the process started, in ticks since boot; "" if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
