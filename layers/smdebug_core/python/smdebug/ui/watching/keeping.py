"""What was read of runs, in the cache."""

from __future__ import annotations

import hashlib
import zipfile

from smdebug.exceptions import SMDebugError
from smdebug.files.names import COLLECTIONS_FOLDER
from smdebug.storage import open_storage
from smdebug.ui.drawing.matrices import BUDGET
from smdebug.ui.following.kept_runs import Kept
from smdebug.ui.following.reading import RunReader
from smdebug.ui.watching.cache import Cache

CHARTS = "charts"


def mark_of(path: str) -> str:
    """Return a text that changes when another run takes the place of this one."""
    storage = open_storage(path)
    key = next(iter(storage.list(COLLECTIONS_FOLDER)), None)
    return "" if key is None else hashlib.sha256(storage.read(key)).hexdigest()


def keep(cache: Cache, path: str, reader: RunReader) -> None:
    """Store what was read of a run in the cache."""
    if not cache.is_on or reader.nbytes > cache.longest:
        return
    mark = mark_of(path)
    with reader.lock:  # into the file, as a copy in memory would be as large as the charts
        cache.put_content(CHARTS, path, mark, kept_from(reader).write)


def kept_from(reader: RunReader) -> Kept:
    """Return what was read of a run, for a later process."""
    charts = reader.charts
    return Kept(
        steps=reader.steps,
        read_through=reader.read_through,
        checked=reader.steps_checked,
        has_ended=reader.has_ended,
        attempt=list(reader.attempt or ()),
        series=charts.series,
        kinds=charts.kinds,
        lines=charts.lines,
        training_steps=charts.training_steps,
        moments=charts.moments,
        orders={kind: reader.order(kind) for kind in charts.kinds},
        modes=charts.modes,
        facts=charts.facts,
        damaged=charts.damaged,
        values_left_out_from=charts.values_left_out_from,
        folded=charts.folded,
        workers=reader.workers,
        missing=reader.missing,
        issues=reader.issues,
        verdict=reader.verdict,
    )


def kept_of(cache: Cache, path: str) -> Kept | None:
    """Return what an earlier process has read of that run; None if it is not in the cache."""
    if not cache.has(CHARTS, path):
        return None
    try:
        with cache.opened(CHARTS, path, mark_of(path)) as content:
            return None if content is None else Kept.read(content, BUDGET)
    except (SMDebugError, ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile):
        return None  # damaged, or of another version
