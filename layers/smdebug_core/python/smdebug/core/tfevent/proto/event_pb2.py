"""For code written against smdebug: the messages are in `smdebug.files.proto`."""

from smdebug.files.proto.event_pb2 import *
from smdebug.files.proto.event_pb2 import DESCRIPTOR
