"""The collections of an XGBoost training."""

from __future__ import annotations

from collections.abc import Mapping

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager as BaseCollectionManager
from smdebug.config.keys import CollectionKeys

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]

# `<data>-<metric>`, as in `validation_1-ndcg@5`: XGBoost allows much in the name of data.
_METRIC = r"^[^/\s-]+-[^/\s]+$"


class CollectionManager(BaseCollectionManager):
    """The collections of one run, the default ones from the start."""

    default_collections: Mapping[str, tuple[str, ...]] = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.METRICS: (_METRIC,),
        CollectionKeys.LOSSES: (r"^[^/\s-]+-[^/]+(?<!auc)(?<!map)(?<!-std)$",),
        CollectionKeys.HYPERPARAMETERS: ("^hyperparameters/.*$",),
        CollectionKeys.PREDICTIONS: ("^predictions$",),
        CollectionKeys.LABELS: ("^labels$",),
        CollectionKeys.FEATURE_IMPORTANCE: ("^feature_importance/.*",),
        CollectionKeys.AVERAGE_SHAP: ("^average_shap/.*(?<!/bias)$",),
        CollectionKeys.FULL_SHAP: ("^full_shap/.*(?<!/bias)$",),
        CollectionKeys.TREES: ("^trees/.*",),
    }

    def __init__(
        self,
        collections: Mapping[str, Collection] | None = None,
        create_default: bool = True,
    ):
        super().__init__(collections, create_default and collections is None)
