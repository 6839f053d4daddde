from __future__ import annotations

from smdebug_default_rules.tensors import Modules

MODULES = Modules("Net", {"Net": "Net", "fc1": "Linear"}, {})


def test_a_layer_is_named_with_its_class_and_one_without_a_name_is_still_a_phrase():
    assert MODULES.described("fc1") == "layer fc1 (Linear)"
    assert MODULES.described("other") == "layer other"
    flat = Modules("", {}, {})
    assert flat.described(flat.layer_of("layer00_weight")) == "that layer"
