"""Reading many files of a run: by functions beside the one that evaluates, each of which reads a shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from functions.evaluation.shards import (
    Files,
    answer_with,
    cut,
    files_asked_for,
    files_in,
    merged,
    request_for,
)
from functions.telemetry import log
from smdebug.exceptions import SMDebugError
from smdebug.storage import ByteSpan

if TYPE_CHECKING:
    from functions.world import World
    from smdebug.storage import Storage

REST = 60.0
"""Seconds for which a run is read without the other functions after most of them gave no answer."""


class ShardReader:
    """Reads many files of a run at once; called from any thread.

    What the other functions do not answer with is left to the caller, who reads it file by file.
    """

    def __init__(self, world: World, run: str):
        self._world = world
        self._run = run
        self._rests_until = 0.0

    def __call__(self, files: Files) -> Mapping[str, bytes]:
        """Return the files that were read; none if they are few, or if the functions have to rest."""
        readers, settings = self._world.readers, self._world.settings
        if not readers.at_once or len(files) < settings.fewest_in_shards:
            return {}
        now = self._world.clock.now()
        if now < self._rests_until:
            return {}
        shards = cut(files, at_once=readers.at_once, least=settings.files_a_shard)
        answers = readers.ask([request_for(self._run, shard) for shard in shards])
        parts = [files_in(answer) for answer in answers]
        failed = sum(not part for part in parts)
        if 2 * failed > len(parts):
            # They are throttled, or cannot read this run: who asks on would only take room from others.
            self._rests_until = now + REST
            log("Most shards were not read", level="WARNING", run=self._run, failed=failed, of=len(parts))
        return merged(parts)


def read_shard(open_run: Callable[[str], Storage], request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request with its files; those that cannot be read are left out."""
    files = files_asked_for(request)
    if not files:
        return answer_with({})
    storage = open_run(request["run"])

    def read(file: tuple[str, int]) -> bytes | None:
        key, end = file
        try:
            return storage.read(key, ByteSpan(0, end)) if end else storage.read(key)
        except SMDebugError:  # whoever asked will read it and say what is wrong
            return None

    if storage.concurrency > 1:
        with ThreadPoolExecutor(storage.concurrency, "smdebug-shard") as threads:
            contents = list(threads.map(read, files))
    else:
        contents = [read(file) for file in files]
    found = zip((key for key, _ in files), contents, strict=True)
    return answer_with({key: content for key, content in found if content is not None})
