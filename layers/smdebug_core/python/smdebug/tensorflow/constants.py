"""Constants of the hooks for TensorFlow."""

from smdebug.config.keys import CollectionKeys

TF_DEFAULT_SAVED_COLLECTIONS = [
    CollectionKeys.METRICS,
    CollectionKeys.LOSSES,
    CollectionKeys.SM_METRICS,
]
