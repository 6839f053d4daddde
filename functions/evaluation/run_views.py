"""Views of runs: as the step index knows them, and as a listing shows those that it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smdebug.config.collection_manager import CollectionManager
from smdebug.files.names import LAST_STEP
from smdebug.storage import Storage
from smdebug.trials.live.finding_run import read_collections
from smdebug.trials.past.as_of import AsOfTrial
from smdebug.trials.past.listed_history import ListedHistory


def as_listed(name: str, storage: Storage) -> AsOfTrial:
    """Return a run that the step index does not know, as a listing shows it."""
    opened = read_collections(storage)
    return AsOfTrial(
        name,
        storage,
        history=ListedHistory(storage, LAST_STEP),
        collections=opened.collections if opened else CollectionManager(),
        num_workers=opened.num_workers if opened else 1,
    )


def collections_of(content: Mapping[str, Any] | None, storage: Storage) -> CollectionManager:
    """Return the collections from the step index, or else from the run's own file."""
    if content is not None:
        return CollectionManager.from_dict(content)
    opened = read_collections(storage)
    return opened.collections if opened else CollectionManager()
