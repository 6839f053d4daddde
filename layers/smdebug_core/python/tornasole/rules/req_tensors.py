"""For code written against tornasole: required tensors live in `smdebug.rules.req_tensors`."""

from smdebug.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial

__all__ = ["RequiredTensors", "RequiredTensorsForTrial"]
