"""Tensors as bytes of event records, for tests."""

from __future__ import annotations

from smdebug.files.event_writing import encode_event
from smdebug.mode_keys import ModeKeys

MOMENT = {"step": 3, "wall_time": 1.7e9, "mode": ModeKeys.TRAIN, "mode_step": 2}


def written(name, array, **moment):
    return b"".join(encode_event(name, array, **{**MOMENT, **moment}).pieces)


def same(value, other):
    """Equal to the bit, NaNs and negative zeros included."""
    return (
        value.dtype == other.dtype
        and value.shape == other.shape
        and (
            value.tolist() == other.tolist()
            if value.dtype.kind in "UO"
            else value.tobytes() == other.tobytes()
        )
    )
