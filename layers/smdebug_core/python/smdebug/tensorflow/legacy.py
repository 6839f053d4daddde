"""Keras 2, which TensorFlow still uses on request. The hook supports Keras 3."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from smdebug.exceptions import LegacyKeras

_PACKAGE = "tf_keras"


def refuse_legacy_keras() -> None:
    """Raise LegacyKeras if `tf.keras` is Keras 2: it is requested, and its package is installed."""
    # TensorFlow accepts these values, and no others.
    if os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True") and find_spec(_PACKAGE):
        raise LegacyKeras


def refuse_legacy_model(model: Any) -> None:
    """Raise LegacyKeras if the model is one of Keras 2."""
    if any(kind.__module__.partition(".")[0] == _PACKAGE for kind in type(model).__mro__):
        raise LegacyKeras
