"""For code written against smdebug: the messages are in `smdebug.files.proto`."""

from smdebug.files.proto.node_def_pb2 import *
from smdebug.files.proto.node_def_pb2 import DESCRIPTOR
