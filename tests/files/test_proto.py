import importlib
import subprocess
import sys

import numpy as np
import pytest

MODULES = [
    "attr_value",
    "event",
    "graph",
    "node_def",
    "resource_handle",
    "summary",
    "tensor",
    "tensor_shape",
    "types",
    "versions",
]


OURS = {module: importlib.import_module(f"smdebug.files.proto.{module}_pb2").DESCRIPTOR for module in MODULES}
THEIR_MODULE = {"HistogramProto": "histogram"}
"""The modules of TensorFlow's messages that are not in the module of the same name."""


def descriptor_of_theirs(module):
    return importlib.import_module(f"tensorboard.compat.proto.{module}_pb2").DESCRIPTOR


@pytest.mark.parametrize(
    ("module", "message"),
    [(module, message) for module in OURS for message in OURS[module].message_types_by_name],
)
def test_every_field_of_a_message_has_tensorflows_number(module, message):
    theirs = descriptor_of_theirs(THEIR_MODULE.get(message, module))
    our_fields = dict(OURS[module].message_types_by_name[message].fields_by_name)
    their_fields = dict(theirs.message_types_by_name[message].fields_by_name)
    shared = our_fields.keys() & their_fields.keys()
    assert {name: our_fields[name].number for name in shared} == {
        name: their_fields[name].number for name in shared
    }


@pytest.mark.parametrize(
    ("module", "enum"),
    [(module, enum) for module in OURS for enum in OURS[module].enum_types_by_name],
)
def test_every_value_of_an_enum_has_tensorflows_number(module, enum):
    our_values = OURS[module].enum_types_by_name[enum].values_by_name
    their_values = descriptor_of_theirs(module).enum_types_by_name[enum].values_by_name
    assert {name: value.number for name, value in our_values.items()} == {
        name: their_values[name].number for name in our_values
    }


def test_ours_and_tensorboards_live_in_one_process_in_either_order():
    for first, second in (
        ("smdebug.files.proto", "tensorboard.compat.proto"),
        ("tensorboard.compat.proto", "smdebug.files.proto"),
    ):
        code = f"import {first}.event_pb2, {second}.event_pb2, {first}.graph_pb2, {second}.graph_pb2"
        subprocess.run(
            [
                sys.executable,
                "-W",
                "error",
                "-c",
                f"import sys; sys.path[:0] = {sys.path!r}; {code}",
            ],
            check=True,
        )


def test_reading_and_writing_do_not_import_protobuf():
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
import numpy as np
from smdebug.files.event_writing import encode_event
from smdebug.files.event_reading import read_value, iterate_records
from smdebug.files import index, collections_file, tensorboard
from smdebug.mode_keys import ModeKeys
moment = dict(step=1, wall_time=1.0, mode=ModeKeys.TRAIN, mode_step=1)
record = b"".join(encode_event("x", np.zeros(3), **moment).pieces)
assert not read_value(record, file="f", name="x", step=1).any()
assert len(list(iterate_records(record, file="f"))) == 1
assert not [name for name in sys.modules if name.startswith(("google.protobuf", "boto", "ml_dtypes"))]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_string_values_are_bytes_as_in_tensorflow():
    from smdebug.files.proto.tensor_pb2 import TensorProto

    assert TensorProto(string_val=[np.bytes_(b"a")]).string_val == [b"a"]
