"""Rules read parameters in network order, although large ones are measured after small ones."""

import numpy as np
import pytest

from smdebug_default_rules.tensors import Parameters
from smdebug_default_rules.weights import untrained_layers
from tests.smdebug_default_rules.made_runs import PARAMETERS
from tests.smdebug_default_rules.made_steps import Steps
from tests.smdebug_default_rules.weights.test_untrained_layers import Frozen

LAST = PARAMETERS[4:]
MEASURED = (*LAST, *PARAMETERS[:4])
"""The names in the order of their sizes, as where the last layer is the smallest."""


class BySize:
    """What a run measures is in the order of sizes, not in that of the network."""

    def refresh(self):
        super().refresh()
        for kind, prefix in (("parameters", ""), ("gradients", "gradient/"), ("updates", "update/")):
            known = self.kinds.get(kind, {})
            names = [f"{prefix}{name}" for name in MEASURED]
            self.kinds[kind] = {name: known[name] for name in names if name in known}


class Measured(BySize, Steps):
    pass


class FrozenMeasured(BySize, Frozen):
    pass


class HalfReached(Measured):
    """Nothing is computed from some layers, so that they have no gradient."""

    def __init__(self, without):
        self.without = without
        super().__init__()

    def refresh(self):
        super().refresh()
        for name in self.without:
            self.kinds["gradients"][f"gradient/{name}"][:] = 0
            self.kinds["updates"][f"update/{name}"][:] = 0


def test_each_parameter_has_its_own_numbers_in_the_order_of_the_network():
    run = Measured()
    for place, name in enumerate(PARAMETERS):
        run.kinds["parameters"][name][:] = place + 1
        run.kinds["gradients"][f"gradient/{name}"][:] = 10 * (place + 1)
        run.kinds["updates"][f"update/{name}"][:] = 100 * (place + 1)
    run.lasting["frozen"] = [PARAMETERS[1]]
    table = Parameters.of(run.write().seen[0])
    assert list(table.names) == list(PARAMETERS)
    assert list(table.layers) == ["0", "0", "2", "2", "4", "4"]
    for column, factor in ((table.column, 1), (table.gradient, 10), (table.update, 100)):
        np.testing.assert_allclose(column("mean"), factor * np.arange(1, 7))
    assert table.sizes.tolist() == [run.kinds["parameters"][name].size for name in PARAMETERS]
    assert table.is_frozen.tolist() == [False, True, False, False, False, False]


@pytest.mark.parametrize("kind", [Frozen, FrozenMeasured])
def test_frozen_layers_before_a_small_head_are_found_in_both_orders(kind):
    run = kind().write(steps=9)
    run.step = 50
    found = [at.title for _, at in run.write().evaluate("UnreachedParameters")]
    assert untrained_layers.TITLE in found


@pytest.mark.parametrize(("without", "is_cut"), [(PARAMETERS[:2], True), (LAST, False)])
def test_only_the_first_layers_of_the_network_are_cut_off(without, is_cut):
    run = HalfReached(without).write(steps=10)
    found = [at.title for _, at in run.evaluate("UnreachedParameters")]
    assert ("The first layers are cut off from the loss" in found) == is_cut
