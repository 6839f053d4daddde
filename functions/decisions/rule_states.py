"""Where a rule's state is kept: in the item of its group, or in an object of its own."""

from __future__ import annotations

import zlib

from smdebug.service.step_index.items import LARGEST_INLINE_STATE, LARGEST_PACKED_STATE


def is_inline(state: bytes) -> bool:
    """Whether a rule's state is kept in the item of its group, which is packed."""
    if len(state) <= LARGEST_INLINE_STATE:
        return True
    is_small = len(state) <= LARGEST_PACKED_STATE
    return is_small and len(zlib.compress(state, 6)) <= LARGEST_INLINE_STATE
