"""The hook for TensorFlow's sessions and estimators."""

from __future__ import annotations

from smdebug.saving.framework import later
from smdebug.tensorflow.base_hook import TensorflowBaseHook


class SessionHook(TensorflowBaseHook):
    """Saves what a session's training tells it: `record`, `save_tensor`, `save_scalar`."""

    begin = later("TensorFlow session", "begin")
    before_run = later("TensorFlow session", "before_run")
    after_run = later("TensorFlow session", "after_run")


EstimatorHook = SessionHook
