"""A file beside a run that is written soon after its content has changed, while the training continues."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from smdebug.exceptions import StorageError
from smdebug.logger import get_logger
from smdebug.saving.place.trouble import warn_of_storage
from smdebug.storage.base import Storage


class WrittenSoon:
    """Writes one file, on a short-lived thread of its own: making its content may take seconds.

    A change before the content is asked for goes into the same file; a later one writes it again, in order.
    """

    def __init__(self, key: str, content: Callable[[], bytes], what: str):
        """`content` is called on the thread; `what` names the file in messages: `the origin of the run`."""
        self._key, self._content, self._what = key, content, what
        self._lock = threading.Lock()
        self._storage: Storage | None = None
        self._thread: threading.Thread | None = None
        self._is_waiting = False
        self._process = os.getpid()

    @property
    def is_in_another_process(self) -> bool:
        """Whether this is a forked child, which writes nothing."""
        return os.getpid() != self._process

    def begin(self, storage: Storage) -> None:
        """From now on write the file; it is not written before."""
        self._storage = storage

    def change(self) -> None:
        """Write the file soon."""
        with self._lock:
            if self._storage is None or self._is_waiting or self.is_in_another_process:
                return  # the thread has not yet asked what to write
            self._is_waiting = True
            before = self._thread
            self._thread = threading.Thread(
                target=self._write, args=(self._storage, before), name=f"smdebug-{self._key}", daemon=True
            )
            try:
                self._thread.start()
            except RuntimeError:  # the interpreter is shutting down and starts no more threads
                self._thread, self._is_waiting = before, False

    def finish(self, seconds: float) -> None:
        """Wait for the file. In a forked child, do nothing."""
        thread = self._thread
        if thread is not None and not self.is_in_another_process:
            thread.join(seconds)

    def _write(self, storage: Storage, before: threading.Thread | None) -> None:
        try:
            if before is not None:
                before.join()
            with self._lock:
                self._is_waiting = False
            storage.write(self._key, self._content())
        except StorageError as error:
            warn_of_storage(storage, error, f"{self._what} could not be written: %s")
        except BaseException as error:  # noqa: BLE001 - whatever it is, the training continues
            get_logger().warning("%s is not kept: %s: %s", self._what, type(error).__name__, error)
