"""For code written against smdebug: the messages are in `smdebug.files.proto`."""

from smdebug.files.proto.attr_value_pb2 import *
from smdebug.files.proto.attr_value_pb2 import DESCRIPTOR
