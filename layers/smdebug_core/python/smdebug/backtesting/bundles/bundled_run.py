"""A run read through its bundle: what that has is not requested, what it lacks is noted for the next one."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile

from smdebug.backtesting.bundles.bundle_file import (
    LARGEST_BUNDLE,
    LARGEST_FILE,
    Bundle,
    BundleWriter,
    bundle_name,
)
from smdebug.exceptions import ObjectMissing, SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER, END_MARKER, EVENTS_FOLDER, INDEX_FOLDER
from smdebug.storage import Buffer, ByteSpan, Sink, Storage
from smdebug.storage.keys import checked_span, clipped
from smdebug.storage.versions import ListsVersions, Version

_FOLDERS = (COLLECTIONS_FOLDER, EVENTS_FOLDER, INDEX_FOLDER)
WORTH_WRITING = 13
"""Files that a bundle lacks: writing it costs as much as reading 12.5 of them."""


class BundledRun:
    """A storage that reads a run as it was at a moment, from its bundle where that has the same version.

    A bundle is never the only copy: without one, or with one that is damaged or of another run, every file is
    read from the run. `problem` says then what is wrong with it.
    """

    def __init__(self, run: Storage, bundles: Storage, *, keeps: bool):
        """Take a listing of the run, and its bundle; with `keeps`, note what is read besides."""
        self._run = run
        self._bundles = bundles
        self._name = bundle_name(run.location)
        self.problem = ""
        # Before the listing: if the run had ended by then, the listing has all of it.
        self._has_ended = run.exists(END_MARKER)
        self._versions: dict[str, Version] = {}
        if isinstance(run, ListsVersions):
            for folder in _FOLDERS:
                self._versions.update((version.key, version) for version in run.versions(folder))
        self._keys = list(self._versions)
        self._bundle = self._opened()
        self._noted = BundleWriter(run.location, self._bundle) if keeps else None
        self._noting = threading.Lock()

        # From Python 3.12 on `isinstance(…, Storage)` ignores `__getattr__`, so these are named.
        self.write, self.claim, self.delete = run.write, run.claim, run.delete

    def __repr__(self) -> str:
        return repr(self._run)

    @property
    def location(self) -> str:
        return self._run.location

    @property
    def concurrency(self) -> int:
        return self._run.concurrency

    def read(self, key: str, span: ByteSpan | None = None) -> bytes:
        content = self._bundled(key)
        if content is None:
            content = self._run.read(key, span)
            self._note(key, span, content)
            return content
        start, stop = clipped(checked_span(span), len(content))
        return content[start:stop]

    def view(self, key: str, span: ByteSpan | None = None) -> memoryview:
        if self._bundle is not None and key in self._bundle:
            return memoryview(bytearray(self.read(key, span)))
        return self._run.view(key, span)

    def size(self, key: str) -> int:
        version = self._versions.get(key)
        return self._run.size(key) if version is None else version.size

    def exists(self, key: str) -> bool:
        if key == END_MARKER:
            return self._has_ended
        return key in self._versions or self._run.exists(key)

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[str]:
        if not self._keys or not prefix.startswith(_FOLDERS):
            return self._run.list(prefix, start_after)
        first = max(bisect_left(self._keys, prefix), bisect_right(self._keys, start_after or ""))
        return takewhile(lambda key: key.startswith(prefix), self._keys[first:])

    def create(self, key: str) -> Sink:
        return self._run.create(key)

    def keep(self) -> None:
        """Write the bundle anew if enough was read that it lacks."""
        noted, self._noted = self._noted, None
        if noted is None or len(noted) < WORTH_WRITING:
            return
        try:
            self._bundles.write(self._name, noted.packed())
        except SMDebugError as problem:
            self.problem = str(problem)

    def _opened(self) -> Bundle | None:
        if not self._keys:
            return None
        try:
            archive = self._bundles.view(self._name, ByteSpan(0, LARGEST_BUNDLE + 1))
            return Bundle(archive, self.location, self._versions)
        except ObjectMissing:
            return None
        except SMDebugError as problem:
            self.problem = str(problem)
            return None

    def _bundled(self, key: str) -> bytes | None:
        """Return the file if the bundle has it. The first damaged one ends the use of the bundle."""
        bundle = self._bundle
        if bundle is None or key not in bundle:
            return None
        try:
            return bundle.read(key)
        except SMDebugError as problem:
            self.problem, self._bundle = str(problem), None
            return None

    def _note(self, key: str, span: ByteSpan | None, content: Buffer) -> None:
        """Note a file for the next bundle if this is all of it."""
        version = self._versions.get(key)
        if version is None or version.size > LARGEST_FILE or (span is not None and span.start):
            return
        with self._noting:
            if self._noted is not None and len(content) == version.size:
                self._noted.add(version, content)


def bundled(run: Storage, bundles: Storage, *, keeps: bool) -> Storage:
    """Return the run, read through its bundle; as it is if it cannot be listed, so that it says so itself."""
    with suppress(SMDebugError, OSError):
        return BundledRun(run, bundles, keeps=keeps)
    return run


def keep_bundle(run: Storage) -> str:
    """Write the bundle of a run that was read through it; return what is wrong with the bundle, or ""."""
    if not isinstance(run, BundledRun):
        return ""
    run.keep()
    return run.problem
