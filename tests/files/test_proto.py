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


@pytest.mark.parametrize("name", MODULES)
def test_every_message_has_tensorflows_field_numbers(name):
    ours = importlib.import_module(f"smdebug.files.proto.{name}_pb2").DESCRIPTOR
    theirs = importlib.import_module(f"tensorboard.compat.proto.{name}_pb2").DESCRIPTOR
    for message_name, message in ours.message_types_by_name.items():
        if name == "summary" and message_name == "HistogramProto":
            from tensorboard.compat.proto import histogram_pb2

            theirs_of_it = histogram_pb2.HistogramProto.DESCRIPTOR
        else:
            theirs_of_it = theirs.message_types_by_name[message_name]
        for field in message.fields:
            other = theirs_of_it.fields_by_name.get(field.name)
            assert other is None or other.number == field.number
    for enum_name, enum in ours.enum_types_by_name.items():
        numbers = theirs.enum_types_by_name[enum_name].values_by_name
        assert {value.name: value.number for value in enum.values}.items() <= {
            key: value.number for key, value in numbers.items()
        }.items()


def test_ours_and_tensorboards_live_in_one_process_in_either_order():
    for first, second in (
        ("smdebug.files.proto", "tensorboard.compat.proto"),
        ("tensorboard.compat.proto", "smdebug.files.proto"),
    ):
        code = (
            f"import {first}.event_pb2, {second}.event_pb2, {first}.graph_pb2, {second}.graph_pb2"
        )
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
