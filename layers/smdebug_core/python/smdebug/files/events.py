"""The functions for event files in one place, for code that reads or writes such files itself."""

from smdebug.files.event_parsing import Event
from smdebug.files.event_reading import (
    Check,
    decode_event,
    decode_tensor,
    iterate_records,
    read_record,
    read_value,
    record_spans,
)
from smdebug.files.event_writing import as_saved_array, encode_event
from smdebug.files.framing import EncodedRecord

__all__ = [
    "Check",
    "EncodedRecord",
    "Event",
    "as_saved_array",
    "decode_event",
    "decode_tensor",
    "encode_event",
    "iterate_records",
    "read_record",
    "read_value",
    "record_spans",
]
