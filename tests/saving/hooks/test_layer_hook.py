"""The base classes from which the hooks of frameworks derive."""

import numpy as np

import smdebug
from smdebug import modes
from smdebug.saving.hooks.hook import BaseHook, CallbackHook
from tests.saving.saved_files import EVERY_STEP, names_at


class LayerHook(CallbackHook):
    def __init__(self, out_dir, **more):
        manager = smdebug.saving.hooks.loop_hook.NeutralCollections(create_default=True)
        super().__init__(manager, ["losses"], out_dir=out_dir, save_all=True, save_config=EVERY_STEP, **more)


def test_layers_number_their_tensors_through_calls_and_nesting(out_dir):
    x = np.ones(2)
    with LayerHook(out_dir) as hook:
        for _ in range(2):
            with hook.step():
                hook.record_inputs("relu", (x, None, [x, (x, "no tensor")]))
                hook.record_outputs("relu", {"a": x, "b": x})
                hook.record_inputs("relu", x)
                hook.record_tensor_value("nll_loss", x)
    expected = [f"relu_input_{n}" for n in range(3)] + ["relu_output_0", "relu_output_1"]
    expected += ["relu_input_3", "nll_loss_output_0"]
    assert names_at(out_dir, 0) == names_at(out_dir, 1) == expected


def test_only_tensors_of_the_framework_count_as_tensors(out_dir):
    class Tensor:
        def __init__(self, values):
            self._values = np.asarray(values)

        def __array__(self, dtype=None, copy=None):
            return self._values

    class Parameter(Tensor):
        pass

    with LayerHook(out_dir, data_type_name="Tensor") as hook, hook.step():
        hook.record_inputs("layer", [np.ones(1), Tensor([1, 2]), Parameter([3])])
    assert names_at(out_dir, 0) == ["layer_input_0", "layer_input_1"]


def test_a_base_hook_counts_from_the_given_step(out_dir):
    manager = smdebug.saving.hooks.loop_hook.NeutralCollections(create_default=True)
    hook = BaseHook(manager, ["losses"], None, 0, out_dir)
    assert hook.step == hook.init_step == 0
    hook.set_mode(modes.EVAL)
    assert hook.mode_steps == {modes.GLOBAL: 0, modes.EVAL: 0}
    hook.close()
