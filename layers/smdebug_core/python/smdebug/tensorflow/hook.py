"""The hooks for TensorFlow, in one place."""

from smdebug.tensorflow.keras import KerasHook
from smdebug.tensorflow.session import EstimatorHook, SessionHook

__all__ = ["EstimatorHook", "KerasHook", "SessionHook"]
