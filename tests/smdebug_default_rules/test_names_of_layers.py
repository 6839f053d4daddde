from __future__ import annotations

from smdebug_default_rules.tensors import Modules

MODULES = Modules("Net", {"Net": "Net", "fc1": "Linear"}, {})


def test_a_layer_is_named_with_its_class_and_one_without_a_name_is_still_a_phrase():
    assert MODULES.described("fc1") == "layer fc1 (Linear)"
    assert MODULES.described("other") == "layer other"
    flat = Modules("", {}, {})
    assert flat.described(flat.layer_of("layer00_weight")) == "that layer"


def test_a_parameter_of_a_second_model_that_is_a_layer_belongs_to_that_model():
    both = Modules("Net", {"Net": "Net", "fc1": "Linear", "Linear": "Linear", "Linear-2": "Linear"}, {})
    assert both.layer_of("Linear_weight") == "Linear"
    assert both.layer_of("Linear-2_bias") == "Linear-2"
    assert both.layer_of("scale") == "Net"
