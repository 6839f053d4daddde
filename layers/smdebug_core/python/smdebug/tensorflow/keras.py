"""The hook for Keras."""

from __future__ import annotations

from smdebug.saving.framework import later
from smdebug.tensorflow.base_hook import TensorflowBaseHook


class KerasHook(TensorflowBaseHook):
    """Saves what a Keras training tells it: `record`, `record_tensor_value`, `save_tensor`, `save_scalar`."""

    wrap_tape = later("Keras", "wrap_tape")
    register_model = later("Keras", "register_model")
    save_tape_logs = later("Keras", "save_tape_logs")
    should_save_layer = later("Keras", "should_save_layer")
    # What `model.fit(callbacks=[hook])` calls first.
    set_model = later("Keras", "set_model")
    set_params = later("Keras", "set_params")
